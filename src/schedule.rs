//! The scheduler: fires triggers at their instants. Any number of them may run, in any process; the tables alone say what
//! is due, and a conditional update says who fires it.
//!
//! ```text
//!  look ─► due: decide ─► fire (one transaction each) ─┐
//!   ▲      ended: a fixed delay goes on after its run  │
//!   │      otherwise sleep until the next instant      │
//!   └── timer · wake-up · poll ◄───────────────────────┘
//! ```
//!
//! The timer is set to the next instant, as the database's clock has it, so a trigger is not late by a poll. The poll is
//! for what nobody tells: a schedule that is new, a run that has ended, a clock that was set.
//!
//! One trigger that cannot be fired (its row was written by hand, its semaphore is gone) is put aside for a while and
//! holds up no other.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::{Instant as Moment, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::clock::{Clock, Instant};
use crate::event::Event;
use crate::model::STEP_SLACK;
use crate::model::schedule::{Trigger, decide};
use crate::store::{Database, Due, EndedRun, Error, Run, Store};
use crate::wake::Wake;

/// Triggers per pass.
const BATCH: i64 = 100;
/// A hint may come with every commit of a busy fleet (SQLite tells no schedule from a task); no look follows another sooner.
/// What is planned is on time all the same: that is the timer.
const APART: Duration = Duration::from_secs(1);
/// How long a trigger that cannot be fired is left alone.
const ASIDE: Duration = Duration::from_secs(30);

/// How a scheduler works.
#[derive(Clone, Debug)]
pub struct Options {
    /// How often to look while something waits for the end of a run; five times as rarely where there is nothing to see
    /// but what is new, and sixty times where that is told.
    pub poll: Duration,
}

/// Fires triggers.
pub struct Scheduler {
    options: Options,
    clock: Clock,
    store: Store,
    wake: Wake,
    /// Both clocks at the last look.
    clocks: Option<(Timestamp, Instant)>,
    /// Triggers that could not be fired, and until when they are left alone.
    aside: BTreeMap<i64, Instant>,
}

impl Scheduler {
    /// A scheduler of this database, on a connection of its own.
    pub fn new(database: &Database, clock: Clock, options: Options) -> Self {
        let wake = Wake::connect_to_schedules(database);
        Self { options, clock, store: database.store(), wake, clocks: None, aside: BTreeMap::new() }
    }

    /// Works until `stop`. A pass that has begun is finished.
    pub async fn run(mut self, stop: CancellationToken) {
        let mut trouble = Duration::ZERO;
        loop {
            let began = Moment::now();
            let pause = match self.pass().await {
                Ok(pause) => {
                    trouble = Duration::ZERO;
                    pause
                }
                Err(error) => {
                    trouble = (trouble * 2).clamp(Duration::from_millis(200), Duration::from_secs(10));
                    Event::Trouble { what: "schedules", error: &error, again_in: trouble }.emit();
                    trouble.mul_f64(0.75 + 0.5 * fastrand::f64())
                }
            };
            let woken = async {
                self.wake.woken().await;
                sleep_until(began + APART).await;
            };
            let pause = async {
                tokio::select! {
                    () = sleep_until(began + pause) => {}
                    () = woken, if trouble.is_zero() => {}
                }
            };
            if stop.run_until_cancelled(pause).await.is_none() {
                return;
            }
        }
    }

