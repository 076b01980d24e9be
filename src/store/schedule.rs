//! What schedulers do: look, fire, go on.
//!
//! ```text
//!  1. lock the job                    (all its triggers and manual runs come by here; before any task)
//!  2. is a run of it not over?        (read under the lock, so none can be added meanwhile)
//!  3. move the trigger on             (only from the instant that was decided about: one scheduler does)
//!  4. insert the task under its key   (a key that is there already makes no second task)
//!  5. write down what became of the instant
//! ```
//!
//! All in one transaction, so an instant is fired and accounted for, or untouched. What is decided, the decision is given:
//! counting what was missed in weeks must not take as long as a lock may be held.

use jiff::Timestamp;
use sqlx::any::AnyRow;

use super::enqueue::Enqueue;
use super::jobs::{live_run, lock, note};
use super::rows::{Read, bad, one, trigger};
use super::unit::{How, Tx, Unit};
use super::{Enqueued, Result, Store};
use crate::model::NewTask;
use crate::model::schedule::{Decision, Fate, Misfire, Overlap, Passed, Plan, Trigger, When};

/// What one read tells a scheduler.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own, not a state in disguise")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScheduleLook {
    /// The database's clock.
    pub now: Timestamp,
    /// The next instant that is yet to come.
    pub next: Option<Timestamp>,
    /// A trigger can be fired.
    pub due: bool,
    /// A run has ended that a fixed delay waits for.
    pub ended: bool,
    /// Something waits for the end of a run.
    pub waiting: bool,
    /// There are triggers.
    pub known: bool,
}

/// A trigger that is due.
#[derive(Clone, Debug)]
pub struct Due {
    /// It.
    pub trigger: Trigger,
    /// What its job does about what is late.
    pub misfire: Misfire,
    /// The database's clock when it was read.
    pub now: Timestamp,
}

/// A fixed delay whose run has ended.
#[derive(Clone, Debug)]
pub struct EndedRun {
    /// It.
    pub trigger: Trigger,
    /// When the run ended; now, where its row is gone.
    pub ended: Timestamp,
}

/// What became of one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// When it was planned.
    pub planned: Timestamp,
    /// What became of it.
    pub fate: Fate,
    /// Its task, or the one in its way.
    pub task: i64,
}

impl Store {
    /// One read: is there anything to do, and when? Takes no lock.
    pub async fn schedules(&mut self) -> Result<ScheduleLook> {
        self.run(&Schedules).await
    }

    /// Triggers that are due, longest first.
    pub async fn due_triggers(&mut self, limit: i64) -> Result<Vec<Due>> {
        self.run(&DueTriggers { limit }).await
    }

    /// Fixed delays whose run has ended.
    pub async fn ended_runs(&mut self, limit: i64) -> Result<Vec<EndedRun>> {
        self.run(&EndedRuns { limit }).await
    }

    /// Does what was decided about a trigger that was due at `now`, if it still is: `None` where somebody else did, or it
    /// was changed, or has to wait.
    pub async fn fire(
        &mut self,
        trigger: &Trigger,
        decision: &Decision,
        now: Timestamp,
    ) -> Result<Option<Vec<Run>>> {
        self.run(&Fire { trigger, decision, now }).await
    }

    /// The run that a fixed delay waited for has ended; answers whether nobody else has gone on from there.
    pub async fn arm(&mut self, trigger: &Trigger, next: Option<Timestamp>) -> Result<bool> {
        self.run(&Arm { trigger, next }).await
    }

    /// Puts another instant for the one that is due next, if it still is.
    pub async fn reset(&mut self, trigger: &Trigger, next: Option<Timestamp>) -> Result<bool> {
        self.run(&Reset { trigger, next }).await
    }
}

struct Schedules;

impl Unit for Schedules {
    type Answer = ScheduleLook;
    const NAME: &'static str = "look at schedules";
    const HOW: How = How::Reading;

    async fn run(&self, tx: &mut Tx<'_>) -> sqlx::Result<ScheduleLook> {
        let row = one(sqlx::query(tx.sql.schedules).fetch_all(&mut *tx.conn).await?)?;
        let is = |column: &str| Ok::<_, sqlx::Error>(row.int(column)? != 0);
        Ok(ScheduleLook {
            now: row.instant("now")?,
            next: row.instant_or_null("next")?,
            due: is("due")?,
            ended: is("ended")?,
            waiting: is("waiting")?,
            known: is("known")?,
        })
    }
}

struct DueTriggers {
    limit: i64,
}

impl Unit for DueTriggers {
    type Answer = Vec<Due>;
    const NAME: &'static str = "read due triggers";
    const HOW: How = How::Reading;

    async fn run(&self, tx: &mut Tx<'_>) -> sqlx::Result<Vec<Due>> {
        let rows = sqlx::query(tx.sql.due_triggers).bind(self.limit).fetch_all(&mut *tx.conn).await?;
        let due = |row: &AnyRow| {
            Ok(Due { trigger: trigger(row)?, misfire: row.misfire()?, now: row.instant("now")? })
        };
        rows.iter().map(due).collect()
    }
}

struct EndedRuns {
    limit: i64,
}

impl Unit for EndedRuns {
    type Answer = Vec<EndedRun>;
    const NAME: &'static str = "read ended runs";
    const HOW: How = How::Reading;

    async fn run(&self, tx: &mut Tx<'_>) -> sqlx::Result<Vec<EndedRun>> {
        let rows = sqlx::query(tx.sql.ended_runs).bind(self.limit).fetch_all(&mut *tx.conn).await?;
        let ended = |row: &AnyRow| {
            let ended = row.instant_or_null("finished_at")?.map_or_else(|| row.instant("now"), Ok)?;
            Ok(EndedRun { trigger: trigger(row)?, ended })
        };
        rows.iter().map(ended).collect()
    }
}

