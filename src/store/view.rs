//! What people see: semaphores, holders, consumers, tasks and their history. Only reads. Called by the command line and the
//! admin server.

use jiff::Timestamp;
use sqlx::Row;

use super::rows::{self, Read};
use super::unit::{How, Tx, Unit};
use super::{Result, Store};
use crate::model::{Holder, PermitState, Semaphore, State, Task};

/// Which tasks to list. An open field lets everything through.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// In this state.
    pub state: Option<State>,
    /// Of this kind.
    pub kind: Option<String>,
    /// Of this semaphore.
    pub semaphore: Option<String>,
    /// With this business key.
    pub biz_key: Option<String>,
    /// Only ids below this one: the `next` of the page before.
    pub below: Option<i64>,
}

/// One ended attempt, as the log has it.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct AttemptLog {
    /// The fencing token.
    pub claim_no: i64,
    /// Who ran it.
    pub consumer: String,
    /// When the permit was taken.
    pub claimed_at: Timestamp,
    /// When the call began, where one did.
    pub called_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Timestamp,
    /// When its permit became free; `None` while it cools.
    pub permit_released_at: Option<Timestamp>,
    /// `succeeded`, `failed`, `abandoned`, `handed_back` or `cancelled`.
    pub outcome: String,
    /// The HTTP status, where there was one.
    pub status: Option<i64>,
    /// What went wrong.
    pub error: Option<String>,
    /// The consumer itself, or who took the attempt away.
    pub ended_by: String,
    /// When the downstream's answer came although the claim was lost.
    pub late_at: Option<Timestamp>,
    /// Its HTTP status.
    pub late_status: Option<i64>,
    /// `succeeded` or `failed`, as it would have been recorded in time.
    pub late_outcome: Option<String>,
    /// What it said: evidence, never state.
    pub late_answer: Option<String>,
}

/// Something a person did to a task.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Action {
    /// When.
    pub at: Timestamp,
    /// Who.
    pub who: String,
    /// What.
    pub what: String,
    /// More.
    pub detail: Option<String>,
}

/// A process that is not gone.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConsumerRow {
    /// Unique per start.
    pub id: String,
    /// What people call it.
    pub name: String,
    /// Its host.
    pub host: String,
    /// Its process.
    pub pid: i64,
    /// Its version.
    pub version: String,
    /// How many calls at once.
    pub slots: i64,
    /// What it serves: a JSON object from kind (or `*`) to semaphore.
    pub serves: String,
    /// `alive` or `draining`.
    pub state: String,
    /// When it started.
    pub started_at: Timestamp,
    /// Until when its claims hold.
    pub lease_until: Timestamp,
}

impl ConsumerRow {
    /// Whether it claims tasks of this kind under this semaphore.
    pub fn serves(&self, kind: &str, semaphore: &str) -> bool {
        let serves = self.kinds();
        serves.get(kind).or_else(|| serves.get("*")).is_some_and(|name| name == semaphore)
    }

    /// Whether it has a downstream for this kind alone.
    pub fn names(&self, kind: &str) -> bool {
        self.kinds().contains_key(kind)
    }

    fn kinds(&self) -> std::collections::BTreeMap<String, String> {
        serde_json::from_str(&self.serves).unwrap_or_default()
    }
}

/// Which failed and cancelled tasks; `None` is open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Retryable {
    /// Only failed ones, or only cancelled ones.
    pub state: Option<State>,
    /// Only of this kind.
    pub kind: Option<String>,
    /// Only with this text in their error.
    pub error: Option<String>,
    /// Only those that ended at this instant or later.
    pub since: Option<Timestamp>,
    /// Only those that ended before this instant.
    pub until: Option<Timestamp>,
}

/// An attempt that has ended, as an estimate sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecentRun {
    /// Of this kind.
    pub kind: String,
    /// `succeeded`, `failed`, `abandoned`, `handed_back` or `cancelled`.
    pub outcome: String,
    /// When its permit was taken.
    pub claimed_at: Timestamp,
    /// When it ended.
    pub ended_at: Timestamp,
    /// When its permit became free; `None` while it cools.
    pub permit_released_at: Option<Timestamp>,
}

/// The planned instant that a task is the run of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FiredBy {
    /// The job.
    pub job: String,
    /// The trigger; `None`: by hand.
    pub trigger: Option<i64>,
    /// When it was planned.
    pub planned_at: Timestamp,
    /// When it was fired.
    pub at: Timestamp,
}

