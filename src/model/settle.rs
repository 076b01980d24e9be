//! What becomes of a task and its permit when an attempt ends: one pure function for every way out.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::{End, Outcome, Retry, RunAt, State, Verdict, Why};

/// What an unclear end does to a task: the call was given up and may still run downstream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnAbandon {
    /// Runnable again at once, by backoff where the attempt failed. Needs an idempotent downstream.
    #[default]
    Retry,
    /// Runnable again when the given-up call must be over: never two overlapping calls of one task.
    RetryAfterCooling,
    /// At most once: the task fails with the reason `abandoned` and a person decides.
    Fail,
}

impl OnAbandon {
    /// Every policy.
    pub const ALL: [Self; 3] = [Self::Retry, Self::RetryAfterCooling, Self::Fail];

    /// The word in the table, the API and the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Retry => "retry",
            Self::RetryAfterCooling => "retry_after_cooling",
            Self::Fail => "fail",
        }
    }
}

impl fmt::Display for OnAbandon {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for OnAbandon {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|policy| policy.as_str() == word).ok_or_else(|| {
            format!("unknown on_abandon {word:?}; use {}", Self::ALL.map(Self::as_str).join(", "))
        })
    }
}

/// Where a running task stands with its budget and policy, as its row says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Attempts used, this one included.
    pub attempts: u32,
    /// Attempts allowed.
    pub max_attempts: u32,
    /// What an unclear end does.
    pub on_abandon: OnAbandon,
}

/// What the finishing transaction writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settlement {
    /// The task's next state.
    pub state: State,
    /// When it may run again; `None` in a final state, and where it is pending at the place in the queue that it had.
    pub run_at: Option<RunAt>,
    /// Attempts used from now on.
    pub attempts: u32,
    /// The task's result, where it succeeded.
    pub result: Option<String>,
    /// What went wrong, where it did.
    pub error: Option<String>,
    /// The word in the attempt log.
    pub outcome: &'static str,
    /// Set where the permit cools instead of being freed.
    pub cooling: Option<Why>,
}

