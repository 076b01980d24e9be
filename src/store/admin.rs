//! What people do: tune, cancel, retry, accept, each on record. Called by the command line and the admin server.

use jiff::Timestamp;
use sqlx::any::AnyRow;

use super::dependents::tell;
use super::record::{record, wake};
use super::rows::{self, Read};
use super::unit::{Tx, Unit};
use super::{Result, Store};
use crate::model::{End, Ended, OnAbandon, Outcome, Retry, State, Verdict, Why, settle};

/// The answer to a cancel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cancelled {
    /// It had not started.
    Done,
    /// It was running: its permit cools until its call must be over.
    Cooling,
    /// It is finished already.
    Finished(State),
    /// There is no such task.
    Missing,
}

/// The answer to a retry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retried {
    /// It is pending.
    Done,
    /// It runs again at this instant, when the call that was given up must be over.
    AfterCooling(Timestamp),
    /// It is not failed or cancelled.
    NotFinished(State),
    /// There is no such task.
    Missing,
}

/// The answer to an accept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accepted {
    /// It succeeded with the late answer to this attempt (its `claim_no`).
    Done(i64),
    /// No late answer says that it is done.
    NoEvidence,
    /// It runs, or has its end.
    NotWaiting(State),
    /// There is no such task.
    Missing,
}

impl Store {
    /// Sets the cap; answers whether there is such a semaphore.
    pub async fn set_max(&mut self, semaphore: &str, max: i64, who: &str) -> Result<bool> {
        self.run(&SetMax { semaphore, max, who }).await
    }

    /// Adds a semaphore.
    pub async fn add_semaphore(&mut self, semaphore: &str, max: i64, who: &str) -> Result<()> {
        self.run(&AddSemaphore { semaphore, max, who }).await
    }

    /// Calls a task off, also while it runs: its owner learns of it as lost, and the permit cools.
    pub async fn cancel(&mut self, id: i64, who: &str) -> Result<Cancelled> {
        self.run(&Cancel { id, who }).await
    }

    /// Makes a failed or cancelled task runnable again with a whole budget of attempts. While a call of it may still run
    /// downstream, its `on_abandon` decides whether it waits for that.
    pub async fn retry(&mut self, id: i64, who: &str) -> Result<Retried> {
        self.run(&RetryTask { id, who }).await
    }

    /// The same, and what failed because this task did, or for that, waits for it again; answers how many did.
    pub async fn retry_with_dependents(&mut self, id: i64, who: &str) -> Result<(Retried, usize)> {
        let retried = self.retry(id, who).await?;
        let revived = match retried {
            // What was retried before it was asked for the dependents: they wait for it as well.
            Retried::Done
            | Retried::AfterCooling(_)
            | Retried::NotFinished(State::Scheduled | State::Pending | State::Running) => {
                self.revive_dependents(id).await?
            }
            Retried::NotFinished(_) | Retried::Missing => 0,
        };
        Ok((retried, revived))
    }

    /// Takes the last late answer that says it is done as the result of a task that waits to run again or has failed, so
    /// that the work is not done again.
    pub async fn accept(&mut self, id: i64, who: &str) -> Result<Accepted> {
        self.run(&Accept { id, who }).await
    }
}

/// Puts on record what somebody did.
pub(super) async fn act(
    tx: &mut Tx<'_>,
    who: &str,
    what: &str,
    task: Option<i64>,
    detail: Option<String>,
) -> sqlx::Result<()> {
    sqlx::query(tx.sql.act).bind(who).bind(what).bind(task).bind(detail).execute(&mut *tx.conn).await?;
    Ok(())
}

struct SetMax<'a> {
    semaphore: &'a str,
    max: i64,
    who: &'a str,
}

impl Unit for SetMax<'_> {
    type Answer = bool;
    const NAME: &'static str = "set max_permits";

    async fn run(&self, tx: &mut Tx<'_>) -> sqlx::Result<bool> {
        let set =
            sqlx::query(tx.sql.set_max).bind(self.max).bind(self.semaphore).execute(&mut *tx.conn).await?;
        if set.rows_affected() == 0 {
            return Ok(false);
        }
        act(tx, self.who, "set max_permits", None, Some(format!("{} = {}", self.semaphore, self.max)))
            .await?;
        Ok(true)
    }
}

struct AddSemaphore<'a> {
    semaphore: &'a str,
    max: i64,
    who: &'a str,
}

impl Unit for AddSemaphore<'_> {
    type Answer = ();
    const NAME: &'static str = "add a semaphore";

    async fn run(&self, tx: &mut Tx<'_>) -> sqlx::Result<()> {
        act(tx, self.who, "add semaphore", None, Some(format!("{} = {}", self.semaphore, self.max))).await?;
        sqlx::query(tx.sql.add_semaphore).bind(self.semaphore).bind(self.max).execute(&mut *tx.conn).await?;
        Ok(())
    }
}