impl Store {
    /// Every semaphore and what its permits do.
    pub async fn semaphores(&mut self) -> Result<Vec<Semaphore>> {
        self.run(&Semaphores).await
    }

    /// Who holds a permit, or cools one.
    pub async fn holders(&mut self) -> Result<Vec<Holder>> {
        self.run(&Holders).await
    }

    /// Processes that are not gone.
    pub async fn consumers(&mut self) -> Result<Vec<ConsumerRow>> {
        self.run(&Consumers).await
    }

    /// One task, whole.
    pub async fn task(&mut self, id: i64) -> Result<Option<Task>> {
        self.run(&ReadTask { id }).await
    }

    /// Tasks, newest first, without payloads, at most `limit`.
    pub async fn tasks(&mut self, filter: &Filter, limit: i64) -> Result<Vec<Task>> {
        self.run(&List { filter, limit }).await
    }

    /// Failed and cancelled tasks, oldest first, without payloads, at most `limit`.
    pub async fn retryable(&mut self, filter: &Retryable, limit: i64) -> Result<Vec<Task>> {
        self.run(&ListRetryable { filter, limit }).await
    }

    /// How many tasks are in each state, of one kind or of all.
    pub async fn states(&mut self, kind: Option<&str>) -> Result<Vec<(State, i64)>> {
        self.run(&States { kind }).await
    }

    /// The attempts of a task, oldest first.
    pub async fn attempts(&mut self, task: i64) -> Result<Vec<AttemptLog>> {
        self.run(&Attempts { task }).await
    }

    /// The last attempts of a semaphore, latest claim first, at most `limit`.
    pub async fn recent_runs(&mut self, semaphore: &str, limit: i64) -> Result<Vec<RecentRun>> {
        self.run(&Recent { semaphore, limit }).await
    }

    /// How many pending tasks of this kind come before this task, of the same semaphore; at least where it is `limit` or
    /// more.
    pub async fn ahead(&mut self, task: &Task, kind: &str, limit: i64) -> Result<i64> {
        self.run(&Ahead { task, kind, limit }).await
    }

    /// The planned instant that this task is the run of.
    pub async fn fired_by(&mut self, task: i64) -> Result<Option<FiredBy>> {
        self.run(&ReadFiredBy { task }).await
    }

    /// What people did to a task, oldest first.
    pub async fn actions(&mut self, task: i64) -> Result<Vec<Action>> {
        self.run(&Actions { task }).await
    }
}

struct Semaphores;

impl Unit for Semaphores {
    type Answer = Vec<Semaphore>;
    const NAME: &'static str = "read semaphores";
    const HOW: How = How::Reading;

    async fn run(&self, tx: &mut Tx<'_>) -> sqlx::Result<Vec<Semaphore>> {
        let rows =
            sqlx::query(tx.sql.semaphores).bind(Semaphore::WAITING_MAX).fetch_all(&mut *tx.conn).await?;
        rows.iter()
            .map(|row| {
                Ok(Semaphore {
                    name: row.text("name")?,
                    max_permits: row.int("max_permits")?,
                    in_use: row.int("in_use")?,
                    held: row.int("held")?,
                    cooling: row.int("cooling")?,
                    waiting: row.int("waiting")?,
                })
            })
            .collect()
    }
}

struct Holders;

impl Unit for Holders {
    type Answer = Vec<Holder>;
    const NAME: &'static str = "read holders";
    const HOW: How = How::Reading;

    async fn run(&self, tx: &mut Tx<'_>) -> sqlx::Result<Vec<Holder>> {
        let rows = sqlx::query(tx.sql.holders).fetch_all(&mut *tx.conn).await?;
        rows.iter()
            .map(|row| {
                let held = row.text("state")? == PermitState::Held.as_str();
                Ok(Holder {
                    semaphore: row.text("semaphore")?,
                    task: row.int_or_null("task")?,
                    claim_no: row.int_or_null("claim_no")?,
                    consumer: row.text_or_null("consumer")?,
                    host: row.text_or_null("host")?,
                    pid: row.int_or_null("pid")?,
                    since: row.instant("since")?,
                    until: row.instant("until")?,
                    state: if held { PermitState::Held } else { PermitState::Cooling },
                    why: row.text_or_null("why")?,
                    lease_until: row.instant_or_null("lease_until")?,
                })
            })
            .collect()
    }
}

