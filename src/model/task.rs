//! Tasks, permits and semaphores as people see them.

use std::time::Duration;

use jiff::Timestamp;

use super::{After, OnAbandon, Parent, State};

/// Longest business key, in characters.
pub const BIZ_KEY_MAX: usize = 255;
/// Longest kind or semaphore name, in characters.
pub const KIND_MAX: usize = 100;
/// Largest payload, in bytes of its JSON text.
pub const PAYLOAD_MAX: usize = 4 << 20;

/// When a task may run, by the database's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RunAt {
    /// At once.
    #[default]
    Now,
    /// After a delay.
    In(Duration),
    /// At an instant.
    At(Timestamp),
    /// When the permit of its last attempt must be over, and not before the delay.
    AfterCooling(Duration),
}

/// A task to be enqueued. Only `kind` is needed; a `None` follows the configuration of the consumer that claims it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NewTask {
    /// Which handler or downstream serves it.
    pub kind: String,
    /// Unique until the task is pruned: enqueueing the same key again finds the first task.
    pub biz_key: Option<String>,
    /// JSON text; empty means `{}`.
    pub payload: String,
    /// Higher runs first.
    pub priority: i32,
    /// When it may run.
    pub run_at: RunAt,
    /// Its own limit for one call, at most the downstream's `call_timeout`.
    pub timeout: Option<Duration>,
    /// Attempts in all.
    pub max_attempts: Option<u32>,
    /// What an unclear end does.
    pub on_abandon: Option<OnAbandon>,
    /// Whose permits it needs; `default` where `None`.
    pub semaphore: Option<String>,
    /// Not worth starting from then on: cancelled where nobody has claimed it by then. A delay counts from its enqueueing.
    pub expires: Option<RunAt>,
    /// What has to end before it may run; more than one: all of them.
    pub after: Vec<After>,
    /// The job it is a run of; only schedules set it.
    pub job: Option<String>,
    /// Who asked: `api`, `cli`, ….
    pub source: String,
}

/// Why a new task is refused before anything is written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The kind is missing or too long.
    #[error("kind {0:?} must have 1 to {KIND_MAX} characters, none of them control characters")]
    Kind(String),
    /// The semaphore's name is missing or too long.
    #[error("semaphore {0:?} must have 1 to {KIND_MAX} characters, none of them control characters")]
    Semaphore(String),
    /// The key is empty or too long.
    #[error(
        "business key of {0} characters: it must have 1 to {BIZ_KEY_MAX}, none of them control characters"
    )]
    BizKey(usize),
    /// Not JSON.
    #[error("payload is not JSON: {0}")]
    Payload(String),
    /// Too large.
    #[error(
        "payload of {0} bytes is over the limit of {PAYLOAD_MAX}; store it elsewhere and pass a reference"
    )]
    PayloadSize(usize),
    /// No attempt would be allowed.
    #[error("max_attempts must be from 1 to 1000")]
    MaxAttempts,
    /// No time for the call.
    #[error("timeout must be more than 0 and at most 7 days")]
    Timeout,
}

impl NewTask {
    /// A task of this kind with this JSON payload.
    ///
    /// ```
    /// let task = permitq::NewTask::new("report", r#"{"month": "2026-11"}"#);
    /// assert!(task.check().is_ok());
    /// assert!(permitq::NewTask::new("report", "{").check().is_err());
    /// ```
    pub fn new(kind: impl Into<String>, payload: impl Into<String>) -> Self {
        Self { kind: kind.into(), payload: payload.into(), source: "api".to_owned(), ..Self::default() }
    }

    /// With a business key.
    #[must_use]
    pub fn key(mut self, biz_key: impl Into<String>) -> Self {
        self.biz_key = Some(biz_key.into());
        self
    }

    /// Not before this task, by id or business key, has succeeded; if it ends otherwise, this one fails, too.
    ///
    /// ```
    /// let send = permitq::NewTask::new("send", "{}").after("report/2026-11").after(7);
    /// assert_eq!(send.after.len(), 2);
    /// ```
    #[must_use]
    pub fn after(mut self, parent: impl Into<Parent>) -> Self {
        self.after.push(After { parent: parent.into(), any_end: false });
        self
    }

    /// Not before this task has ended, however it did.
    #[must_use]
    pub fn after_any_end(mut self, parent: impl Into<Parent>) -> Self {
        self.after.push(After { parent: parent.into(), any_end: true });
        self
    }

