//! The rules in the test's own words: what becomes of a task when an attempt ends.

use std::time::Duration;

use permitq::model::{OnAbandon, Outcome, State, Verdict, Why};

/// How an attempt ends.
#[derive(Clone, Copy, Debug)]
pub(super) enum How {
    Succeeded,
    Failed,
    Busy,
    NotStarted,
    TimedOut,
    Shutdown,
}

/// What it leaves behind.
#[derive(Clone, Copy, Debug)]
pub(super) struct After {
    pub(super) state: State,
    pub(super) attempts: u32,
    /// Its permit cools instead of being free.
    pub(super) cools: bool,
    /// The task waits until that is over.
    pub(super) waits: bool,
}

impl How {
    pub(super) const ALL: [Self; 6] =
        [Self::Succeeded, Self::Failed, Self::Busy, Self::NotStarted, Self::TimedOut, Self::Shutdown];

    pub(super) fn outcome(self) -> Outcome {
        match self {
            Self::Succeeded => Outcome::succeeded(None),
            Self::Failed => Outcome::failed("no"),
            Self::Busy => Outcome::retry("busy", None),
            Self::NotStarted => Outcome::not_started("window"),
            Self::TimedOut => Outcome::unclear(Why::Timeout, "slow"),
            Self::Shutdown => Outcome {
                verdict: Verdict::HandedBack { error: "shutdown".into() },
                ..Outcome::unclear(Why::Shutdown, "")
            },
        }
    }

    /// `used` attempts of `most`, this one included.
    pub(super) fn after(self, used: u32, most: u32, policy: OnAbandon) -> After {
        let clear = |state, attempts| After { state, attempts, cools: false, waits: false };
        let last = used >= most;
        match self {
            Self::Succeeded => clear(State::Succeeded, used),
            Self::Failed => clear(State::Failed, used),
            Self::Busy => clear(if last { State::Failed } else { State::Scheduled }, used),
            Self::NotStarted => clear(State::Pending, used - 1),
            Self::TimedOut => unclear(State::Scheduled, used, last, policy, used),
            Self::Shutdown => unclear(State::Pending, used - 1, false, policy, used),
        }
    }
}

/// What a reclaimer makes of it.
pub(super) fn abandoned(used: u32, most: u32, policy: OnAbandon) -> After {
    unclear(State::Pending, used, used >= most, policy, used)
}

fn unclear(state: State, attempts: u32, last: bool, policy: OnAbandon, used: u32) -> After {
    let (state, attempts, waits) = match policy {
        OnAbandon::Fail => (State::Failed, used, false),
        _ if last => (State::Failed, used, false),
        OnAbandon::RetryAfterCooling => (State::Scheduled, attempts, true),
        OnAbandon::Retry => (state, attempts, false),
    };
    After { state, attempts, cools: true, waits }
}

/// Whether this instant is so near that it may pass while something is asked; in microseconds.
pub(super) fn is_near(instant: i64, now: i64) -> bool {
    u128::from(instant.abs_diff(now)) < Duration::from_millis(1500).as_micros()
}
