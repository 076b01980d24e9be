//! What the reclaimer and the auditor do: fence expired consumers, take their tasks back, end coolings, repair drift.
//!
//! Nothing here needs a permit or a leader. Every step restates its condition, skips locked rows, and may be done by any
//! number of processes at once.

use std::time::Duration;

use serde_json::json;
use sqlx::Row;
use sqlx::any::AnyRow;

use super::admin::act;
use super::record::{permits, record};
use super::rows::{Read, micros, one};
use super::unit::{How, Tx, Unit};
use super::{Result, Store};
use crate::model::{Attempt, End, Ended, Outcome, Retry, Verdict, Why, settle};

/// What one read says of all there may be to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Check {
    /// The database's clock, in microseconds since 1970.
    pub now: i64,
    /// A consumer's lease has passed.
    pub expired: bool,
    /// A running task is nobody's.
    pub abandoned: bool,
    /// A cooling is over, or a counter is wrong.
    pub permits: bool,
}

/// A consumer whose lease has passed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expired {
    /// Its id.
    pub consumer: String,
    /// The lease as stored: a reclaimer fences only what it has read twice.
    pub lease_until: i64,
}

/// A permit that cools, and whose call somebody can be asked about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cooling {
    /// Its row.
    pub id: i64,
    /// Whose call was given up.
    pub attempt: Attempt,
    /// Who made the call.
    pub consumer: String,
    /// The task's kind.
    pub kind: String,
    /// Nobody but this attempt has ever claimed the task.
    pub only: bool,
}

/// What the auditor found and did on one semaphore.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Repair {
    /// The counter as it stood.
    pub in_use: i64,
    /// Running tasks and cooling permits.
    pub counted: i64,
    /// Permits that nothing explains, now cooling.
    pub cooling: i64,
}

impl Repair {
    /// Counter above (+) or below (-) what is there.
    pub fn drift(&self) -> i64 {
        self.in_use - self.counted
    }
}

impl Store {
    /// The database's clock, in microseconds since 1970.
    pub async fn clock(&mut self) -> Result<i64> {
        self.run(&ReadClock).await
    }

    /// Whether there is anything to do at all, in one read.
    pub async fn check(&mut self, lease: Duration) -> Result<Check> {
        self.run(&ReadCheck { lease }).await
    }

    /// Consumers whose lease has passed by the database's clock.
    pub async fn expired(&mut self) -> Result<Vec<Expired>> {
        self.run(&ReadExpired).await
    }

    /// Declares a consumer gone, for ever, if its lease is still the one that was read and still over.
    pub async fn fence(&mut self, expired: &Expired) -> Result<bool> {
        self.run(&Fence { expired }).await
    }

    /// Takes back running tasks that nobody will finish, ids above `after`, at most `limit`; their permits cool. A task
    /// whose call must have been over for a whole `lease` counts too. Answers the attempts that ended.
    pub async fn reclaim(
        &mut self,
        by: &str,
        lease: Duration,
        after: i64,
        limit: i64,
    ) -> Result<Vec<Attempt>> {
        let abandoned = Abandoned { lease, after, limit };
        match self.run(&Reclaim { by, abandoned }).await {
            Err(error) if error.is_about_rows() => self.reclaim_singly(by, abandoned).await,
            done => done,
        }
    }

