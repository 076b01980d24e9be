//! The one transition table of a task.
//!
//! ```text
//!  blocked ──► scheduled ──► pending ──► running ──► succeeded
//!                  ▲            ▲           │   ├──► failed ────┐
//!                  │            │           │   └──► cancelled ─┤
//!                  └── retry ───┴─ hand back┘                   │
//!                               ▲─── a person's retry ──────────┘
//! ```
//!
//! A blocked task fails with the task it waits for, and is blocked again when a person retries that one with its dependents.
//! A person may also take a late answer as the result: from scheduled, pending or failed to succeeded.
//!
//! Every statement that writes `state` moves along an arrow of [`State::may_become`]; the contract suite installs this
//! table as a trigger in the test database and so proves that no SQL moves outside it.

use std::fmt;
use std::str::FromStr;

/// Where a task stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// Waits for other tasks.
    Blocked,
    /// Waits for its `run_at`.
    Scheduled,
    /// Due: may be claimed.
    Pending,
    /// Claimed; the row *is* its permit.
    Running,
    /// Done.
    Succeeded,
    /// Given up.
    Failed,
    /// A person (or its deadline) called it off.
    Cancelled,
}

impl State {
    /// Every state, in the order of a task's life.
    pub const ALL: [Self; 7] = [
        Self::Blocked,
        Self::Scheduled,
        Self::Pending,
        Self::Running,
        Self::Succeeded,
        Self::Failed,
        Self::Cancelled,
    ];

    /// Whether a task may go from `self` to `to`.
    pub fn may_become(self, to: Self) -> bool {
        use State::{Blocked, Cancelled, Failed, Pending, Running, Scheduled, Succeeded};
        match self {
            Blocked => matches!(to, Scheduled | Pending | Failed | Cancelled),
            // To succeeded: a person accepts a late answer.
            Scheduled => matches!(to, Pending | Succeeded | Cancelled),
            Pending => matches!(to, Running | Succeeded | Cancelled),
            Running => matches!(to, Scheduled | Pending | Succeeded | Failed | Cancelled),
            Succeeded => false,
            // A person's retry (blocked: of a task that it waits for), and accept.
            Failed => matches!(to, Blocked | Scheduled | Pending | Succeeded),
            Cancelled => matches!(to, Scheduled | Pending),
        }
    }

    /// Succeeded, failed and cancelled are final: only a person's retry or accept leaves them.
    pub fn is_final(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed | Self::Cancelled)
    }

    /// The word in the table, the API and the log.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Blocked => "blocked",
            Self::Scheduled => "scheduled",
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for State {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|state| state.as_str() == word).ok_or_else(|| {
            let known = Self::ALL.map(Self::as_str).join(", ");
            format!("unknown state {word:?}; the states are {known}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn final_states_are_left_only_by_a_persons_retry_and_accept() {
        for from in [State::Succeeded, State::Failed, State::Cancelled] {
            for to in State::ALL {
                let by_retry = from != State::Succeeded && matches!(to, State::Scheduled | State::Pending);
                let by_accept = (from, to) == (State::Failed, State::Succeeded);
                let with_parent = (from, to) == (State::Failed, State::Blocked);
                assert_eq!(from.may_become(to), by_retry || by_accept || with_parent, "{from} -> {to}");
            }
        }
    }

    #[test]
    fn only_a_pending_task_is_claimed() {
        for from in State::ALL {
            assert_eq!(from.may_become(State::Running), from == State::Pending, "{from}");
        }
    }

    #[test]
    fn words_round_trip() {
        for state in State::ALL {
            assert_eq!(state.as_str().parse(), Ok(state));
        }
        assert!("done".parse::<State>().unwrap_err().contains("succeeded"));
    }
}