/// Settles one ended attempt. `luck` is drawn evenly from `0.0..1.0`.
pub fn settle(standing: Standing, outcome: &Outcome, retry: &Retry, luck: f64) -> Settlement {
    let cooling = match outcome.end {
        End::Clear | End::Stopped => None,
        End::Unclear(why) => Some(why),
    };
    let given_up = outcome.end != End::Clear;
    let over = |state, outcome, error: Option<&String>| Settlement {
        state,
        run_at: None,
        attempts: standing.attempts,
        result: None,
        error: error.cloned(),
        outcome,
        cooling,
    };
    let again = |outcome, error: &String, delay: Duration, attempts| match standing.on_abandon {
        OnAbandon::Fail if given_up => over(State::Failed, outcome, Some(&format!("abandoned: {error}"))),
        _ if attempts >= standing.max_attempts => {
            let error = format!("{error} (attempt {attempts} of {})", standing.max_attempts);
            over(State::Failed, outcome, Some(&error))
        }
        OnAbandon::RetryAfterCooling if cooling.is_some() => Settlement {
            run_at: Some(RunAt::AfterCooling(delay)),
            attempts,
            ..over(State::Scheduled, outcome, Some(error))
        },
        _ if delay.is_zero() => Settlement { attempts, ..over(State::Pending, outcome, Some(error)) },
        _ => Settlement {
            run_at: Some(RunAt::In(delay)),
            attempts,
            ..over(State::Scheduled, outcome, Some(error))
        },
    };
    match &outcome.verdict {
        Verdict::Succeeded { result } => {
            Settlement { result: result.clone(), ..over(State::Succeeded, "succeeded", None) }
        }
        Verdict::Failed { error } => over(State::Failed, "failed", Some(error)),
        Verdict::Cancelled { error } => over(State::Cancelled, "cancelled", Some(error)),
        Verdict::Retry { error, after } => {
            again("failed", error, retry.delay(standing.attempts, luck, *after), standing.attempts)
        }
        Verdict::Abandoned { error } => again("abandoned", error, Duration::ZERO, standing.attempts),
        Verdict::Down { error, .. } => {
            // What holds it up is the downstream's pause; but the next probe is another task's.
            again("handed_back", error, Duration::from_secs(1), standing.attempts.saturating_sub(1))
        }
        Verdict::HandedBack { error } => {
            again("handed_back", error, Duration::ZERO, standing.attempts.saturating_sub(1))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Standing = Standing { attempts: 1, max_attempts: 3, on_abandon: OnAbandon::Retry };

    fn settled(standing: Standing, outcome: &Outcome) -> Settlement {
        settle(standing, outcome, &Retry::default(), 1.0)
    }

    fn unclear(verdict: Verdict) -> Outcome {
        Outcome { verdict, end: End::Unclear(Why::Timeout), status: None }
    }

    #[test]
    fn a_clear_success_frees_its_permit_and_a_202_cools() {
        let clear = settled(FIRST, &Outcome::succeeded("42".to_owned()));
        assert_eq!(
            (clear.state, clear.cooling, clear.result.as_deref()),
            (State::Succeeded, None, Some("42"))
        );
        let accepted = settled(
            FIRST,
            &Outcome {
                verdict: Verdict::Succeeded { result: None },
                end: End::Unclear(Why::Status),
                status: Some(202),
            },
        );
        assert_eq!((accepted.state, accepted.cooling), (State::Succeeded, Some(Why::Status)));
    }

    #[test]
    fn every_unclear_end_follows_on_abandon() {
        let ends = [
            Verdict::Retry { error: "x".into(), after: None },
            Verdict::Abandoned { error: "x".into() },
            Verdict::HandedBack { error: "x".into() },
        ];
        for end in ends {
            let end = unclear(end);
            for (policy, state) in
                [(OnAbandon::RetryAfterCooling, State::Scheduled), (OnAbandon::Fail, State::Failed)]
            {
                let done = settled(Standing { on_abandon: policy, ..FIRST }, &end);
                assert_eq!(done.state, state, "{end:?} {policy}");
                assert_eq!(done.cooling, Some(Why::Timeout));
            }
        }
    }

    #[test]
    fn a_call_that_was_stopped_frees_its_permit_and_still_follows_on_abandon() {
        let stopped = Outcome {
            verdict: Verdict::Retry { error: "x".into(), after: None },
            end: End::Stopped,
            status: None,
        };
        for (policy, state) in [
            (OnAbandon::Retry, State::Scheduled),
            (OnAbandon::RetryAfterCooling, State::Scheduled),
            (OnAbandon::Fail, State::Failed),
        ] {
            let done = settled(Standing { on_abandon: policy, ..FIRST }, &stopped);
            assert_eq!((done.state, done.cooling), (state, None), "{policy}");
        }
    }

    #[test]
    fn an_abandoned_task_keeps_its_place_and_a_failed_one_waits_by_backoff() {
        let lost = settled(FIRST, &unclear(Verdict::Abandoned { error: "lost".into() }));
        assert_eq!((lost.state, lost.run_at), (State::Pending, None));
        let failed = settled(FIRST, &unclear(Verdict::Retry { error: "reset".into(), after: None }));
        assert_eq!(
            (failed.state, failed.run_at),
            (State::Scheduled, Some(RunAt::In(Duration::from_secs(5))))
        );
    }

    #[test]
    fn a_lost_last_attempt_ends_failed_never_in_limbo() {
        let used_up = Standing { attempts: 3, ..FIRST };
        let lost = settled(used_up, &unclear(Verdict::Abandoned { error: "lost".into() }));
        assert_eq!((lost.state, lost.run_at), (State::Failed, None));
        assert_eq!(lost.error.as_deref(), Some("lost (attempt 3 of 3)"));
    }

    #[test]
    fn handing_back_costs_no_attempt() {
        let back = settled(Standing { attempts: 3, ..FIRST }, &Outcome::not_started("window"));
        assert_eq!((back.state, back.attempts, back.cooling), (State::Pending, 2, None));
    }

    #[test]
    fn a_downstream_that_is_down_costs_no_attempt() {
        let down = settled(Standing { attempts: 3, ..FIRST }, &Outcome::down("refused", None));
        assert_eq!((down.state, down.attempts, down.cooling), (State::Scheduled, 2, None));
        assert_eq!((down.outcome, down.error.as_deref()), ("handed_back", Some("refused")));
    }

    #[test]
    fn every_settlement_moves_along_the_transition_table() {
        let errors = || "e".to_owned();
        let verdicts = [
            Verdict::Succeeded { result: None },
            Verdict::Retry { error: errors(), after: None },
            Verdict::Failed { error: errors() },
            Verdict::HandedBack { error: errors() },
            Verdict::Down { error: errors(), after: None },
            Verdict::Abandoned { error: errors() },
            Verdict::Cancelled { error: errors() },
        ];
        for verdict in verdicts {
            for end in [End::Clear, End::Stopped, End::Unclear(Why::Timeout)] {
                for on_abandon in OnAbandon::ALL {
                    for attempts in 1..=3 {
                        let outcome = Outcome { verdict: verdict.clone(), end, status: None };
                        let done = settled(Standing { attempts, max_attempts: 3, on_abandon }, &outcome);
                        assert!(State::Running.may_become(done.state), "{outcome:?}");
                        assert_eq!(done.run_at.is_some(), done.state == State::Scheduled, "{outcome:?}");
                        assert_eq!(done.cooling.is_some(), end == End::Unclear(Why::Timeout));
                    }
                }
            }
        }
    }
}