    /// One by one, past rows that cannot be taken back (edited by hand), up to the first batch with one that can.
    async fn reclaim_singly(&mut self, by: &str, mut abandoned: Abandoned) -> Result<Vec<Attempt>> {
        let mut ended = Vec::new();
        while ended.is_empty() {
            let batch = self.run(&abandoned).await?;
            let Some(last) = batch.last() else { break };
            abandoned.after = *last;
            for id in batch {
                let one = Abandoned { after: id - 1, limit: 1, ..abandoned };
                match self.run(&Reclaim { by, abandoned: one }).await {
                    Ok(taken) => ended.extend(taken),
                    Err(error) if error.is_about_rows() => {} // the audit names it
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(ended)
    }

    /// Frees permits of one semaphore whose calls must be over, at most `limit`; answers how many.
    pub async fn end_coolings(&mut self, semaphore: &str, limit: i64) -> Result<i64> {
        let as_of = self.clock().await?;
        self.end_coolings_as_of(semaphore, as_of, limit).await
    }

    /// The same, judged by an instant of the database's clock (microseconds since 1970) that was read before.
    pub async fn end_coolings_as_of(&mut self, semaphore: &str, as_of: i64, limit: i64) -> Result<i64> {
        self.run(&EndCoolings { semaphore, as_of, limit }).await
    }

    /// Permits that cool, ids above `after`, at most `limit`.
    pub async fn coolings(&mut self, after: i64, limit: i64) -> Result<Vec<Cooling>> {
        self.run(&ReadCoolings { after, limit }).await
    }

    /// Frees the permit of a call that is known to be over; answers whether it still cooled.
    pub async fn end_cooling(&mut self, cooling: &Cooling) -> Result<bool> {
        self.run(&EndCooling { cooling }).await
    }

    /// How long any permit now taken may be held at most.
    pub async fn longest_hold(&mut self, semaphore: &str) -> Result<Duration> {
        let (longest, _) = self.run(&Longest { semaphore }).await?;
        Ok(Duration::from_micros(u64::try_from(longest).unwrap_or_default()))
    }

    /// Counts under the semaphore's lock and repairs the counter without ever opening the cap: a deficit is raised at
    /// once, a surplus cools for the longest bound, at least `hold`. What it did is on record.
    pub async fn repair(&mut self, semaphore: &str, hold: Duration, who: &str) -> Result<Repair> {
        self.run(&RepairUnit { semaphore, hold, who }).await
    }

    /// Forgets consumers that have been gone for longer than `age`.
    pub async fn retire_consumers(&mut self, age: Duration) -> Result<u64> {
        self.run(&Retire { age }).await
    }
}

struct ReadClock;

impl Unit for ReadClock {
    type Answer = i64;
    const NAME: &'static str = "read the clock";
    const HOW: How = How::Reading;

    async fn run(&self, tx: &mut Tx<'_>) -> sqlx::Result<i64> {
        one(sqlx::query(tx.sql.clock).fetch_all(&mut *tx.conn).await?)?.try_get(0)
    }
}

struct ReadCheck {
    lease: Duration,
}

impl Unit for ReadCheck {
    type Answer = Check;
    const NAME: &'static str = "check";
    const HOW: How = How::Reading;

    async fn run(&self, tx: &mut Tx<'_>) -> sqlx::Result<Check> {
        let row = sqlx::query(tx.sql.check).bind(micros(self.lease)).fetch_one(&mut *tx.conn).await?;
        let is = |column| row.int(column).map(|n| n != 0);
        Ok(Check {
            now: row.int("now")?,
            expired: is("expired")?,
            abandoned: is("abandoned")?,
            permits: is("cooled")? || is("drifted")?,
        })
    }
}

struct ReadExpired;

impl Unit for ReadExpired {
    type Answer = Vec<Expired>;
    const NAME: &'static str = "look for expired leases";
    const HOW: How = How::Reading;

    async fn run(&self, tx: &mut Tx<'_>) -> sqlx::Result<Vec<Expired>> {
        let rows = sqlx::query(tx.sql.expired).fetch_all(&mut *tx.conn).await?;
        rows.iter()
            .map(|row| Ok(Expired { consumer: row.text("id")?, lease_until: row.int("lease_until")? }))
            .collect()
    }
}

struct Fence<'a> {
    expired: &'a Expired,
}

impl Unit for Fence<'_> {
    type Answer = bool;
    const NAME: &'static str = "fence";

    async fn run(&self, tx: &mut Tx<'_>) -> sqlx::Result<bool> {
        let done = sqlx::query(tx.sql.fence)
            .bind(&*self.expired.consumer)
            .bind(self.expired.lease_until)
            .execute(&mut *tx.conn)
            .await?;
        Ok(done.rows_affected() == 1)
    }
}

/// Which of them to look at.
#[derive(Clone, Copy)]
struct Abandoned {
    lease: Duration,
    after: i64,
    limit: i64,
}

impl Unit for Abandoned {
    type Answer = Vec<i64>;
    const NAME: &'static str = "look for abandoned tasks";

