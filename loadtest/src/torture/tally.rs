//! What happened, counted. Every client writes; the end reads.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use permitq::model::Semaphore;
use permitq::store::{Dialect, Error};

use sqlx::error::DatabaseError;

use super::MOST;
use super::report::Report;

#[derive(Debug, Default)]
pub(super) struct Tally(Mutex<Counts>);

#[derive(Debug, Default)]
struct Counts {
    done: BTreeMap<&'static str, u64>,
    enqueued: i64,
    perhaps_enqueued: i64,
    observations: u64,
    hints: u64,
    audits: u64,
    overruns: BTreeMap<&'static str, u64>,
    drift: u64,
    conflicts: u64,
    timeouts: u64,
    surprises: BTreeSet<String>,
}

impl Tally {
    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn count(&self, what: &'static str) {
        self.add(what, 1);
    }

    pub(super) fn add(&self, what: &'static str, n: u64) {
        *self.lock().done.entry(what).or_default() += n;
    }

    /// So many tasks are there, for certain or perhaps.
    pub(super) fn enqueue(&self, n: i64, certain: bool) {
        let mut counts = self.lock();
        *if certain { &mut counts.enqueued } else { &mut counts.perhaps_enqueued } += n;
    }

    pub(super) fn enqueued(&self) -> (i64, i64) {
        let counts = self.lock();
        (counts.enqueued, counts.perhaps_enqueued)
    }

    /// An audit under the lock.
    pub(super) fn audited(&self, drift: i64) {
        let mut counts = self.lock();
        counts.audits += 1;
        counts.drift += u64::from(drift != 0);
    }

    /// A read without the lock.
    pub(super) fn observed(&self, seen: &Semaphore, exact: bool) {
        let mut counts = self.lock();
        counts.observations += 1;
        if seen.in_use > MOST {
            *counts.overruns.entry("observer").or_default() += 1;
        }
        if seen.in_use != seen.held + seen.cooling {
            *if exact { &mut counts.drift } else { &mut counts.hints } += 1;
        }
    }

    pub(super) fn overruns(&self, seen_by: &'static str, n: u64) {
        *self.lock().overruns.entry(seen_by).or_default() += n;
    }

    /// Something that cannot be.
    pub(super) fn surprise(&self, what: &str) {
        self.lock().surprises.insert(what.to_owned());
    }

    /// Why a unit gave no answer: a connection that was killed is what this is all about, anything else is not.
    pub(super) fn failed(&self, error: &Error) {
        let said = error.to_string();
        match error {
            Error::Busy { .. } => self.lock().conflicts += 1,
            Error::Timeout { .. } => self.lock().timeouts += 1,
            _ if said.contains("over the cap") => self.overruns("trigger", 1),
            Error::Unknown { .. } => self.count("connections lost at COMMIT"),
            Error::Unreachable { .. } => self.count("connections refused"),
            Error::Database { source, .. } if is_lost(source) => self.count("connections lost"),
            _ => self.surprise(&said),
        }
    }

    pub(super) fn report(
        &self,
        dialect: Dialect,
        clients: usize,
        took: Duration,
        settled: bool,
        peak: i64,
    ) -> Report {
        let counts = self.lock();
        Report {
            database: format!("{dialect:?}").to_lowercase(),
            clients,
            seconds: took.as_secs_f64(),
            overruns: counts.overruns.values().sum(),
            overruns_by: counts.overruns.iter().map(|(by, n)| ((*by).to_owned(), *n)).collect(),
            drift: counts.drift,
            conflicts: counts.conflicts,
            timeouts: counts.timeouts,
            settled,
            surprises: counts.surprises.iter().cloned().collect(),
            peak,
            observations: counts.observations,
            hints: counts.hints,
            audits: counts.audits,
            done: counts.done.iter().map(|(what, n)| ((*what).to_owned(), *n)).collect(),
        }
    }
}

/// The server or the network ended the connection: terminated, interrupted, killed, shut down.
fn is_lost(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(DatabaseError::code).unwrap_or_default();
    matches!(error, sqlx::Error::Io(_) | sqlx::Error::WorkerCrashed)
        || code.starts_with("57P")
        || matches!(&*code, "70100" | "08S01")
}
