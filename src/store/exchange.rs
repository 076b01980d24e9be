//! The exchange: end some claims and take others, in one transaction. Claim, finish and hand-over are this one operation.
//!
//! ```text
//!  0. a downstream is down, or up again, or ours to probe: its pause, rarely       (the first lock)
//!  1. log our own ended rows, which locks them, ids ascending     (what waits on task rows comes first)
//!  2. cool, settle                                                (all fenced by claim_no)
//!  3. more permits wanted than we free?  yes: lock the semaphore, read what is free under the lock
//!                                        no:  keep ours (hand-over), less what a lowered max demands
//!  4. pick due tasks, SKIP LOCKED; mark them ours
//!  5. in_use += taken - freed, if that is not zero                (the last lock)
//! ```
//!
//! Permits and tasks change in one commit, so dying anywhere leaks nothing, and "fewer tasks than permits" needs no
//! giving back. A hand-over does not touch the semaphore row: while tasks wait, the hot row is not hot.
//!
//! Where the database can (PostgreSQL), a hand-over of clear and final ends is tried as one statement first: the same steps
//! in the same order, all or nothing.

use std::time::Duration;

use serde_json::json;
use sqlx::Row;
use sqlx::any::AnyRow;

use super::pause::{heed, may_probe, probing};
use super::record::{encode, log, permits, settle};
use super::rows::{Read, bad, micros};
use super::unit::{How, Tx, Unit};
use super::upkeep::lapse;
use super::{Result, Store};
use crate::clock::Instant;
use crate::model::{Attempt, Claim, Ended, OnAbandon, Paused};

/// A kind that may be claimed, with what its tasks get where they do not say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// The kind.
    pub kind: String,
    /// How long a permit is held at most after its claim.
    pub hold: Duration,
    /// Attempts in all.
    pub max_attempts: u32,
    /// What an unclear end does.
    pub on_abandon: OnAbandon,
    /// Which downstream serves it: nothing is claimed while that is paused.
    pub downstream: String,
}

impl Policy {
    fn encode(&self) -> serde_json::Value {
        json!({
            "kind": self.kind,
            "hold": micros(self.hold),
            "max_attempts": self.max_attempts,
            "on_abandon": self.on_abandon.as_str(),
            "downstream": self.downstream,
        })
    }
}

/// What one consumer wants of one semaphore.
#[derive(Debug)]
pub struct Exchange<'a> {
    /// Who asks.
    pub consumer: &'a str,
    /// Whose permits.
    pub semaphore: &'a str,
    /// Claims that have ended, all of this semaphore.
    pub ended: &'a [Ended],
    /// Tasks wanted; never more than there are free slots.
    pub want: usize,
    /// What may be claimed.
    pub policies: &'a [Policy],
    /// The instant before this exchange is sent.
    pub sent: Instant,
    /// A downstream that is paused because it was down: whatever is claimed is the probe, if the time for one has come.
    pub probe: Option<&'a str>,
}

/// What became of one ended claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recorded {
    /// It is in the log, by this call or by an earlier one whose answer was lost.
    Done,
    /// It was no longer ours: nothing changed, nothing was freed.
    Lost,
}

/// The answer to an [`Exchange`].
#[derive(Debug, Default)]
pub struct Exchanged {
    /// One entry per ended claim, in their order.
    pub recorded: Vec<Recorded>,
    /// What we hold now.
    pub claims: Vec<Claim>,
}

/// What an unlocked look shows of one semaphore.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SemaphoreLook {
    /// Its name.
    pub name: String,
    /// The cap.
    pub max_permits: i64,
    /// Permits taken.
    pub in_use: i64,
    /// Kinds that have due tasks.
    pub kinds: Vec<String>,
}