    async fn run(&self, tx: &mut Tx<'_>) -> sqlx::Result<Vec<i64>> {
        self.rows(tx).await?.iter().map(|row| row.int("id")).collect()
    }
}

impl Abandoned {
    /// Locked.
    async fn rows(&self, tx: &mut Tx<'_>) -> sqlx::Result<Vec<AnyRow>> {
        sqlx::query(tx.sql.abandoned)
            .bind(self.after)
            .bind(micros(self.lease))
            .bind(self.limit)
            .fetch_all(&mut *tx.conn)
            .await
    }
}

struct Reclaim<'a> {
    by: &'a str,
    abandoned: Abandoned,
}

impl Unit for Reclaim<'_> {
    type Answer = Vec<Attempt>;
    const NAME: &'static str = "reclaim";

    /// The permits go from tasks to cooling rows, so no semaphore is touched.
    async fn run(&self, tx: &mut Tx<'_>) -> sqlx::Result<Vec<Attempt>> {
        let ended = self.abandoned.rows(tx).await?;
        let ended = ended.iter().map(abandoned).collect::<sqlx::Result<Vec<_>>>()?;
        // The owner's own name in the log would tell a late finisher that it was recorded.
        let by = format!("reclaimer {}", self.by);
        record(tx, &by, &ended.iter().collect::<Vec<_>>()).await?;
        Ok(ended.iter().map(|ended| ended.attempt).collect())
    }
}

fn abandoned(row: &AnyRow) -> sqlx::Result<Ended> {
    let consumer = row.text("consumer")?;
    let outcome = Outcome {
        verdict: Verdict::Abandoned { error: format!("consumer {consumer} vanished") },
        end: End::Unclear(Why::Abandoned),
        status: None,
    };
    Ok(Ended {
        attempt: row.attempt()?,
        semaphore: row.text("semaphore")?,
        called_after: None,
        status: None,
        settlement: settle(row.standing()?, &outcome, &Retry::default(), 0.0),
    })
}

struct EndCoolings<'a> {
    semaphore: &'a str,
    as_of: i64,
    limit: i64,
}

impl Unit for EndCoolings<'_> {
    type Answer = i64;
    const NAME: &'static str = "end coolings";

    async fn run(&self, tx: &mut Tx<'_>) -> sqlx::Result<i64> {
        let query = sqlx::query(tx.sql.cooled).bind(self.as_of).bind(self.semaphore).bind(self.limit);
        let rows = query.fetch_all(&mut *tx.conn).await?;
        let freed = free_coolings(tx, &rows).await?;
        permits(tx, self.semaphore, -freed).await?;
        Ok(freed)
    }
}

struct ReadCoolings {
    after: i64,
    limit: i64,
}

impl Unit for ReadCoolings {
    type Answer = Vec<Cooling>;
    const NAME: &'static str = "read coolings";
    const HOW: How = How::Reading;

    async fn run(&self, tx: &mut Tx<'_>) -> sqlx::Result<Vec<Cooling>> {
        let rows =
            sqlx::query(tx.sql.coolings).bind(self.after).bind(self.limit).fetch_all(&mut *tx.conn).await?;
        rows.iter()
            .map(|row| {
                let attempt = Attempt { task: row.int("task")?, claim_no: row.int("claim_no")? };
                Ok(Cooling {
                    id: row.int("id")?,
                    attempt,
                    consumer: row.text("consumer")?,
                    kind: row.text("kind")?,
                    only: row.int("last")? == 1,
                })
            })
            .collect()
    }
}

struct EndCooling<'a> {
    cooling: &'a Cooling,
}

impl Unit for EndCooling<'_> {
    type Answer = bool;
    const NAME: &'static str = "end a cooling";

    async fn run(&self, tx: &mut Tx<'_>) -> sqlx::Result<bool> {
        let Cooling { attempt, consumer, .. } = self.cooling;
        let rows = sqlx::query(tx.sql.own_cooling)
            .bind(attempt.task)
            .bind(attempt.claim_no)
            .bind(consumer)
            .fetch_all(&mut *tx.conn)
            .await?;
        end_own(tx, &rows).await
    }
}

/// Ends the cooling of one attempt, locked by the caller, if it is still there.
pub(super) async fn end_own(tx: &mut Tx<'_>, rows: &[AnyRow]) -> sqlx::Result<bool> {
    let Some(row) = rows.first() else { return Ok(false) };
    let freed = free_coolings(tx, rows).await?;
    permits(tx, &row.text("semaphore")?, -freed).await?;
    Ok(freed > 0)
}

