//! What retention reads and deletes: finished tasks with their attempts and actions, records of planned instants, old caps.
//! Called by `upkeep::retention`, which decides what is old.
//!
//! Reading locks nothing. A deletion is one short transaction over a list of ids: tasks that somebody else has locked, or
//! that are no longer finished for long enough, or that something needs, stay.

use serde_json::json;
use sqlx::Row;

use super::admin::act;
use super::rows::Read;
use super::unit::{How, Tx, Unit};
use super::{Result, Store};
use crate::model::State;

/// A finished task that is old enough to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finished {
    /// Its id.
    pub id: i64,
    /// When it finished, in microseconds since 1970.
    pub finished_at: i64,
    /// It has at most so many attempts.
    pub claim_no: i64,
    /// Something still needs it.
    pub kept: bool,
}

/// A record of a planned instant that its job has too many of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Surplus {
    /// Its id.
    pub id: i64,
    /// The run that it fired, while there is one.
    pub task: Option<i64>,
    /// That run is not over.
    pub kept: bool,
}

/// A record that belongs to no task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its id.
    pub id: i64,
    /// It is old enough to go; so are those before it.
    pub old: bool,
    /// It belongs to a task after all.
    pub kept: bool,
}

/// What is to be deleted in one transaction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Doomed {
    /// Tasks, with their attempts and actions.
    pub tasks: Vec<i64>,
    /// They finished before this instant (microseconds since 1970), or stay.
    pub before: i64,
    /// Records of planned instants.
    pub instants: Vec<i64>,
    /// Records of what people did.
    pub actions: Vec<i64>,
}

/// What was deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Forgotten {
    /// Tasks.
    pub tasks: u64,
    /// Attempts.
    pub attempts: u64,
    /// Records of planned instants.
    pub instants: u64,
    /// Records of what people did, those of tasks included.
    pub actions: u64,
}

impl Doomed {
    /// Nothing is to be deleted.
    pub fn is_empty(&self) -> bool {
        self.tasks.is_empty() && self.instants.is_empty() && self.actions.is_empty()
    }
}

impl std::ops::AddAssign for Forgotten {
    fn add_assign(&mut self, other: Self) {
        self.tasks += other.tasks;
        self.attempts += other.attempts;
        self.instants += other.instants;
        self.actions += other.actions;
    }
}

impl Store {
    /// Tasks in this final state that finished before an instant, oldest first, behind `after` (instant and id), at most
    /// `limit`. Instants in microseconds since 1970.
    pub async fn finished(
        &mut self,
        state: State,
        before: i64,
        after: (i64, i64),
        limit: i64,
    ) -> Result<Vec<Finished>> {
        self.run(&ReadFinished { state, before, after, limit }).await
    }

    /// Records of planned instants beyond the job's newest `keep`, oldest first, behind the id `after`, at most `limit`.
    pub async fn surplus(&mut self, job: &str, keep: u32, after: i64, limit: i64) -> Result<Vec<Surplus>> {
        self.run(&ReadSurplus { job, keep, after, limit }).await
    }

    /// Records of planned instants, oldest first, behind the id `after`, at most `limit`.
    pub async fn old_instants(&mut self, before: i64, after: i64, limit: i64) -> Result<Vec<Record>> {
        let text = self.database.sql.old_instants;
        self.run(&ReadRecords { text, before, after, limit }).await
    }

    /// Records of what people did, oldest first, behind the id `after`, at most `limit`.
    pub async fn old_actions(&mut self, before: i64, after: i64, limit: i64) -> Result<Vec<Record>> {
        let text = self.database.sql.old_actions;
        self.run(&ReadRecords { text, before, after, limit }).await
    }

    /// Deletes what of this may go.
    pub async fn forget(&mut self, doomed: &Doomed) -> Result<Forgotten> {
        self.run(doomed).await
    }

    /// Deletes caps of a semaphore that others have followed before an instant, at most `limit`; answers how many.
    pub async fn forget_limits(&mut self, semaphore: &str, before: i64, limit: i64) -> Result<u64> {
        self.run(&ForgetLimits { semaphore, before, limit }).await
    }

    /// Puts on record that somebody deleted history.
    pub async fn record_prune(&mut self, who: &str, detail: String) -> Result<()> {
        self.run(&RecordPrune { who, detail }).await
    }
}

struct ReadFinished {
    state: State,
    before: i64,
    after: (i64, i64),
    limit: i64,
}

impl Unit for ReadFinished {
    type Answer = Vec<Finished>;
    const NAME: &'static str = "look for old tasks";
    const HOW: How = How::Reading;

