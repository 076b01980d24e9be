//! What was really done, and when: milliseconds since the start, on one monotonic clock, the stub's too.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

use super::plan::Fault;

/// A value that `max_permits` was given. It may be in force from `sent` on, and is from `acked` on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cap {
    pub(super) sent: u64,
    pub(super) acked: u64,
    pub(super) max: i64,
}

/// An edit of the counter by hand; perhaps it never happened, where `acked` is missing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edit {
    pub(super) sent: u64,
    pub(super) acked: Option<u64>,
    pub(super) by: i64,
}

/// A fault that was done.
#[derive(Clone, Copy, Debug)]
pub(super) struct Struck {
    pub(super) at: u64,
    pub(super) until: u64,
    pub(super) what: Fault,
    /// Whom; `None` is everybody.
    pub(super) member: Option<usize>,
}

/// A time in which nobody could work with the database.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outage {
    pub(super) from: u64,
    pub(super) until: u64,
}

/// A consumer that ended by itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct Exit {
    pub(super) at: u64,
    pub(super) pid: u32,
    pub(super) code: Option<i32>,
}

/// All of it.
#[derive(Clone, Debug, Default)]
pub(super) struct Journal {
    pub(super) caps: Vec<Cap>,
    pub(super) edits: Vec<Edit>,
    pub(super) struck: Vec<Struck>,
    pub(super) outages: Vec<Outage>,
    /// The clock's steps: when, and how far ahead of the host's it was from then on.
    pub(super) steps: Vec<(u64, i64)>,
    /// Business keys of tasks whose enqueue was acknowledged, and of those where no answer came.
    pub(super) acked: BTreeSet<String>,
    pub(super) doubtful: BTreeSet<String>,
    pub(super) cancels: u64,
    /// Tasks that a person asked to retry, once per asking.
    pub(super) retried: Vec<i64>,
    /// Consumers that ended by themselves.
    pub(super) exits: Vec<Exit>,
    /// Statements of ours that found no database.
    pub(super) cut_off: u64,
}

/// Written by whoever does something, read when all is over.
#[derive(Debug)]
pub(super) struct Book {
    zero: Instant,
    journal: Mutex<Journal>,
}

impl Book {
    pub(super) fn new(zero: Instant, max: i64) -> Self {
        let caps = vec![Cap { sent: 0, acked: 0, max }];
        Self { zero, journal: Mutex::new(Journal { caps, ..Journal::default() }) }
    }

    /// Milliseconds since the start.
    pub(super) fn now(&self) -> u64 {
        u64::try_from(self.zero.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// The moment so many milliseconds after the start.
    pub(super) fn moment(&self, ms: u64) -> Instant {
        self.zero + std::time::Duration::from_millis(ms)
    }

    pub(super) fn write(&self) -> MutexGuard<'_, Journal> {
        self.journal.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