    /// Whether the database would take it; the first reason where not.
    pub fn check(&self) -> Result<(), Refused> {
        let name = |text: &str, max| {
            (1..=max).contains(&text.chars().count()) && !text.chars().any(char::is_control)
        };
        if !name(&self.kind, KIND_MAX) {
            return Err(Refused::Kind(self.kind.clone()));
        }
        if let Some(semaphore) = &self.semaphore
            && !name(semaphore, KIND_MAX)
        {
            return Err(Refused::Semaphore(semaphore.clone()));
        }
        if let Some(key) = &self.biz_key
            && !name(key, BIZ_KEY_MAX)
        {
            return Err(Refused::BizKey(key.chars().count()));
        }
        if self.payload.len() > PAYLOAD_MAX {
            return Err(Refused::PayloadSize(self.payload.len()));
        }
        if !self.payload.is_empty()
            && let Err(error) = serde_json::from_str::<serde::de::IgnoredAny>(&self.payload)
        {
            return Err(Refused::Payload(error.to_string()));
        }
        if self.max_attempts.is_some_and(|most| !(1..=1000).contains(&most)) {
            return Err(Refused::MaxAttempts);
        }
        if self.timeout.is_some_and(|limit| limit.is_zero() || limit > Duration::from_hours(7 * 24)) {
            return Err(Refused::Timeout);
        }
        Ok(())
    }
}

/// A task as it stands in the table.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Task {
    /// Ascending, made by the database.
    pub id: i64,
    /// Which handler or downstream serves it.
    pub kind: String,
    /// Whose permits it needs.
    pub semaphore: String,
    /// The caller's own name for it.
    pub biz_key: Option<String>,
    /// JSON text; only [`crate::store::Store::task`] reads it.
    pub payload: Option<String>,
    /// Higher runs first.
    pub priority: i32,
    /// Where it stands.
    pub state: State,
    /// When it may run, or was due.
    pub run_at: Timestamp,
    /// The fencing token of its last claim.
    pub claim_no: i64,
    /// Attempts used.
    pub attempts: u32,
    /// Attempts allowed; `None` until first claimed where the task does not say.
    pub max_attempts: Option<u32>,
    /// What an unclear end does; `None` until first claimed where the task does not say.
    pub on_abandon: Option<OnAbandon>,
    /// Its own limit for one call.
    pub timeout: Option<Duration>,
    /// Who runs it.
    pub consumer: Option<String>,
    /// When its call must be over downstream, while it runs.
    pub until: Option<Timestamp>,
    /// When it was enqueued.
    pub created_at: Timestamp,
    /// When it was last claimed.
    pub started_at: Option<Timestamp>,
    /// When it reached its final state.
    pub finished_at: Option<Timestamp>,
    /// What the downstream answered.
    pub result: Option<String>,
    /// What went wrong last.
    pub error: Option<String>,
    /// Who asked.
    pub source: String,
    /// How much of the priority came with age: what was asked for is so much less.
    pub aged: u32,
    /// Not worth starting from then on.
    pub expires_at: Option<Timestamp>,
}

/// A semaphore and what its permits do.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Semaphore {
    /// Its name.
    pub name: String,
    /// The cap.
    pub max_permits: i64,
    /// Permits taken, as counted in the row.
    pub in_use: i64,
    /// Running tasks.
    pub held: i64,
    /// Permits whose call was given up and may still run.
    pub cooling: i64,
    /// Due tasks; counted up to [`Semaphore::WAITING_MAX`].
    pub waiting: i64,
}

impl Semaphore {
    /// Waiting tasks are counted no further than this, so that looking never slows with the backlog.
    pub const WAITING_MAX: i64 = 10_000;

    /// Permits that may be taken now.
    pub fn free(&self) -> i64 {
        (self.max_permits - self.in_use).max(0)
    }
}

/// What a taken permit does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PermitState {
    /// Its task runs.
    Held,
    /// Its call was given up and may still run downstream.
    Cooling,
}

impl PermitState {
    /// The word in the view and the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::Cooling => "cooling",
        }
    }
}

/// Who holds a permit.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Holder {
    /// Whose permit.
    pub semaphore: String,
    /// The task; `None` where the auditor found a permit that nothing explains.
    pub task: Option<i64>,
    /// The attempt.
    pub claim_no: Option<i64>,
    /// The consumer.
    pub consumer: Option<String>,
    /// Its host, where it is known.
    pub host: Option<String>,
    /// Its process, where it is known.
    pub pid: Option<i64>,
    /// Taken, or cooling, since.
    pub since: Timestamp,
    /// The call must be over by then.
    pub until: Timestamp,
    /// Held or cooling.
    pub state: PermitState,
    /// Why it cools.
    pub why: Option<String>,
    /// The consumer's lease, while its task runs.
    pub lease_until: Option<Timestamp>,
}
