//! When jobs are due: triggers and their instants, what becomes of an instant that is late, and the business key of a run.
//!
//! A **job** says what is done, its **triggers** say when. A trigger is due at *planned instants*, which follow from the
//! trigger alone and never from when somebody looked: the next is computed from the last one. What is stored is the next
//! planned instant, so it outlives restarts, and any number of schedulers agree on it.
//!
//! # Daylight saving time
//!
//! Times of day that are written as numbers (`30 2 * * *`, `0 2,14 * * *`) are *fixed*: one that a clock jumps over runs at
//! the first instant after the jump, and one that a clock repeats runs the first time only. Anything with `*`, a range or a
//! step in hour, minute or second goes by elapsed time: what is jumped over never was, and a repeated hour counts twice.
//! An interval knows no time of day and no change of clock.
//!
//! Pure: no clock, no database.

mod cron;
mod decide;
mod job;
mod key;
mod quartz;
#[cfg(test)]
mod tests;
mod when;

pub use cron::{Cron, CronDialect};
pub(crate) use decide::passed;
pub use decide::{COUNT_MAX, Decision, Misfire, MisfirePolicy, Passed, decide};
pub use job::{Fate, Job, NewJob, Overlap, PlannedInstant, Trigger};
pub use key::KeyTemplate;
pub use when::{Plan, When};

use super::{KIND_MAX, Refused};

/// Why a schedule is refused before anything is written. The words name what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadSchedule {
    /// The job's name.
    #[error("name {0:?} must have 1 to {KIND_MAX} characters, none of them control characters")]
    Name(String),
    /// What the job's tasks are.
    #[error(transparent)]
    Task(#[from] Refused),
    /// A cron expression that cannot be read.
    #[error("cron expression {expression:?}: {why}")]
    Expression {
        /// As it was written.
        expression: String,
        /// What is wrong and what to write instead.
        why: String,
    },
    /// It never comes due.
    #[error("{0} is never due: {1}")]
    Never(String, String),
    /// Not in the time zone database.
    #[error("unknown time zone {0:?}; write an IANA name such as Europe/Berlin, America/New_York or UTC")]
    Zone(String),
    /// No time between two runs.
    #[error("an interval or delay must be from 1 ms to 366 days")]
    Every,
    /// It ends before it starts.
    #[error("it ends at {0}, before it starts; leave out the end, or name a later one")]
    End(jiff::Timestamp),
    /// A key that would be the same for every run, or too long, or has a placeholder that nobody knows.
    #[error("key template {0:?} {1}")]
    Key(String, String),
    /// Beyond bounds.
    #[error("misfire_after must be at most 366 days")]
    MisfireAfter,
    /// Beyond bounds.
    #[error("the most runs to catch up must be from 1 to 1000")]
    MisfireMax,
}
