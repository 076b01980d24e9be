//! What people do with schedules: add, look, pause, go on, run by hand, remove; each on record.

use jiff::Timestamp;
use serde_json::json;

use super::admin::act;
use super::enqueue::Enqueue;
use super::rows::{self, Read, one, trigger};
use super::schedule::alone;
use super::unit::{How, Tx, Unit};
use super::{Enqueued, Result, Store};
use crate::model::schedule::{Fate, Job, NewJob, Passed, Plan, PlannedInstant, Trigger, When, passed};

/// A trigger to be added, and its job where that is new.
#[derive(Debug)]
pub struct NewSchedule<'a> {
    /// The job's name.
    pub name: &'a str,
    /// What its runs are; `None` where the job is there already.
    pub job: Option<&'a NewJob>,
    /// When it is due.
    pub when: &'a When,
    /// Whether its start was asked for, or is when it was added.
    pub start_is_given: bool,
    /// Its first instant.
    pub first: Option<Timestamp>,
    /// Who adds it.
    pub who: &'a str,
}

/// The answer to an add.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Added {
    /// The trigger; not created where the same was there already.
    Trigger {
        /// It.
        id: i64,
        /// Whether it is new.
        created: bool,
    },
    /// There is no such job, and nothing says what its runs are.
    NoJob,
    /// The job is there already, and is another: what differs.
    Differs(Vec<String>),
}

/// The answer to a run by hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RanByHand {
    /// The task; not created where one of its key was there already.
    Task(Enqueued),
    /// A run is not over.
    Running(i64),
    /// There is no such job.
    NoJob,
}

impl Store {
    /// Adds a trigger, and its job where that is new. The same again finds the first.
    pub async fn add_schedule(&mut self, new: &NewSchedule<'_>) -> Result<Added> {
        self.run(new).await
    }

    /// All jobs, or the one of this name.
    pub async fn jobs(&mut self, name: Option<&str>) -> Result<Vec<Job>> {
        self.run(&Jobs { name }).await
    }

    /// All triggers, or those of one job.
    pub async fn triggers(&mut self, job: Option<&str>) -> Result<Vec<Trigger>> {
        self.run(&Triggers { job }).await
    }

    /// What became of a job's planned instants, latest first.
    pub async fn instants(&mut self, job: &str, limit: i64) -> Result<Vec<PlannedInstant>> {
        self.run(&Instants { job, limit }).await
    }

    /// Pauses a job's triggers, or one of them; answers which were not.
    pub async fn pause(&mut self, job: &str, trigger: Option<i64>, who: &str) -> Result<Vec<i64>> {
        self.run(&Switch { job, trigger, who, pause: true }).await
    }

    /// Lets a job's triggers go on, or one of them, with their next instants; answers which were paused.
    pub async fn resume(&mut self, job: &str, trigger: Option<i64>, who: &str) -> Result<Vec<i64>> {
        self.run(&Switch { job, trigger, who, pause: false }).await
    }

    /// Removes one trigger, or a job with all of them; answers whether it was there. Its runs stay.
    pub async fn remove_schedule(&mut self, job: &str, trigger: Option<i64>, who: &str) -> Result<bool> {
        self.run(&Remove { job, trigger, who }).await
    }

    /// Starts a run now, at the wish of `who`; beside one that is not over only by `force`.
    pub async fn run_by_hand(&mut self, job: &str, force: bool, who: &str) -> Result<RanByHand> {
        self.run(&RunByHand { job, force, who }).await
    }
}

/// One job, locked.
pub(super) async fn lock(tx: &mut Tx<'_>, job: &str) -> sqlx::Result<Option<NewJob>> {
    let rows = sqlx::query(tx.sql.job_lock).bind(job).fetch_all(&mut *tx.conn).await?;
    rows.first().map(rows::job).transpose()
}

/// The newest run of a job that is not over.
pub(super) async fn live_run(tx: &mut Tx<'_>, job: &str) -> sqlx::Result<Option<i64>> {
    one(sqlx::query(tx.sql.live_run).bind(job).fetch_all(&mut *tx.conn).await?)?.int_or_null("live")
}

/// Writes down what became of planned instants.
pub(super) async fn note(
    tx: &mut Tx<'_>,
    job: &str,
    trigger: Option<i64>,
    planned: Passed,
    fate: Fate,
    task: Option<i64>,
) -> sqlx::Result<()> {
    sqlx::query(tx.sql.note_instant)
        .bind(job)
        .bind(trigger)
        .bind(planned.first.as_microsecond())
        .bind(planned.last.as_microsecond())
        .bind(i64::from(planned.count))
        .bind(fate.as_str())
        .bind(task)
        .execute(&mut *tx.conn)
        .await?;
    Ok(())
}

async fn now(tx: &mut Tx<'_>) -> sqlx::Result<Timestamp> {
    rows::first_instant(&one(sqlx::query(tx.sql.clock).fetch_all(&mut *tx.conn).await?)?)
}