/// What an unlocked look shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// The semaphores that were asked for and exist.
    pub semaphores: Vec<SemaphoreLook>,
    /// Consumers that claim.
    pub alive: i64,
    /// How long until the next scheduled task is due; zero where one is overdue; `None` where none is scheduled.
    pub next_due: Option<Duration>,
    /// What is paused, anywhere.
    pub paused: Vec<Paused>,
}

impl Store {
    /// One read: is there a due task and a free permit? Takes no lock and writes nothing.
    pub async fn look(&mut self, semaphores: &[String]) -> Result<Look> {
        self.run(&LookUnit { semaphores }).await
    }

    /// Makes due what is scheduled and due, in batches of at most `limit`; answers how many.
    pub async fn promote(&mut self, limit: i64) -> Result<u64> {
        self.run(&Promote { limit }).await
    }

    /// Ends some claims and takes others, in one transaction.
    pub async fn exchange(&mut self, exchange: &Exchange<'_>) -> Result<Exchanged> {
        if exchange.swaps() && !self.database.sql.hand_over.is_empty() {
            let claims = self.run(&HandOver(exchange)).await?;
            if !claims.is_empty() {
                return Ok(Exchanged { recorded: vec![Recorded::Done; exchange.ended.len()], claims });
            }
        }
        self.run(exchange).await
    }
}

struct LookUnit<'a> {
    semaphores: &'a [String],
}

impl Unit for LookUnit<'_> {
    type Answer = Look;
    const NAME: &'static str = "look";
    const HOW: How = How::Reading;

    async fn run(&self, tx: &mut Tx<'_>) -> sqlx::Result<Look> {
        let names = json!(self.semaphores).to_string();
        let rows = sqlx::query(tx.sql.look).bind(names).fetch_all(&mut *tx.conn).await?;
        let mut look = Look::default();
        for row in &rows {
            look.alive = row.int("alive")?;
            look.next_due = row
                .int_or_null("next_due")?
                .map(|micros| Duration::from_micros(u64::try_from(micros).unwrap_or_default()));
            let paused = row.text_or_null("paused")?.filter(|_| look.semaphores.is_empty());
            if let Some(paused) = paused {
                look.paused = serde_json::from_str(&paused).map_err(|error| bad("paused", error))?;
            }
            let name = row.text("name")?;
            // Rows of one semaphore come together.
            if look.semaphores.last().is_none_or(|last| last.name != name) {
                look.semaphores.push(SemaphoreLook {
                    name,
                    max_permits: row.int("max_permits")?,
                    in_use: row.int("in_use")?,
                    kinds: Vec::new(),
                });
            }
            if let Some(last) = look.semaphores.last_mut() {
                last.kinds.extend(row.text_or_null("kind")?);
            }
        }
        Ok(look)
    }
}

struct Promote {
    limit: i64,
}

impl Unit for Promote {
    type Answer = u64;
    const NAME: &'static str = "promote";

    async fn run(&self, tx: &mut Tx<'_>) -> sqlx::Result<u64> {
        Ok(sqlx::query(tx.sql.promote).bind(self.limit).execute(&mut *tx.conn).await?.rows_affected())
    }
}

/// As many tasks for as many permits, in one statement. No claims: nothing was changed.
struct HandOver<'a>(&'a Exchange<'a>);

impl Unit for HandOver<'_> {
    type Answer = Vec<Claim>;
    const NAME: &'static str = "hand-over";
    const HOW: How = How::Statement;

    async fn run(&self, tx: &mut Tx<'_>) -> sqlx::Result<Vec<Claim>> {
        let Exchange { consumer, semaphore, ended, policies, sent, .. } = self.0;
        let kinds: Vec<_> = policies.iter().map(Policy::encode).collect();
        let rows = sqlx::query(tx.sql.hand_over)
            .bind(encode(*ended))
            .bind(*consumer)
            .bind(*semaphore)
            .bind(json!(kinds).to_string())
            .bind(i64::try_from(self.0.want).unwrap_or(i64::MAX))
            .fetch_all(&mut *tx.conn)
            .await?;
        let mut claims = Vec::with_capacity(rows.len());
        for row in rows {
            let kind = row.text("kind")?;
            let policy = policies.iter().find(|policy| policy.kind == kind);
            let policy = policy.ok_or_else(|| sqlx::Error::Protocol(format!("nobody asked for {kind:?}")))?;
            claims.push(Picked { row, policy }.claim(*sent)?);
        }
        Ok(claims)
    }
}