struct Fire<'a> {
    trigger: &'a Trigger,
    decision: &'a Decision,
    now: Timestamp,
}

impl Unit for Fire<'_> {
    type Answer = Option<Vec<Run>>;
    const NAME: &'static str = "fire";

    async fn run(&self, tx: &mut Tx<'_>) -> sqlx::Result<Option<Vec<Run>>> {
        let (trigger, decision) = (self.trigger, self.decision);
        let when = trigger.when.as_ref().map_err(|error| bad("expression", error.clone()))?;
        let Some(job) = lock(tx, &trigger.job).await? else { return Ok(None) };
        let mut live = live_run(tx, &trigger.job).await?;
        let queues = job.overlap == Overlap::Queue;
        if queues && live.is_some() {
            return Ok(None);
        }
        // What queues takes one at a time; the rest stays due, and waits.
        let at_once = if queues { decision.fire.len().min(1) } else { decision.fire.len() };
        let (fire, rest) = decision.fire.split_at(at_once);
        if !advance(tx, trigger, rest.first().copied().or(decision.next)).await? {
            return Ok(None);
        }
        if let Some(missed) = decision.missed {
            note(tx, &trigger.job, Some(trigger.id), missed, Fate::Misfired, None).await?;
        }
        let mut runs = Vec::with_capacity(fire.len());
        for &planned in fire {
            let run = if let Some(task) = live.filter(|_| job.overlap != Overlap::Allow) {
                self.overlapped(tx, planned, task).await?
            } else {
                let task = job.run(planned, &when.zone, format!("schedule:{}", trigger.job));
                self.start(tx, planned, &task).await?
            };
            if run.fate == Fate::Fired {
                live = Some(run.task);
            }
            if matches!(when.plan, Plan::FixedDelay(_)) {
                self.wait(tx, when, run).await?;
            }
            runs.push(run);
        }
        Ok(Some(runs))
    }
}

impl Fire<'_> {
    async fn start(&self, tx: &mut Tx<'_>, planned: Timestamp, task: &NewTask) -> sqlx::Result<Run> {
        let job = &self.trigger.job;
        let enqueued = Enqueue { tasks: std::slice::from_ref(task) }.run(tx).await?;
        let &Enqueued { id, created } = enqueued.first().ok_or(sqlx::Error::RowNotFound)?;
        if created {
            sqlx::query(tx.sql.ran).bind(id).bind(&**job).execute(&mut *tx.conn).await?;
        }
        let fate = if created { Fate::Fired } else { Fate::Exists };
        note(tx, job, Some(self.trigger.id), alone(planned), fate, Some(id)).await?;
        Ok(Run { planned, fate, task: id })
    }

    /// A fixed delay goes on when the run that it started, or that stood in its way, has ended. One of the same key may
    /// have ended long ago: it goes on from now.
    async fn wait(&self, tx: &mut Tx<'_>, when: &When, run: Run) -> sqlx::Result<()> {
        let id = self.trigger.id;
        if run.fate == Fate::Exists {
            let next = when.after_end(self.now).map(Timestamp::as_microsecond);
            sqlx::query(tx.sql.set_trigger).bind(0_i64).bind(next).bind(id).execute(&mut *tx.conn).await?;
        } else {
            sqlx::query(tx.sql.wait_for).bind(run.task).bind(id).execute(&mut *tx.conn).await?;
        }
        Ok(())
    }

    async fn overlapped(&self, tx: &mut Tx<'_>, planned: Timestamp, task: i64) -> sqlx::Result<Run> {
        let more = sqlx::query(tx.sql.overlapped)
            .bind(planned.as_microsecond())
            .bind(task)
            .bind(self.trigger.id)
            .execute(&mut *tx.conn)
            .await?;
        if more.rows_affected() == 0 {
            let Trigger { job, id, .. } = self.trigger;
            note(tx, job, Some(*id), alone(planned), Fate::Overlap, Some(task)).await?;
        }
        Ok(Run { planned, fate: Fate::Overlap, task })
    }
}

/// One instant.
pub(super) fn alone(planned: Timestamp) -> Passed {
    Passed { first: planned, last: planned, count: 1 }
}

/// Moves a trigger on from the instant that was read; answers whether it still stood there.
async fn advance(tx: &mut Tx<'_>, trigger: &Trigger, next: Option<Timestamp>) -> sqlx::Result<bool> {
    let moved = sqlx::query(tx.sql.advance)
        .bind(next.map(Timestamp::as_microsecond))
        .bind(trigger.id)
        .bind(trigger.next_fire_at.map(Timestamp::as_microsecond))
        .execute(&mut *tx.conn)
        .await?;
    Ok(moved.rows_affected() == 1)
}

struct Reset<'a> {
    trigger: &'a Trigger,
    next: Option<Timestamp>,
}

impl Unit for Reset<'_> {
    type Answer = bool;
    const NAME: &'static str = "correct a trigger";

    async fn run(&self, tx: &mut Tx<'_>) -> sqlx::Result<bool> {
        advance(tx, self.trigger, self.next).await
    }
}

struct Arm<'a> {
    trigger: &'a Trigger,
    next: Option<Timestamp>,
}

impl Unit for Arm<'_> {
    type Answer = bool;
    const NAME: &'static str = "go on after a run";

    async fn run(&self, tx: &mut Tx<'_>) -> sqlx::Result<bool> {
        let armed = sqlx::query(tx.sql.arm)
            .bind(self.next.map(Timestamp::as_microsecond))
            .bind(self.trigger.id)
            .bind(self.trigger.waits_for)
            .execute(&mut *tx.conn)
            .await?;
        Ok(armed.rows_affected() == 1)
    }
}