impl Unit for NewSchedule<'_> {
    type Answer = Added;
    const NAME: &'static str = "add a schedule";

    async fn run(&self, tx: &mut Tx<'_>) -> sqlx::Result<Added> {
        if let Some(job) = self.job {
            sqlx::query(tx.sql.add_job).bind(encode_job(job)).execute(&mut *tx.conn).await?;
        }
        let Some(there) = lock(tx, self.name).await? else { return Ok(Added::NoJob) };
        let differences = self.job.map(|job| job.differences(&there)).unwrap_or_default();
        if !differences.is_empty() {
            return Ok(Added::Differs(differences));
        }
        let triggers = Triggers { job: Some(self.name) };
        let same = |one: &Trigger| one.when.as_ref().is_ok_and(|when| self.is(when));
        if let Some(same) = triggers.run(tx).await?.into_iter().find(same) {
            return Ok(Added::Trigger { id: same.id, created: false });
        }
        sqlx::query(tx.sql.add_trigger).bind(self.encode()).execute(&mut *tx.conn).await?;
        // Nobody else adds one under the lock.
        let newest = triggers.run(tx).await?.iter().map(|trigger| trigger.id).max();
        let id = newest.ok_or(sqlx::Error::RowNotFound)?;
        act(tx, self.who, "add schedule", None, Some(format!("{}: {}", self.name, self.when))).await?;
        Ok(Added::Trigger { id, created: true })
    }
}

impl NewSchedule<'_> {
    fn is(&self, other: &When) -> bool {
        let plan = |when: &When| {
            let cron =
                when.plan.cron().map(|(expression, dialect)| (expression.to_owned(), dialect.as_str()));
            (when.plan.kind(), cron, when.plan.every(), when.end, when.zone.iana_name().map(str::to_owned))
        };
        let start_counts = self.start_is_given || matches!(self.when.plan, Plan::Once);
        plan(self.when) == plan(other) && (!start_counts || self.when.start == other.start)
    }

    fn encode(&self) -> String {
        let When { plan, zone, start, end } = self.when;
        let cron = plan.cron();
        json!({
            "job": self.name,
            "kind": plan.kind(),
            "expression": cron.map(|(expression, _)| expression),
            "dialect": cron.map(|(_, dialect)| dialect.as_str()),
            "zone": zone.iana_name().unwrap_or("UTC"),
            "every": plan.every().map(|every| every.as_secs_f64()),
            "start_at": start.as_microsecond(),
            "end_at": end.map(Timestamp::as_microsecond),
            "next_fire_at": self.first.map(Timestamp::as_microsecond),
        })
        .to_string()
    }
}

fn encode_job(job: &NewJob) -> String {
    let NewJob { name, task, key_template, misfire, overlap } = job;
    json!({
        "name": name,
        "kind": task.kind,
        "semaphore": task.semaphore.as_deref().unwrap_or("default"),
        "payload": task.payload,
        "priority": task.priority,
        "timeout": task.timeout.map(|limit| limit.as_secs_f64()),
        "max_attempts": task.max_attempts,
        "on_abandon": task.on_abandon.map(crate::model::OnAbandon::as_str),
        "key_template": key_template.to_string(),
        "misfire": misfire.policy.as_str(),
        "misfire_after": misfire.after.as_secs_f64(),
        "misfire_max": misfire.most,
        "overlap": overlap.as_str(),
    })
    .to_string()
}

struct Jobs<'a> {
    name: Option<&'a str>,
}

impl Unit for Jobs<'_> {
    type Answer = Vec<Job>;
    const NAME: &'static str = "list jobs";
    const HOW: How = How::Reading;

    async fn run(&self, tx: &mut Tx<'_>) -> sqlx::Result<Vec<Job>> {
        let rows = sqlx::query(tx.sql.jobs).bind(self.name).bind(self.name).fetch_all(&mut *tx.conn).await?;
        rows.iter()
            .map(|row| {
                let (job, created_at) = (rows::job(row)?, row.instant("created_at")?);
                Ok(Job { job, created_at, live: row.int_or_null("live")? })
            })
            .collect()
    }
}

struct Triggers<'a> {
    job: Option<&'a str>,
}

impl Unit for Triggers<'_> {
    type Answer = Vec<Trigger>;
    const NAME: &'static str = "list triggers";
    const HOW: How = How::Reading;

    async fn run(&self, tx: &mut Tx<'_>) -> sqlx::Result<Vec<Trigger>> {
        let rows =
            sqlx::query(tx.sql.triggers).bind(self.job).bind(self.job).fetch_all(&mut *tx.conn).await?;
        rows.iter().map(trigger).collect()
    }
}

struct Instants<'a> {
    job: &'a str,
    limit: i64,
}

