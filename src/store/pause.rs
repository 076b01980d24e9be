//! What is paused. The claim asks for it (`pick`), the look shows it; here is who changes it: a person, whoever finds a
//! downstream down, and its probe. The row is locked before any task or semaphore.

use super::admin::act;
use super::rows::{Read, micros};
use super::unit::{How, Tx, Unit};
use super::{Result, Store};
use crate::model::{Attempt, Ended, Pause, Scope};

impl Store {
    /// What is paused.
    pub async fn pauses(&mut self) -> Result<Vec<Pause>> {
        self.run(&Pauses).await
    }

    /// Pauses the tasks of this scope until [`Store::resume_claims`].
    pub async fn pause_claims(
        &mut self,
        scope: Scope,
        name: &str,
        why: Option<&str>,
        who: &str,
    ) -> Result<()> {
        self.run(&SetPause { scope, name, why, who }).await
    }

    /// Lets them go on; answers whether they were paused.
    pub async fn resume_claims(&mut self, scope: Scope, name: &str, who: &str) -> Result<bool> {
        self.run(&Resume { scope, name, who }).await
    }

    /// The probe of this downstream has been at it for so long that it cannot be down.
    pub async fn reopen(&mut self, downstream: &str, probe: Attempt) -> Result<bool> {
        self.run(&Reopen { downstream, probe }).await
    }
}

struct Pauses;

impl Unit for Pauses {
    type Answer = Vec<Pause>;
    const NAME: &'static str = "read pauses";
    const HOW: How = How::Reading;

    async fn run(&self, tx: &mut Tx<'_>) -> sqlx::Result<Vec<Pause>> {
        let rows = sqlx::query(tx.sql.pauses).fetch_all(&mut *tx.conn).await?;
        rows.iter()
            .map(|row| {
                let probe = row.int_or_null("task")?.zip(row.int_or_null("claim_no")?);
                Ok(Pause {
                    scope: row.word("what")?,
                    name: row.text("name")?,
                    since: row.instant("since")?,
                    until: row.instant_or_null("until")?,
                    failures: row.count("failures")?,
                    probe: probe.map(|(task, claim_no)| Attempt { task, claim_no }),
                    who: row.text("who")?,
                    why: row.text_or_null("why")?,
                })
            })
            .collect()
    }
}

struct SetPause<'a> {
    scope: Scope,
    name: &'a str,
    why: Option<&'a str>,
    who: &'a str,
}

impl Unit for SetPause<'_> {
    type Answer = ();
    const NAME: &'static str = "pause";

    async fn run(&self, tx: &mut Tx<'_>) -> sqlx::Result<()> {
        sqlx::query(tx.sql.pause)
            .bind(self.scope.as_str())
            .bind(self.name)
            .bind(self.who)
            .bind(self.why)
            .execute(&mut *tx.conn)
            .await?;
        act(tx, self.who, "pause", None, Some(words(self.scope, self.name))).await
    }
}

struct Resume<'a> {
    scope: Scope,
    name: &'a str,
    who: &'a str,
}

impl Unit for Resume<'_> {
    type Answer = bool;
    const NAME: &'static str = "resume";

    async fn run(&self, tx: &mut Tx<'_>) -> sqlx::Result<bool> {
        let gone = sqlx::query(tx.sql.resume)
            .bind(self.scope.as_str())
            .bind(self.name)
            .execute(&mut *tx.conn)
            .await?;
        if gone.rows_affected() == 0 {
            return Ok(false);
        }
        act(tx, self.who, "resume", None, Some(words(self.scope, self.name))).await?;
        Ok(true)
    }
}

fn words(scope: Scope, name: &str) -> String {
    format!("{scope} {name}").trim_end().to_owned()
}

struct Reopen<'a> {
    downstream: &'a str,
    probe: Attempt,
}

impl Unit for Reopen<'_> {
    type Answer = bool;
    const NAME: &'static str = "end a downstream's pause";
    const HOW: How = How::Statement;

    async fn run(&self, tx: &mut Tx<'_>) -> sqlx::Result<bool> {
        reopen(tx, self.downstream, self.probe).await
    }
}

async fn reopen(tx: &mut Tx<'_>, downstream: &str, probe: Attempt) -> sqlx::Result<bool> {
    let gone = sqlx::query(tx.sql.found_up)
        .bind(downstream)
        .bind(probe.task)
        .bind(probe.claim_no)
        .execute(&mut *tx.conn)
        .await?;
    Ok(gone.rows_affected() == 1)
}

/// Whose attempt says that its downstream is down, or up again.
pub(super) async fn heed(tx: &mut Tx<'_>, who: &str, ended: &Ended) -> sqlx::Result<()> {
    let Some(signal) = &ended.signal else { return Ok(()) };
    let Some(down) = signal.down else {
        reopen(tx, &signal.downstream, ended.attempt).await?;
        return Ok(());
    };
    let (down, why) = (micros(down), ended.settlement.error.as_deref());
    let again = sqlx::query(tx.sql.still_down)
        .bind(down)
        .bind(who)
        .bind(why)
        .bind(&*signal.downstream)
        .bind(ended.attempt.task)
        .bind(ended.attempt.claim_no)
        .execute(&mut *tx.conn)
        .await?;
    if again.rows_affected() == 0 {
        sqlx::query(tx.sql.trip)
            .bind(&*signal.downstream)
            .bind(down)
            .bind(who)
            .bind(why)
            .execute(&mut *tx.conn)
            .await?;
    }
    Ok(())
}

/// Whether the next claim of this downstream is the probe, and ours.
pub(super) async fn may_probe(tx: &mut Tx<'_>, downstream: &str) -> sqlx::Result<bool> {
    let won = sqlx::query(tx.sql.probe).bind(downstream).execute(&mut *tx.conn).await?;
    Ok(won.rows_affected() == 1)
}

/// This attempt is the probe that [`may_probe`] allowed.
pub(super) async fn probing(tx: &mut Tx<'_>, downstream: &str, probe: Attempt) -> sqlx::Result<()> {
    sqlx::query(tx.sql.probing)
        .bind(probe.task)
        .bind(probe.claim_no)
        .bind(downstream)
        .execute(&mut *tx.conn)
        .await?;
    Ok(())
}