    async fn run(&self, tx: &mut Tx<'_>) -> sqlx::Result<Vec<Finished>> {
        let (instant, id) = self.after;
        let rows = sqlx::query(tx.sql.finished)
            .bind(self.state.as_str())
            .bind(instant)
            .bind(id)
            .bind(self.state.as_str())
            .bind(instant)
            .bind(self.before)
            .bind(self.limit)
            .fetch_all(&mut *tx.conn)
            .await?;
        rows.iter()
            .map(|row| {
                Ok(Finished {
                    id: row.int("id")?,
                    finished_at: row.int("finished_at")?,
                    claim_no: row.int("claim_no")?,
                    kept: row.int("kept")? != 0,
                })
            })
            .collect()
    }
}

struct ReadSurplus<'a> {
    job: &'a str,
    keep: u32,
    after: i64,
    limit: i64,
}

impl Unit for ReadSurplus<'_> {
    type Answer = Vec<Surplus>;
    const NAME: &'static str = "look for surplus instants";
    const HOW: How = How::Reading;

    async fn run(&self, tx: &mut Tx<'_>) -> sqlx::Result<Vec<Surplus>> {
        let rows = sqlx::query(tx.sql.surplus)
            .bind(self.job)
            .bind(self.after)
            .bind(self.job)
            .bind(i64::from(self.keep))
            .bind(self.limit)
            .fetch_all(&mut *tx.conn)
            .await?;
        rows.iter()
            .map(|row| {
                Ok(Surplus {
                    id: row.int("id")?,
                    task: row.int_or_null("task")?,
                    kept: row.int("kept")? != 0,
                })
            })
            .collect()
    }
}

struct ReadRecords {
    text: &'static str,
    before: i64,
    after: i64,
    limit: i64,
}

impl Unit for ReadRecords {
    type Answer = Vec<Record>;
    const NAME: &'static str = "look for old records";
    const HOW: How = How::Reading;

    async fn run(&self, tx: &mut Tx<'_>) -> sqlx::Result<Vec<Record>> {
        let rows = sqlx::query(self.text)
            .bind(self.before)
            .bind(self.after)
            .bind(self.limit)
            .fetch_all(&mut *tx.conn)
            .await?;
        rows.iter()
            .map(|row| {
                Ok(Record { id: row.int("id")?, old: row.int("old")? != 0, kept: row.int("kept")? != 0 })
            })
            .collect()
    }
}

impl Unit for Doomed {
    type Answer = Forgotten;
    const NAME: &'static str = "forget";

    async fn run(&self, tx: &mut Tx<'_>) -> sqlx::Result<Forgotten> {
        let mut forgotten = Forgotten::default();
        if !self.tasks.is_empty() {
            let mut ids = self.tasks.clone();
            ids.sort_unstable(); // the one lock order
            let rows = sqlx::query(tx.sql.unneeded)
                .bind(json!(ids).to_string())
                .bind(self.before)
                .fetch_all(&mut *tx.conn)
                .await?;
            let ids: Vec<i64> = rows.iter().map(|row| row.try_get(0)).collect::<sqlx::Result<_>>()?;
            // All that belongs to a task goes with it.
            forgotten.attempts = delete(tx, tx.sql.forget_attempts, &ids).await?;
            forgotten.actions = delete(tx, tx.sql.forget_actions_of, &ids).await?;
            forgotten.tasks = delete(tx, tx.sql.forget_tasks, &ids).await?;
        }
        forgotten.instants = delete(tx, tx.sql.forget_instants, &self.instants).await?;
        forgotten.actions += delete(tx, tx.sql.forget_actions, &self.actions).await?;
        Ok(forgotten)
    }
}

async fn delete(tx: &mut Tx<'_>, statement: &'static str, ids: &[i64]) -> sqlx::Result<u64> {
    if ids.is_empty() {
        return Ok(0);
    }
    Ok(sqlx::query(statement).bind(json!(ids).to_string()).execute(&mut *tx.conn).await?.rows_affected())
}

struct ForgetLimits<'a> {
    semaphore: &'a str,
    before: i64,
    limit: i64,
}

impl Unit for ForgetLimits<'_> {
    type Answer = u64;
    const NAME: &'static str = "forget old caps";

    async fn run(&self, tx: &mut Tx<'_>) -> sqlx::Result<u64> {
        let done = sqlx::query(tx.sql.forget_limits)
            .bind(self.semaphore)
            .bind(self.semaphore)
            .bind(self.before)
            .bind(self.limit)
            .execute(&mut *tx.conn)
            .await?;
        Ok(done.rows_affected())
    }
}

struct RecordPrune<'a> {
    who: &'a str,
    detail: String,
}

impl Unit for RecordPrune<'_> {
    type Answer = ();
    const NAME: &'static str = "record a prune";

    async fn run(&self, tx: &mut Tx<'_>) -> sqlx::Result<()> {
        act(tx, self.who, "prune", None, Some(self.detail.clone())).await
    }
}