impl Unit for Instants<'_> {
    type Answer = Vec<PlannedInstant>;
    const NAME: &'static str = "list planned instants";
    const HOW: How = How::Reading;

    async fn run(&self, tx: &mut Tx<'_>) -> sqlx::Result<Vec<PlannedInstant>> {
        let rows =
            sqlx::query(tx.sql.instants).bind(self.job).bind(self.limit).fetch_all(&mut *tx.conn).await?;
        rows.iter()
            .map(|row| {
                let (first, last) = (row.instant("planned_at")?, row.instant("last_at")?);
                Ok(PlannedInstant {
                    trigger: row.int_or_null("trigger_id")?,
                    planned: Passed { first, last, count: row.count("instants")? },
                    fate: row.word("fate")?,
                    task: row.int_or_null("task")?,
                    at: row.instant("at")?,
                })
            })
            .collect()
    }
}

struct Switch<'a> {
    job: &'a str,
    trigger: Option<i64>,
    who: &'a str,
    pause: bool,
}

impl Unit for Switch<'_> {
    type Answer = Vec<i64>;
    const NAME: &'static str = "pause or resume";

    async fn run(&self, tx: &mut Tx<'_>) -> sqlx::Result<Vec<i64>> {
        lock(tx, self.job).await?;
        let now = now(tx).await?;
        let mut switched = Vec::new();
        for one in (Triggers { job: Some(self.job) }).run(tx).await? {
            if one.paused == self.pause || self.trigger.is_some_and(|only| only != one.id) {
                continue;
            }
            let mut next = one.next_fire_at;
            if let (false, Some(due), Ok(when)) = (self.pause, one.next_fire_at, &one.when)
                && due <= now
                && !matches!(when.plan, Plan::FixedDelay(_))
            {
                next = when.after(now);
                let end = Timestamp::from_microsecond(now.as_microsecond() + 1).unwrap_or(now);
                if let Some(passed) = passed(when, due, end) {
                    note(tx, self.job, Some(one.id), passed, Fate::Paused, None).await?;
                }
            }
            sqlx::query(tx.sql.set_trigger)
                .bind(i64::from(self.pause))
                .bind(next.map(Timestamp::as_microsecond))
                .bind(one.id)
                .execute(&mut *tx.conn)
                .await?;
            switched.push(one.id);
        }
        if !switched.is_empty() {
            let what = if self.pause { "pause schedule" } else { "resume schedule" };
            let all = switched.iter().map(i64::to_string).collect::<Vec<_>>().join(", ");
            act(tx, self.who, what, None, Some(format!("{}: trigger {all}", self.job))).await?;
        }
        Ok(switched)
    }
}

struct Remove<'a> {
    job: &'a str,
    trigger: Option<i64>,
    who: &'a str,
}

impl Unit for Remove<'_> {
    type Answer = bool;
    const NAME: &'static str = "remove a schedule";

    async fn run(&self, tx: &mut Tx<'_>) -> sqlx::Result<bool> {
        let job = lock(tx, self.job).await?;
        let mut removed = 0;
        for one in (Triggers { job: Some(self.job) }).run(tx).await? {
            if self.trigger.is_none_or(|only| only == one.id) {
                sqlx::query(tx.sql.remove_trigger).bind(one.id).execute(&mut *tx.conn).await?;
                removed += 1;
            }
        }
        if self.trigger.is_none() && job.is_some() {
            sqlx::query(tx.sql.remove_job).bind(self.job).execute(&mut *tx.conn).await?;
            removed += 1;
        }
        if removed > 0 {
            let which = self.trigger.map_or(String::new(), |id| format!(": trigger {id}"));
            act(tx, self.who, "remove schedule", None, Some(format!("{}{which}", self.job))).await?;
        }
        Ok(removed > 0)
    }
}

struct RunByHand<'a> {
    job: &'a str,
    force: bool,
    who: &'a str,
}

impl Unit for RunByHand<'_> {
    type Answer = RanByHand;
    const NAME: &'static str = "run by hand";

    async fn run(&self, tx: &mut Tx<'_>) -> sqlx::Result<RanByHand> {
        let Some(job) = lock(tx, self.job).await? else { return Ok(RanByHand::NoJob) };
        if let Some(task) = live_run(tx, self.job).await?.filter(|_| !self.force) {
            return Ok(RanByHand::Running(task));
        }
        let now = now(tx).await?;
        // A date in its key is that of its first trigger's zone.
        let triggers = Triggers { job: Some(self.job) }.run(tx).await?;
        let zone = triggers
            .into_iter()
            .find_map(|one| one.when.ok())
            .map_or(jiff::tz::TimeZone::UTC, |when| when.zone);
        let task = job.run(now, &zone, format!("manual:{}", self.job));
        let enqueued = Enqueue { tasks: &[task] }.run(tx).await?;
        let &run = enqueued.first().ok_or(sqlx::Error::RowNotFound)?;
        if run.created {
            sqlx::query(tx.sql.ran).bind(run.id).bind(self.job).execute(&mut *tx.conn).await?;
        }
        let fate = if run.created { Fate::Fired } else { Fate::Exists };
        note(tx, self.job, None, alone(now), fate, Some(run.id)).await?;
        act(tx, self.who, "run", Some(run.id), Some(self.job.to_owned())).await?;
        Ok(RanByHand::Task(run))
    }
}