impl Unit for Exchange<'_> {
    type Answer = Exchanged;
    const NAME: &'static str = "exchange";

    async fn run(&self, tx: &mut Tx<'_>) -> sqlx::Result<Exchanged> {
        for ended in self.ended {
            heed(tx, self.consumer, ended).await?;
        }
        let may_claim = match self.probe {
            Some(downstream) => may_probe(tx, downstream).await?,
            None => true,
        };
        let (recorded, ours) = self.sort_out(tx).await?;
        let freed = settle(tx, &ours).await?;
        let claims = if may_claim { self.take(tx, freed).await? } else { Vec::new() };
        if let (Some(downstream), Some(claim)) = (self.probe, claims.first()) {
            probing(tx, downstream, claim.attempt).await?;
        }
        permits(tx, self.semaphore, i64::try_from(claims.len()).unwrap_or(i64::MAX) - freed).await?;
        Ok(Exchanged { recorded, claims })
    }
}

impl Exchange<'_> {
    /// Does every end free its permit for good, and is a task wanted for each of them?
    fn swaps(&self) -> bool {
        let freed = |ended: &Ended| {
            ended.settlement.cooling.is_none() && ended.settlement.state.is_final() && ended.signal.is_none()
        };
        self.probe.is_none()
            && !self.ended.is_empty()
            && self.want == self.ended.len()
            && self.ended.iter().all(freed)
    }

    /// Logs the ended claims that are still ours, and answers which they are and what became of the others.
    async fn sort_out(&self, tx: &mut Tx<'_>) -> sqlx::Result<(Vec<Recorded>, Vec<&Ended>)> {
        if self.ended.is_empty() {
            return Ok((Vec::new(), Vec::new()));
        }
        let all: Vec<_> = self.ended.iter().collect();
        if log(tx, self.consumer, &all, Some(self.consumer)).await? == all.len() as u64 {
            return Ok((vec![Recorded::Done; all.len()], all));
        }
        let list = |ended: &[&Ended]| {
            let mut attempts: Vec<_> = ended.iter().map(|ended| ended.attempt).collect();
            attempts.sort_unstable_by_key(|attempt| attempt.task); // the one lock order
            json!(attempts.iter().map(|a| json!({"id": a.task, "claim_no": a.claim_no})).collect::<Vec<_>>())
                .to_string()
        };
        let rows =
            sqlx::query(tx.sql.own).bind(list(&all)).bind(self.consumer).fetch_all(&mut *tx.conn).await?;
        let owned: Vec<Attempt> = rows.iter().map(Read::attempt).collect::<sqlx::Result<_>>()?;
        let (ours, others): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|ended| owned.contains(&ended.attempt));

        // Not running for us any more. Where the log has our own word, an earlier answer got lost, not the claim.
        let mut done = owned;
        if !others.is_empty() {
            for row in sqlx::query(tx.sql.ended_by).bind(list(&others)).fetch_all(&mut *tx.conn).await? {
                if row.text("ended_by")? == self.consumer {
                    done.push(Attempt { task: row.int("task")?, claim_no: row.int("claim_no")? });
                }
            }
        }
        let recorded = self
            .ended
            .iter()
            .map(|ended| if done.contains(&ended.attempt) { Recorded::Done } else { Recorded::Lost })
            .collect();
        Ok((recorded, ours))
    }

    /// Takes the first due tasks of all our kinds together: as many as we free anyway, and more only under the semaphore's
    /// lock.
    async fn take(&self, tx: &mut Tx<'_>, freed: i64) -> sqlx::Result<Vec<Claim>> {
        let want = i64::try_from(self.want).unwrap_or(i64::MAX);
        let most = if want > freed { freed + self.free(tx).await? } else { want }.clamp(0, want);
        if most == 0 || self.policies.is_empty() {
            return Ok(Vec::new());
        }
        let mut room = most;
        let mut expired = Vec::new();
        let mut picked: Vec<((i64, i64, i64), Picked<'_>)> = Vec::new();
        for policy in self.policies {
            let rows = sqlx::query(tx.sql.pick)
                .bind(self.semaphore)
                .bind(&*policy.kind)
                .bind(self.semaphore)
                .bind(&*policy.kind)
                .bind(self.probe.map_or(&*policy.downstream, |_| ""))
                .bind(most)
                .fetch_all(&mut *tx.conn)
                .await?;
            for row in rows {
                // A hand-over has no lock: of what it reads only the negative part counts, where the max was lowered.
                if want <= freed {
                    room = row.int_or_null("free")?.unwrap_or(-freed).min(0) + freed;
                }
                if row.int("expired")? != 0 {
                    expired.push(row.int("id")?);
                    continue;
                }
                let order = (-row.int("priority")?, row.int("run_at")?, row.int("id")?);
                picked.push((order, Picked { row, policy }));
            }
        }
        lapse(tx, expired).await?;
        picked.sort_by_key(|(order, _)| *order);
        picked.truncate(usize::try_from(room.clamp(0, most)).unwrap_or(usize::MAX));
        if picked.is_empty() {
            return Ok(Vec::new());
        }
        let mut claims = Vec::with_capacity(picked.len());
        let mut marks = Vec::with_capacity(picked.len());
        for (_, picked) in &picked {
            let claim = picked.claim(self.sent)?;
            let mut mark = picked.policy.encode();
            mark["id"] = json!(claim.attempt.task);
            marks.push(mark);
            claims.push(claim);
        }
        let marked = sqlx::query(tx.sql.mark)
            .bind(json!(marks).to_string())
            .bind(self.consumer)
            .bind(self.consumer)
            .execute(&mut *tx.conn)
            .await?
            .rows_affected();
        match marked {
            0 => Ok(Vec::new()), // not alive any more: the heartbeat will tell
            n if n == claims.len() as u64 => Ok(claims),
            n => Err(sqlx::Error::Protocol(format!("{} tasks picked, but {n} marked", claims.len()))),
        }
    }

    /// How many permits are free. It locks the semaphore: exact until the end of the transaction.
    async fn free(&self, tx: &mut Tx<'_>) -> sqlx::Result<i64> {
        let rows = sqlx::query(tx.sql.lock).bind(self.semaphore).fetch_all(&mut *tx.conn).await?;
        rows.first().map_or(Ok(0), |row| Ok(row.int("max_permits")? - row.int("in_use")?))
    }
}

/// A due task that is locked for us.
struct Picked<'p> {
    row: AnyRow,
    policy: &'p Policy,
}

impl Picked<'_> {
    fn claim(&self, sent: Instant) -> sqlx::Result<Claim> {
        let row = &self.row;
        Ok(Claim {
            attempt: row.attempt()?,
            kind: row.text("kind")?,
            semaphore: row.text("semaphore")?,
            biz_key: row.text_or_null("biz_key")?,
            payload: row.try_get("payload")?,
            standing: crate::model::Standing {
                attempts: row.count("attempts")?,
                max_attempts: row.count_or_null("max_attempts")?.unwrap_or(self.policy.max_attempts),
                on_abandon: row.word_or_null("on_abandon")?.unwrap_or(self.policy.on_abandon),
            },
            timeout: row.seconds_or_null("timeout")?,
            sent,
        })
    }
}
