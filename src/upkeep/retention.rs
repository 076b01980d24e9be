//! Retention: what is over goes when it is old, so that the tables stay as long as the history that somebody wants.
//!
//! ```text
//!  per state   finished tasks past its age, oldest first      ─► with their attempts and actions
//!  per job     planned instants beyond its newest so many     ─► with their runs
//!  the rest    instants and actions of no task, past the rest's age; caps that others have followed; consumers long gone
//! ```
//!
//! A [`Walk`] reads batch by batch behind where it was, so what stays (a task whose permit cools) hides nothing. Reading
//! locks nothing, and each batch is deleted in a short transaction that leaves out what somebody else has locked. So any
//! number of processes may walk at once. Who archives does so between the two: a crash there archives twice.
//!
//! Upkeep walks for a moment in each pass, with a pause after each batch as long as the batch took: on SQLite, which has one
//! write lock, claims get half of even that moment.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::sleep;

use super::Upkeep;
use crate::event::Event;
use crate::model::{Retention, State};
use crate::store::{Doomed, Error, Forgotten, Store};

/// Tasks or records per transaction, and attempts, unless one task alone has more.
const BATCH: i64 = 200;
const ATTEMPTS: i64 = 1000;
/// Between two walks, and how long one takes of a pass.
const EVERY: Duration = Duration::from_mins(10);
const SLICE: Duration = Duration::from_secs(1);
/// How long consumers that are gone stay in the table.
const MEMORY: Duration = Duration::from_hours(7 * 24);

/// What a batch is of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// Tasks in this state.
    Tasks(State),
    /// What a job has too much of.
    Surplus(String),
    /// Records of planned instants.
    Instants,
    /// Records of what people did.
    Actions,
}

/// One way through everything that is old. It deletes nothing.
#[derive(Debug)]
pub struct Walk {
    retention: Retention,
    /// The database's clock when it began.
    now: i64,
    parts: VecDeque<Part>,
    /// Where it is in the first of them: an instant, where that counts, and an id.
    after: (i64, i64),
}

impl Walk {
    /// # Errors
    /// Where the database cannot be worked with.
    pub async fn begin(store: &mut Store, retention: Retention) -> Result<Self, Error> {
        let now = store.clock().await?;
        let jobs = store.jobs(None).await?.into_iter().map(|job| Part::Surplus(job.job.name));
        let parts = State::ALL.into_iter().filter(|state| retention.age(*state).is_some()).map(Part::Tasks);
        let parts = parts.chain(jobs).chain([Part::Instants, Part::Actions]).collect();
        Ok(Self { retention, now, parts, after: START })
    }

    /// The next batch, and what it is of; `None` at the end.
    ///
    /// # Errors
    /// Where the database cannot be worked with.
    pub async fn next(&mut self, store: &mut Store) -> Result<Option<(Part, Doomed)>, Error> {
        let Some(part) = self.parts.front().cloned() else { return Ok(None) };
        let mut doomed = Doomed { before: self.now, ..Doomed::default() };
        let more = match &part {
            Part::Tasks(state) => self.tasks(*state, store, &mut doomed).await?,
            Part::Surplus(job) => self.surplus(job, store, &mut doomed).await?,
            Part::Instants => match self.before(self.retention.rest()) {
                Some(before) => {
                    let records = store.old_instants(before, self.after.1, BATCH).await?;
                    self.records(&records, &mut doomed.instants)
                }
                None => false,
            },
            Part::Actions => match self.before(self.retention.rest()) {
                Some(before) => {
                    let records = store.old_actions(before, self.after.1, BATCH).await?;
                    self.records(&records, &mut doomed.actions)
                }
                None => false,
            },
        };
        if !more {
            self.parts.pop_front();
            self.after = START;
        }
        Ok(Some((part, doomed)))
    }

    /// The instant this long ago.
    fn before(&self, age: Option<Duration>) -> Option<i64> {
        let age = i64::try_from(age?.as_micros()).ok()?;
        Some(self.now - age)
    }

