//! A claim: a permit and a task, taken together in one transaction, held by exactly one owner.

use std::time::Duration;

use super::{Outcome, Retry, Settlement, Standing, settle};
use crate::clock::Instant;

/// One attempt of one task, for ever: `claim_no` only grows, so the pair never names another attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Attempt {
    /// The task's id.
    pub task: i64,
    /// The fencing token of this attempt.
    pub claim_no: i64,
}

/// A permit and a task that are ours. It is not `Clone`, and only [`Claim::end`] consumes it: one claim, one end.
#[must_use = "a claim that is dropped holds its permit until the lease runs out"]
#[derive(Debug)]
pub struct Claim {
    /// Which attempt this is.
    pub attempt: Attempt,
    /// Which handler or downstream serves it.
    pub kind: String,
    /// Whose permit it holds.
    pub semaphore: String,
    /// The caller's own name for the task.
    pub biz_key: Option<String>,
    /// The task's JSON text.
    pub payload: String,
    /// Its budget and policy.
    pub standing: Standing,
    /// The task's own limit for the call, where it has one.
    pub timeout: Option<Duration>,
    /// The instant before the claim was sent: start window and bound count from here.
    pub sent: Instant,
}

impl Claim {
    /// The end of this claim. `called` is when the call began, where it did; `luck` is drawn evenly from `0.0..1.0`.
    pub fn end(self, outcome: &Outcome, called: Option<Instant>, retry: &Retry, luck: f64) -> Ended {
        Ended {
            attempt: self.attempt,
            semaphore: self.semaphore,
            called_after: called.map(|instant| instant.since(self.sent)),
            status: outcome.status,
            settlement: settle(self.standing, outcome, retry, luck),
        }
    }
}

/// A claim that has ended and waits to be recorded.
#[must_use = "an end that is not recorded leaves its task running until the lease runs out"]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Which attempt ended.
    pub attempt: Attempt,
    /// Whose permit it holds.
    pub semaphore: String,
    /// How long after the claim was sent the call began; `None` where none did.
    pub called_after: Option<Duration>,
    /// The HTTP status, where there was one.
    pub status: Option<u16>,
    /// What becomes of task and permit.
    pub settlement: Settlement,
}
