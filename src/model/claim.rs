//! A claim: a permit and a task, taken together in one transaction, held by exactly one owner.

use std::time::Duration;

use super::{Outcome, Retry, RunAt, Settlement, Standing, Verdict, settle};
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
        let mut settlement = settle(self.standing, outcome, retry, luck);
        if let (Verdict::Down { .. }, Some(RunAt::In(delay))) = (&outcome.verdict, &mut settlement.run_at) {
            // Longer each time: a task that alone gets such answers must not be every other probe.
            let times = self.attempt.claim_no - i64::from(settlement.attempts);
            *delay = Signal::pause(u32::try_from(times).unwrap_or(u32::MAX)).mul_f64(luck.clamp(0.0, 1.0));
        }
        Ended {
            attempt: self.attempt,
            semaphore: self.semaphore,
            called_after: called.map(|instant| instant.since(self.sent)),
            status: outcome.status,
            settlement,
            signal: None,
        }
    }
}

/// What an end says about its downstream as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signal {
    /// Which downstream.
    pub downstream: String,
    /// `Some`: it is down, and wants to be left alone for so long. `None`: a probe found it up.
    pub down: Option<Duration>,
}

impl Signal {
    /// How long a downstream that was found down so many times in a row is left alone: 1 s, 2 s, 4 s, at most 30 s.
    pub fn pause(times: u32) -> Duration {
        Duration::from_secs((1 << times.saturating_sub(1).min(5)).min(30))
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
    /// What it says about its downstream; most ends say nothing.
    pub signal: Option<Signal>,
}
