//! The JSON that scripts rely on. Fields may be added, never taken away or renamed. Instants are RFC 3339 in UTC,
//! durations seconds.

use jiff::Timestamp;
use serde::Serialize;

use crate::model::{Holder, OnAbandon, Pause, Relative, Semaphore, Task};

/// A task in a list.
#[derive(Debug, Serialize)]
pub(super) struct TaskShape<'a> {
    id: i64,
    kind: &'a str,
    semaphore: &'a str,
    biz_key: Option<&'a str>,
    state: &'static str,
    priority: i32,
    aged: u32,
    run_at: Timestamp,
    attempts: u32,
    max_attempts: Option<u32>,
    claim_no: i64,
    consumer: Option<&'a str>,
    until: Option<Timestamp>,
    on_abandon: Option<&'static str>,
    timeout: Option<f64>,
    created_at: Timestamp,
    started_at: Option<Timestamp>,
    finished_at: Option<Timestamp>,
    expires_at: Option<Timestamp>,
    error: Option<&'a str>,
    source: &'a str,
}

impl<'a> From<&'a Task> for TaskShape<'a> {
    fn from(task: &'a Task) -> Self {
        Self {
            id: task.id,
            kind: &task.kind,
            semaphore: &task.semaphore,
            biz_key: task.biz_key.as_deref(),
            state: task.state.as_str(),
            priority: task.priority,
            aged: task.aged,
            run_at: task.run_at,
            attempts: task.attempts,
            max_attempts: task.max_attempts,
            claim_no: task.claim_no,
            consumer: task.consumer.as_deref(),
            until: task.until,
            on_abandon: task.on_abandon.map(OnAbandon::as_str),
            timeout: task.timeout.map(|limit| limit.as_secs_f64()),
            created_at: task.created_at,
            started_at: task.started_at,
            finished_at: task.finished_at,
            expires_at: task.expires_at,
            error: task.error.as_deref(),
            source: &task.source,
        }
    }
}

/// A task that another waits for, or that waits for it.
#[derive(Debug, Serialize)]
pub(super) struct RelativeShape<'a> {
    id: i64,
    kind: Option<&'a str>,
    biz_key: Option<&'a str>,
    state: &'static str,
    any_end: bool,
    open: bool,
}

impl<'a> From<&'a Relative> for RelativeShape<'a> {
    fn from(one: &'a Relative) -> Self {
        let (kind, biz_key) = match &one.task {
            Some((kind, _, key)) => (Some(&**kind), key.as_deref()),
            None => (None, None),
        };
        Self { id: one.id, kind, biz_key, state: one.state(), any_end: one.any_end, open: one.open }
    }
}

/// A semaphore.
#[derive(Debug, Serialize)]
pub(super) struct SemaphoreShape<'a> {
    name: &'a str,
    max_permits: i64,
    in_use: i64,
    held: i64,
    cooling: i64,
    free: i64,
    waiting: i64,
}

impl<'a> From<&'a Semaphore> for SemaphoreShape<'a> {
    fn from(semaphore: &'a Semaphore) -> Self {
        let Semaphore { name, max_permits, in_use, held, cooling, waiting } = semaphore;
        Self {
            name,
            max_permits: *max_permits,
            in_use: *in_use,
            held: *held,
            cooling: *cooling,
            free: semaphore.free(),
            waiting: *waiting,
        }
    }
}

/// What is paused.
#[derive(Debug, Serialize)]
pub(super) struct PauseShape<'a> {
    what: &'static str,
    name: &'a str,
    since: Timestamp,
    until: Option<Timestamp>,
    failures: u32,
    task: Option<i64>,
    claim_no: Option<i64>,
    who: &'a str,
    why: Option<&'a str>,
}

impl<'a> From<&'a Pause> for PauseShape<'a> {
    fn from(pause: &'a Pause) -> Self {
        Self {
            what: pause.scope.as_str(),
            name: &pause.name,
            since: pause.since,
            until: pause.until,
            failures: pause.failures,
            task: pause.probe.map(|probe| probe.task),
            claim_no: pause.probe.map(|probe| probe.claim_no),
            who: &pause.who,
            why: pause.why.as_deref(),
        }
    }
}

/// Who holds a permit.
#[derive(Debug, Serialize)]
pub(super) struct HolderShape<'a> {
    semaphore: &'a str,
    task: Option<i64>,
    claim_no: Option<i64>,
    consumer: Option<&'a str>,
    host: Option<&'a str>,
    pid: Option<i64>,
    since: Timestamp,
    until: Timestamp,
    state: &'static str,
    why: Option<&'a str>,
    lease_until: Option<Timestamp>,
}

impl<'a> From<&'a Holder> for HolderShape<'a> {
    fn from(holder: &'a Holder) -> Self {
        Self {
            semaphore: &holder.semaphore,
            task: holder.task,
            claim_no: holder.claim_no,
            consumer: holder.consumer.as_deref(),
            host: holder.host.as_deref(),
            pid: holder.pid,
            since: holder.since,
            until: holder.until,
            state: holder.state.as_str(),
            why: holder.why.as_deref(),
            lease_until: holder.lease_until,
        }
    }
}
