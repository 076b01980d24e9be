//! What happened to a task, in order: from the attempt log, from what people did, and from the task itself.

use jiff::Timestamp;
use serde::Serialize;

use super::when;
use crate::model::{State, Task};
use crate::store::{Action, AttemptLog};

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Event {
    /// When; an attempt stands where its permit was taken.
    pub(super) at: Timestamp,
    #[serde(flatten)]
    what: What,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum What {
    Enqueued {
        source: String,
    },
    Attempt {
        claim_no: i64,
        consumer: String,
        called_at: Option<Timestamp>,
        ended_at: Timestamp,
        permit_released_at: Option<Timestamp>,
        outcome: String,
        status: Option<i64>,
        error: Option<String>,
        ended_by: String,
    },
    /// Evidence, never state: the downstream answered after the claim was lost.
    LateAnswer {
        claim_no: i64,
        status: Option<i64>,
        answer: Option<String>,
    },
    Action {
        who: String,
        what: String,
        detail: Option<String>,
    },
    /// The attempt that is not in the log yet.
    Running {
        claim_no: i64,
        consumer: Option<String>,
        until: Option<Timestamp>,
    },
}

/// Everything that is known, oldest first.
pub(super) fn history(task: &Task, attempts: Vec<AttemptLog>, actions: Vec<Action>) -> Vec<Event> {
    let mut events =
        vec![Event { at: task.created_at, what: What::Enqueued { source: task.source.clone() } }];
    for attempt in attempts {
        if let Some(at) = attempt.late_at {
            let (claim_no, status) = (attempt.claim_no, attempt.late_status);
            events
                .push(Event { at, what: What::LateAnswer { claim_no, status, answer: attempt.late_answer } });
        }
        let what = What::Attempt {
            claim_no: attempt.claim_no,
            consumer: attempt.consumer,
            called_at: attempt.called_at,
            ended_at: attempt.ended_at,
            permit_released_at: attempt.permit_released_at,
            outcome: attempt.outcome,
            status: attempt.status,
            error: attempt.error,
            ended_by: attempt.ended_by,
        };
        events.push(Event { at: attempt.claimed_at, what });
    }
    for Action { at, who, what, detail } in actions {
        events.push(Event { at, what: What::Action { who, what, detail } });
    }
    if let (State::Running, Some(at)) = (task.state, task.started_at) {
        let (claim_no, consumer, until) = (task.claim_no, task.consumer.clone(), task.until);
        events.push(Event { at, what: What::Running { claim_no, consumer, until } });
    }
    events.sort_by_key(|event| event.at);
    events
}

impl Event {
    /// For people.
    pub(super) fn words(&self) -> String {
        let status =
            |status: &Option<i64>| status.map(|status| format!(", HTTP {status}")).unwrap_or_default();
        match &self.what {
            What::Enqueued { source } => format!("enqueued by {source}"),
            What::Attempt {
                claim_no,
                consumer,
                ended_at,
                outcome,
                status: http,
                error,
                ended_by,
                permit_released_at,
                ..
            } => {
                let took = when::span(self.at.duration_until(*ended_at).unsigned_abs());
                let mut text =
                    format!("attempt {claim_no} by {consumer}: {outcome} after {took}{}", status(http));
                if ended_by != consumer {
                    text.extend([", ended by ", ended_by]);
                }
                if permit_released_at.is_none() {
                    text.push_str(", its permit cools");
                }
                if let Some(error) = error {
                    text.extend([": ", error]);
                }
                text
            }
            What::LateAnswer { claim_no, status: http, answer } => {
                let answer = answer.as_deref().unwrap_or_default();
                format!("late answer to attempt {claim_no}{}, kept as evidence only: {answer}", status(http))
            }
            What::Action { who, what, detail } => {
                let detail = detail.as_ref().map(|detail| format!(" ({detail})")).unwrap_or_default();
                format!("{what} by {who}{detail}")
            }
            What::Running { claim_no, consumer, until } => {
                let consumer = consumer.as_deref().unwrap_or("nobody");
                let until = until.map(|at| format!(", until {} at most", when::utc(at))).unwrap_or_default();
                format!("attempt {claim_no} by {consumer} is running{until}")
            }
        }
    }
}