struct Consumers;

impl Unit for Consumers {
    type Answer = Vec<ConsumerRow>;
    const NAME: &'static str = "read consumers";
    const HOW: How = How::Reading;

    async fn run(&self, tx: &mut Tx<'_>) -> sqlx::Result<Vec<ConsumerRow>> {
        let rows = sqlx::query(tx.sql.consumers).fetch_all(&mut *tx.conn).await?;
        rows.iter()
            .map(|row| {
                Ok(ConsumerRow {
                    id: row.text("id")?,
                    name: row.text("name")?,
                    host: row.text("host")?,
                    pid: row.int("pid")?,
                    version: row.text("version")?,
                    slots: row.int("slots")?,
                    serves: row.text("serves")?,
                    state: row.text("state")?,
                    started_at: row.instant("started_at")?,
                    lease_until: row.instant("lease_until")?,
                })
            })
            .collect()
    }
}

struct ReadTask {
    id: i64,
}

impl Unit for ReadTask {
    type Answer = Option<Task>;
    const NAME: &'static str = "read a task";
    const HOW: How = How::Reading;

    async fn run(&self, tx: &mut Tx<'_>) -> sqlx::Result<Option<Task>> {
        let rows = sqlx::query(tx.sql.task).bind(self.id).fetch_all(&mut *tx.conn).await?;
        rows.first().map(|row| rows::task(row, Some(row.text("payload")?))).transpose()
    }
}

struct List<'a> {
    filter: &'a Filter,
    limit: i64,
}

impl Unit for List<'_> {
    type Answer = Vec<Task>;
    const NAME: &'static str = "list tasks";
    const HOW: How = How::Reading;

    async fn run(&self, tx: &mut Tx<'_>) -> sqlx::Result<Vec<Task>> {
        let Filter { state, kind, semaphore, biz_key, below } = self.filter;
        let state = state.map(State::as_str);
        let rows = sqlx::query(tx.sql.list)
            .bind(state)
            .bind(state)
            .bind(kind.as_deref())
            .bind(kind.as_deref())
            .bind(semaphore.as_deref())
            .bind(semaphore.as_deref())
            .bind(biz_key.as_deref())
            .bind(biz_key.as_deref())
            .bind(below.unwrap_or(i64::MAX))
            .bind(self.limit)
            .fetch_all(&mut *tx.conn)
            .await?;
        rows.iter().map(|row| rows::task(row, None)).collect()
    }
}

struct ListRetryable<'a> {
    filter: &'a Retryable,
    limit: i64,
}

impl Unit for ListRetryable<'_> {
    type Answer = Vec<Task>;
    const NAME: &'static str = "list finished tasks";
    const HOW: How = How::Reading;

    async fn run(&self, tx: &mut Tx<'_>) -> sqlx::Result<Vec<Task>> {
        let Retryable { state, kind, error, since, until } = self.filter;
        let (state, kind, error) = (state.map(State::as_str), kind.as_deref(), error.as_deref());
        let [since, until] = [since, until].map(|instant| instant.map(Timestamp::as_microsecond));
        let rows = sqlx::query(tx.sql.retryable)
            .bind(state)
            .bind(state)
            .bind(kind)
            .bind(kind)
            .bind(error)
            .bind(error)
            .bind(since)
            .bind(since)
            .bind(until)
            .bind(until)
            .bind(self.limit)
            .fetch_all(&mut *tx.conn)
            .await?;
        rows.iter().map(|row| rows::task(row, None)).collect()
    }
}

struct States<'a> {
    kind: Option<&'a str>,
}

impl Unit for States<'_> {
    type Answer = Vec<(State, i64)>;
    const NAME: &'static str = "count tasks";
    const HOW: How = How::Reading;

    async fn run(&self, tx: &mut Tx<'_>) -> sqlx::Result<Vec<(State, i64)>> {
        let rows =
            sqlx::query(tx.sql.states).bind(self.kind).bind(self.kind).fetch_all(&mut *tx.conn).await?;
        rows.iter().map(|row| Ok((row.word("state")?, row.try_get(1)?))).collect()
    }
}

struct Attempts {
    task: i64,
}

impl Unit for Attempts {
    type Answer = Vec<AttemptLog>;
    const NAME: &'static str = "read attempts";
    const HOW: How = How::Reading;