/// Ends these coolings, locked by the caller, and tells the log; the caller frees as many permits, last.
async fn free_coolings(tx: &mut Tx<'_>, rows: &[AnyRow]) -> sqlx::Result<i64> {
    if rows.is_empty() {
        return Ok(0);
    }
    let mut ids = Vec::with_capacity(rows.len());
    let mut attempts = Vec::new();
    for row in rows {
        ids.push(row.int("id")?);
        if let (Some(task), Some(claim_no)) = (row.int_or_null("task")?, row.int_or_null("claim_no")?) {
            attempts.push(json!({"id": task, "claim_no": claim_no}));
        }
    }
    if !attempts.is_empty() {
        sqlx::query(tx.sql.released).bind(json!(attempts).to_string()).execute(&mut *tx.conn).await?;
    }
    let ended = sqlx::query(tx.sql.uncool).bind(json!(ids).to_string()).execute(&mut *tx.conn).await?;
    Ok(i64::try_from(ended.rows_affected()).unwrap_or(i64::MAX))
}

struct Longest<'a> {
    semaphore: &'a str,
}

impl Unit for Longest<'_> {
    /// Microseconds, and the highest cap this semaphore ever had.
    type Answer = (i64, i64);
    const NAME: &'static str = "read the longest bound";
    const HOW: How = How::Reading;

    async fn run(&self, tx: &mut Tx<'_>) -> sqlx::Result<(i64, i64)> {
        let row = one(sqlx::query(tx.sql.longest).bind(self.semaphore).fetch_all(&mut *tx.conn).await?)?;
        Ok((row.try_get(0)?, row.try_get(1)?))
    }
}

struct RepairUnit<'a> {
    semaphore: &'a str,
    hold: Duration,
    who: &'a str,
}

impl Unit for RepairUnit<'_> {
    type Answer = Repair;
    const NAME: &'static str = "audit";

    /// Lock, then count: one statement would count from a snapshot older than its lock.
    async fn run(&self, tx: &mut Tx<'_>) -> sqlx::Result<Repair> {
        let locked = sqlx::query(tx.sql.lock).bind(self.semaphore).fetch_all(&mut *tx.conn).await?;
        let Some(row) = locked.first() else { return Ok(Repair::default()) };
        let in_use = row.int("in_use")?;
        let counted = sqlx::query(tx.sql.counted)
            .bind(self.semaphore)
            .bind(self.semaphore)
            .fetch_all(&mut *tx.conn)
            .await?;
        let counted: i64 = one(counted)?.try_get(0)?;
        let mut repair = Repair { in_use, counted, cooling: 0 };
        if in_use > counted {
            // No more calls can be in flight than were ever allowed at once; what is counted beyond that is only a number.
            let (longest, highest) = Longest { semaphore: self.semaphore }.run(tx).await?;
            repair.cooling = (in_use - counted).min(highest);
            sqlx::query(tx.sql.drift)
                .bind(self.semaphore)
                .bind(longest.max(micros(self.hold)))
                .bind(repair.cooling)
                .execute(&mut *tx.conn)
                .await?;
        }
        if in_use != counted + repair.cooling {
            let set = sqlx::query(tx.sql.repair)
                .bind(counted + repair.cooling)
                .bind(self.semaphore)
                .bind(in_use)
                .execute(&mut *tx.conn)
                .await?;
            if set.rows_affected() != 1 {
                return Err(sqlx::Error::Protocol("the counter changed under its lock".to_owned()));
            }
        }
        if repair.drift() != 0 {
            let Repair { in_use, counted, cooling } = repair;
            let detail =
                format!("{}: in_use was {in_use}, counted {counted}, now cooling {cooling}", self.semaphore);
            act(tx, self.who, "repair", None, Some(detail)).await?;
        }
        Ok(repair)
    }
}

struct Retire {
    age: Duration,
}

impl Unit for Retire {
    type Answer = u64;
    const NAME: &'static str = "forget consumers";

    async fn run(&self, tx: &mut Tx<'_>) -> sqlx::Result<u64> {
        Ok(sqlx::query(tx.sql.retired).bind(micros(self.age)).execute(&mut *tx.conn).await?.rows_affected())
    }
}