/// A locked task, and what decides its next move.
async fn standing(tx: &mut Tx<'_>, id: i64) -> sqlx::Result<Option<(AnyRow, State)>> {
    let Some(row) = sqlx::query(tx.sql.standing).bind(id).fetch_all(&mut *tx.conn).await?.pop() else {
        return Ok(None);
    };
    let state = row.word("state")?;
    Ok(Some((row, state)))
}

/// Tells the end of this task, where somebody waits for it.
async fn tell_if_expected(tx: &mut Tx<'_>, row: &AnyRow, id: i64) -> sqlx::Result<()> {
    if row.int("dependents")? == 1 { tell(tx, vec![id]).await } else { Ok(()) }
}

struct Cancel<'a> {
    id: i64,
    who: &'a str,
}

impl Unit for Cancel<'_> {
    type Answer = Cancelled;
    const NAME: &'static str = "cancel";

    async fn run(&self, tx: &mut Tx<'_>) -> sqlx::Result<Cancelled> {
        let Some((row, state)) = standing(tx, self.id).await? else { return Ok(Cancelled::Missing) };
        let reason = format!("cancelled by {}", self.who);
        let answer = match state {
            State::Succeeded | State::Failed | State::Cancelled => return Ok(Cancelled::Finished(state)),
            State::Running => {
                let outcome = Outcome {
                    verdict: Verdict::Cancelled { error: reason },
                    end: End::Unclear(Why::Cancelled),
                    status: None,
                };
                let ended = Ended {
                    attempt: row.attempt()?,
                    semaphore: row.text("semaphore")?,
                    called_after: None,
                    status: None,
                    settlement: settle(row.standing()?, &outcome, &Retry::default(), 0.0),
                    signal: None,
                };
                record(tx, self.who, &[&ended]).await?;
                Cancelled::Cooling
            }
            State::Blocked | State::Scheduled | State::Pending => {
                sqlx::query(tx.sql.cancel).bind(reason).bind(self.id).execute(&mut *tx.conn).await?;
                tell_if_expected(tx, &row, self.id).await?;
                Cancelled::Done
            }
        };
        act(tx, self.who, "cancel", Some(self.id), None).await?;
        Ok(answer)
    }
}

struct RetryTask<'a> {
    id: i64,
    who: &'a str,
}

impl Unit for RetryTask<'_> {
    type Answer = Retried;
    const NAME: &'static str = "retry";

    async fn run(&self, tx: &mut Tx<'_>) -> sqlx::Result<Retried> {
        let Some((row, state)) = standing(tx, self.id).await? else { return Ok(Retried::Missing) };
        if !matches!(state, State::Failed | State::Cancelled) {
            return Ok(Retried::NotFinished(state));
        }
        let overlap_allowed = row.standing()?.on_abandon == OnAbandon::Retry;
        let cools = rows::one(sqlx::query(tx.sql.cools_until).bind(self.id).fetch_all(&mut *tx.conn).await?)?;
        let at = cools.int_or_null("until")?.filter(|_| !overlap_allowed);
        sqlx::query(tx.sql.revive).bind(at).bind(at).bind(self.id).execute(&mut *tx.conn).await?;
        wake(tx).await?;
        act(tx, self.who, "retry", Some(self.id), None).await?;
        let Some(_) = at else { return Ok(Retried::Done) };
        Ok(Retried::AfterCooling(cools.instant("until")?))
    }
}

struct Accept<'a> {
    id: i64,
    who: &'a str,
}

impl Unit for Accept<'_> {
    type Answer = Accepted;
    const NAME: &'static str = "accept";

    async fn run(&self, tx: &mut Tx<'_>) -> sqlx::Result<Accepted> {
        let Some((row, state)) = standing(tx, self.id).await? else { return Ok(Accepted::Missing) };
        if !matches!(state, State::Scheduled | State::Pending | State::Failed) {
            return Ok(Accepted::NotWaiting(state));
        }
        let evidence = sqlx::query(tx.sql.evidence).bind(self.id).fetch_all(&mut *tx.conn).await?;
        let Some(late) = evidence.first() else { return Ok(Accepted::NoEvidence) };
        let claim_no = late.int("claim_no")?;
        sqlx::query(tx.sql.accept)
            .bind(late.text_or_null("late_answer")?)
            .bind(self.id)
            .execute(&mut *tx.conn)
            .await?;
        tell_if_expected(tx, &row, self.id).await?;
        let detail = format!("the late answer to attempt {claim_no}");
        act(tx, self.who, "accept", Some(self.id), Some(detail)).await?;
        Ok(Accepted::Done(claim_no))
    }
}