    /// One pass; answers how long after its beginning the next should begin.
    ///
    /// # Errors
    /// Where the database cannot be worked with; everything done so far is complete in itself.
    pub async fn pass(&mut self) -> Result<Duration, Error> {
        let before = self.clock.now();
        let look = self.store.schedules().await?;
        let now = self.clock.now();
        self.aside.retain(|_, until| *until > now);
        let mut did = false;
        if self.clock_was_set(look.now, now, now.since(before)) && look.known {
            self.correct(look.now).await?;
            did = true;
        }
        if look.ended {
            did |= self.go_on().await?;
        }
        if look.due {
            did |= self.fire().await?;
        }
        if did {
            return Ok(Duration::ZERO);
        }
        // What is due and still there is another's, or aside, or waits.
        let rarely = match (look.known, self.wake.is_connected()) {
            _ if look.waiting || look.due || look.ended => self.options.poll,
            (false, true) => self.options.poll * 60,
            _ => self.options.poll * 5,
        };
        let rarely = rarely.mul_f64(0.75 + 0.5 * fastrand::f64());
        // Counted from before the look: the timer is never late by what the look took, and may be early by as much.
        Ok(look.next.map_or(rarely, |next| rarely.min(next.duration_since(look.now).unsigned_abs())))
    }

    /// Whether the database's clock moved otherwise than time did, or nobody here knows.
    fn clock_was_set(&mut self, database: Timestamp, now: Instant, took: Duration) -> bool {
        let last = self.clocks.replace((database, now));
        let Some((then, since)) = last else { return true };
        let elapsed = i128::try_from(now.since(since).as_nanos()).unwrap_or(i128::MAX);
        let moved = database.duration_since(then).as_nanos();
        (moved - elapsed).unsigned_abs() > (STEP_SLACK + took).as_nanos()
    }

    /// Next instants that were computed by another clock are computed again: a clock that ran hours ahead must not silence
    /// a trigger for as long. What has its task already finds it by its key.
    async fn correct(&mut self, now: Timestamp) -> Result<(), Error> {
        for trigger in self.store.triggers(None).await? {
            let Some(right) = trigger.corrected(now) else { continue };
            if self.store.reset(&trigger, right).await? {
                Event::Rescheduled {
                    job: &trigger.job,
                    trigger: trigger.id,
                    from: trigger.next_fire_at,
                    to: right,
                }
                .emit();
            }
        }
        Ok(())
    }

    /// Fixed delays whose run has ended; answers whether one went on.
    async fn go_on(&mut self) -> Result<bool, Error> {
        let mut did = false;
        for EndedRun { trigger, ended } in self.store.ended_runs(BATCH).await? {
            match &trigger.when {
                Ok(when) => did |= self.store.arm(&trigger, when.after_end(ended)).await?,
                Err(error) => self.put_aside(&trigger, error),
            }
        }
        Ok(did)
    }

    /// Fires what is due; answers whether it did.
    async fn fire(&mut self) -> Result<bool, Error> {
        let mut did = false;
        for Due { trigger, misfire, now } in self.store.due_triggers(BATCH).await? {
            if self.aside.contains_key(&trigger.id) {
                continue;
            }
            let (Some(planned), Ok(when)) = (trigger.next_fire_at, &trigger.when) else {
                if let Err(error) = &trigger.when {
                    self.put_aside(&trigger, error);
                }
                continue;
            };
            let decision = decide(when, planned, now, &misfire);
            match self.store.fire(&trigger, &decision, now).await {
                Ok(None) => {}
                Ok(Some(runs)) => {
                    did = true;
                    if let Some(missed) = decision.missed {
                        let (first, last, count) = (missed.first, missed.last, missed.count);
                        Event::Missed { job: &trigger.job, trigger: trigger.id, first, last, count }.emit();
                    }
                    for Run { planned, fate, task } in runs {
                        Event::Fired { job: &trigger.job, planned, task, fate }.emit();
                    }
                }
                // It, and no other.
                Err(error) if error.is_about_rows() => self.put_aside(&trigger, &error),
                Err(error) => return Err(error),
            }
        }
        Ok(did)
    }

    fn put_aside(&mut self, trigger: &Trigger, error: &dyn std::error::Error) {
        if self.aside.insert(trigger.id, self.clock.now() + ASIDE).is_none() {
            Event::NotFired { job: &trigger.job, trigger: trigger.id, error, again_in: ASIDE }.emit();
        }
    }
}