    async fn run(&self, tx: &mut Tx<'_>) -> sqlx::Result<Vec<AttemptLog>> {
        let rows = sqlx::query(tx.sql.attempts).bind(self.task).fetch_all(&mut *tx.conn).await?;
        rows.iter()
            .map(|row| {
                Ok(AttemptLog {
                    claim_no: row.int("claim_no")?,
                    consumer: row.text("consumer")?,
                    claimed_at: row.instant("claimed_at")?,
                    called_at: row.instant_or_null("called_at")?,
                    ended_at: row.instant("ended_at")?,
                    permit_released_at: row.instant_or_null("permit_released_at")?,
                    outcome: row.text("outcome")?,
                    status: row.int_or_null("status")?,
                    error: row.text_or_null("error")?,
                    ended_by: row.text("ended_by")?,
                    late_at: row.instant_or_null("late_at")?,
                    late_status: row.int_or_null("late_status")?,
                    late_outcome: row.text_or_null("late_outcome")?,
                    late_answer: row.text_or_null("late_answer")?,
                })
            })
            .collect()
    }
}

struct Actions {
    task: i64,
}

impl Unit for Actions {
    type Answer = Vec<Action>;
    const NAME: &'static str = "read actions";
    const HOW: How = How::Reading;

    async fn run(&self, tx: &mut Tx<'_>) -> sqlx::Result<Vec<Action>> {
        let rows = sqlx::query(tx.sql.actions).bind(self.task).fetch_all(&mut *tx.conn).await?;
        rows.iter()
            .map(|row| {
                Ok(Action {
                    at: row.instant("at")?,
                    who: row.text("who")?,
                    what: row.text("what")?,
                    detail: row.text_or_null("detail")?,
                })
            })
            .collect()
    }
}

struct Recent<'a> {
    semaphore: &'a str,
    limit: i64,
}

impl Unit for Recent<'_> {
    type Answer = Vec<RecentRun>;
    const NAME: &'static str = "read recent attempts";
    const HOW: How = How::Reading;

    async fn run(&self, tx: &mut Tx<'_>) -> sqlx::Result<Vec<RecentRun>> {
        let rows =
            sqlx::query(tx.sql.recent).bind(self.semaphore).bind(self.limit).fetch_all(&mut *tx.conn).await?;
        rows.iter()
            .map(|row| {
                Ok(RecentRun {
                    kind: row.text("kind")?,
                    outcome: row.text("outcome")?,
                    claimed_at: row.instant("claimed_at")?,
                    ended_at: row.instant("ended_at")?,
                    permit_released_at: row.instant_or_null("permit_released_at")?,
                })
            })
            .collect()
    }
}

struct Ahead<'a> {
    task: &'a Task,
    kind: &'a str,
    limit: i64,
}

impl Unit for Ahead<'_> {
    type Answer = i64;
    const NAME: &'static str = "count the tasks ahead";
    const HOW: How = How::Reading;

    async fn run(&self, tx: &mut Tx<'_>) -> sqlx::Result<i64> {
        let Task { semaphore, priority, run_at, id, .. } = self.task;
        let (semaphore, priority, run_at) =
            (semaphore.as_str(), i64::from(*priority), run_at.as_microsecond());
        let rows = sqlx::query(tx.sql.ahead)
            .bind(semaphore)
            .bind(self.kind)
            .bind(priority)
            .bind(self.limit)
            .bind(semaphore)
            .bind(self.kind)
            .bind(priority)
            .bind(run_at)
            .bind(self.limit)
            .bind(semaphore)
            .bind(self.kind)
            .bind(priority)
            .bind(run_at)
            .bind(*id)
            .bind(self.limit)
            .fetch_all(&mut *tx.conn)
            .await?;
        rows::one(rows)?.try_get(0)
    }
}

struct ReadFiredBy {
    task: i64,
}

impl Unit for ReadFiredBy {
    type Answer = Option<FiredBy>;
    const NAME: &'static str = "read who fired a task";
    const HOW: How = How::Reading;

    async fn run(&self, tx: &mut Tx<'_>) -> sqlx::Result<Option<FiredBy>> {
        let rows = sqlx::query(tx.sql.fired_by).bind(self.task).fetch_all(&mut *tx.conn).await?;
        rows.first()
            .map(|row| {
                Ok(FiredBy {
                    job: row.text("job")?,
                    trigger: row.int_or_null("trigger_id")?,
                    planned_at: row.instant("planned_at")?,
                    at: row.instant("at")?,
                })
            })
            .transpose()
    }
}