    async fn tasks(&mut self, state: State, store: &mut Store, doomed: &mut Doomed) -> Result<bool, Error> {
        let Some(before) = self.before(self.retention.age(state)) else { return Ok(false) };
        doomed.before = before;
        let found = store.finished(state, before, self.after, BATCH).await?;
        let mut attempts = 0;
        for task in &found {
            attempts += task.claim_no;
            if attempts > ATTEMPTS && !doomed.tasks.is_empty() {
                return Ok(true);
            }
            self.after = (task.finished_at, task.id);
            if !task.kept {
                doomed.tasks.push(task.id);
            }
        }
        Ok(is_full(found.len()))
    }

    async fn surplus(&mut self, job: &str, store: &mut Store, doomed: &mut Doomed) -> Result<bool, Error> {
        let found = store.surplus(job, self.retention.per_job, self.after.1, BATCH).await?;
        for record in found.iter().filter(|record| !record.kept) {
            doomed.instants.push(record.id);
            doomed.tasks.extend(record.task);
        }
        self.after.1 = found.last().map_or(self.after.1, |last| last.id);
        Ok(is_full(found.len()))
    }

    fn records(&mut self, found: &[crate::store::Record], doomed: &mut Vec<i64>) -> bool {
        let old: Vec<_> = found.iter().take_while(|record| record.old).collect();
        doomed.extend(old.iter().filter(|record| !record.kept).map(|record| record.id));
        self.after.1 = old.last().map_or(self.after.1, |last| last.id);
        is_full(old.len())
    }

    /// Deletes what needs no walk: caps that others have followed, and consumers that are long gone. Answers how many of
    /// each.
    ///
    /// # Errors
    /// Where the database cannot be worked with.
    pub async fn sweep(&self, store: &mut Store) -> Result<(u64, u64), Error> {
        let mut limits = 0;
        if let Some(before) = self.before(self.retention.rest()) {
            for semaphore in store.semaphores().await? {
                loop {
                    let forgotten = store.forget_limits(&semaphore.name, before, BATCH).await?;
                    limits += forgotten;
                    if !is_full(usize::try_from(forgotten).unwrap_or_default()) {
                        break;
                    }
                }
            }
        }
        Ok((limits, store.retire_consumers(MEMORY).await?))
    }
}

/// Before every instant that a database keeps.
const START: (i64, i64) = (0, 0);

fn is_full(found: usize) -> bool {
    i64::try_from(found).is_ok_and(|found| found >= BATCH)
}

impl Upkeep {
    /// Goes on with the walk, or begins one where that is due. Trouble is told, and is nobody else's.
    pub(super) async fn prune(&mut self) {
        let now = self.clock.now();
        let due = self.walked.is_none_or(|last| now.since(last) > EVERY);
        // By a clock that has stepped, everything might be old.
        if self.held_until.is_some_and(|until| now < until) || (self.walk.is_none() && !due) {
            return;
        }
        match self.slice().await {
            Ok(false) => {}
            Ok(true) => {
                let Forgotten { tasks, attempts, .. } = std::mem::take(&mut self.forgotten);
                if tasks > 0 {
                    Event::Pruned { tasks, attempts }.emit();
                }
                self.walked = Some(now);
            }
            Err(error) => {
                self.walked = Some(now);
                Event::Trouble { what: "retention", error: &error, again_in: EVERY }.emit();
            }
        }
    }

    /// A moment of the walk; answers whether it has come to its end.
    async fn slice(&mut self) -> Result<bool, Error> {
        let began = self.clock.now();
        // Where it ends with an error, the next walk begins anew.
        let mut walk = match self.walk.take() {
            Some(walk) => walk,
            None => Walk::begin(&mut self.store, self.options.retention).await?,
        };
        loop {
            let before = self.clock.now();
            let Some((_, doomed)) = walk.next(&mut self.store).await? else { break };
            if !doomed.is_empty() {
                self.forgotten += self.store.forget(&doomed).await?;
            }
            let now = self.clock.now();
            if now.since(began) > SLICE {
                self.walk = Some(walk);
                return Ok(false);
            }
            sleep(now.since(before)).await;
        }
        walk.sweep(&mut self.store).await?;
        Ok(true)
    }
}
