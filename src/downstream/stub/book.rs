//! What the stub counts. Every count changes under one lock, with the event that changes it.

use std::collections::{HashMap, HashSet, VecDeque};

use serde::{Deserialize, Serialize};

/// What a stub downstream has counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Summary {
    /// More calls at once than this are overruns.
    pub limit: Option<u32>,
    /// Calls that arrived, overruns included.
    pub calls: u64,
    /// Calls whose time is not over, whether or not their callers still wait.
    pub in_flight: u32,
    /// The most calls at once, an overrun on top of the limit included.
    pub max_in_flight: u32,
    /// Calls that arrived while as many as the limit were in flight. They are refused with 503 and take no time.
    pub overruns: u64,
    /// Calls whose `Idempotency-Key` had succeeded before: work that was done twice.
    pub duplicates: u64,
    /// Calls that arrived while another with the same `Idempotency-Key` was in flight.
    pub overlaps: u64,
    /// Calls whose time ran out in full and that meant success, whether or not their callers heard of it.
    pub succeeded: u64,
    /// Calls whose callers went away before the answer.
    pub callers_gone: u64,
    /// One entry per call, in order of arrival; the oldest are dropped beyond a bound.
    pub log: Vec<Entry>,
}

/// One call as the stub saw it. Microseconds count from the stub's start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Entry {
    /// `Idempotency-Key`.
    pub key: Option<String>,
    /// `X-Permitq-Key`, percent-encoded as it came.
    pub biz_key: Option<String>,
    /// `X-Permitq-Attempt`.
    pub attempt: Option<u32>,
    /// `X-Permitq-Fencing-Token`.
    pub token: Option<i64>,
    /// When it arrived.
    pub start_us: u64,
    /// When its time was over; `None` while it is in flight.
    pub end_us: Option<u64>,
    /// The status that it was answered with; `None` before that, and where there was no whole answer.
    pub status: Option<u16>,
    /// How it misbehaved.
    pub fault: Option<String>,
    /// Its caller went away before the answer.
    pub caller_gone: bool,
    /// It was one too many.
    pub overrun: bool,
    /// Its key had succeeded before.
    pub duplicate: bool,
}

/// A call in flight.
#[derive(Debug)]
pub(super) struct Call {
    pub id: u64,
    key: Option<String>,
}

#[derive(Debug)]
pub(super) struct Book {
    pub limit: Option<u32>,
    /// Everything but `limit` and `log`.
    counts: Summary,
    log: VecDeque<Entry>,
    log_max: usize,
    /// The id of the log's first entry.
    first: u64,
    /// Keys that have succeeded.
    done: HashSet<String>,
    /// Keys in flight, and how often.
    busy: HashMap<String, u32>,
}

impl Book {
    pub(super) fn new(limit: Option<u32>, log_max: usize) -> Self {
        Self {
            limit,
            counts: Summary::default(),
            log: VecDeque::new(),
            log_max,
            first: 0,
            done: HashSet::new(),
            busy: HashMap::new(),
        }
    }

    /// `None` where the call is one too many.
    pub(super) fn arrive(&mut self, mut entry: Entry) -> Option<Call> {
        let counts = &mut self.counts;
        counts.calls += 1;
        // An overrun is seen in the peak, too, although it is turned away and takes no time.
        counts.max_in_flight = counts.max_in_flight.max(counts.in_flight + 1);
        let admitted = self.limit.is_none_or(|limit| counts.in_flight < limit);
        if admitted {
            counts.in_flight += 1;
            if let Some(key) = &entry.key {
                entry.duplicate = self.done.contains(key);
                counts.duplicates += u64::from(entry.duplicate);
                let busy = self.busy.entry(key.clone()).or_default();
                counts.overlaps += u64::from(*busy > 0);
                *busy += 1;
            }
        } else {
            counts.overruns += 1;
            entry.overrun = true;
            entry.end_us = Some(entry.start_us);
            entry.status = Some(503);
        }
        let call = Call { id: self.first + self.log.len() as u64, key: entry.key.clone() };
        self.log.push_back(entry);
        while self.log.len() > self.log_max {
            self.log.pop_front();
            self.first += 1;
        }
        admitted.then_some(call)
    }

    /// The call's time is over.
    pub(super) fn leave(&mut self, call: &Call, now_us: u64, succeeded: bool) {
        self.counts.in_flight -= 1;
        self.counts.succeeded += u64::from(succeeded);
        if let Some(key) = &call.key {
            if let Some(busy) = self.busy.get_mut(key) {
                *busy -= 1;
                if *busy == 0 {
                    self.busy.remove(key);
                }
            }
            if succeeded {
                self.done.insert(key.clone());
            }
        }
        if let Some(entry) = self.entry(call.id) {
            entry.end_us = Some(now_us);
        }
    }

    /// The caller has its answer; `None` where it got no whole one.
    pub(super) fn answered(&mut self, id: u64, status: Option<u16>) {
        if let Some(entry) = self.entry(id) {
            entry.status = status;
        }
    }

    pub(super) fn caller_gone(&mut self, id: u64) {
        self.counts.callers_gone += 1;
        if let Some(entry) = self.entry(id) {
            entry.caller_gone = true;
        }
    }

    /// Forgets everything but what is in flight.
    pub(super) fn reset(&mut self) {
        let in_flight = self.counts.in_flight;
        self.counts = Summary { in_flight, max_in_flight: in_flight, ..Summary::default() };
        self.first += self.log.len() as u64;
        self.log.clear();
        self.done.clear();
    }

    /// With the newest `most` entries of the log.
    pub(super) fn summary(&self, most: usize) -> Summary {
        let log = self.log.iter().skip(self.log.len().saturating_sub(most)).cloned().collect();
        Summary { limit: self.limit, log, ..self.counts.clone() }
    }

    /// The newest call with this key, and with this token where one is given.
    pub(super) fn find(&self, key: &str, token: Option<i64>) -> Option<&Entry> {
        let is_it = |entry: &&Entry| {
            entry.key.as_deref() == Some(key) && (token.is_none() || entry.token == token) && !entry.overrun
        };
        self.log.iter().rev().find(is_it)
    }

    /// `None` where it has been dropped.
    fn entry(&mut self, id: u64) -> Option<&mut Entry> {
        let index = id.checked_sub(self.first)?;
        self.log.get_mut(usize::try_from(index).ok()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keyed(key: &str) -> Entry {
        Entry { key: Some(key.to_owned()), ..Entry::default() }
    }

    #[test]
    fn one_too_many_is_counted_and_takes_no_place() {
        let mut book = Book::new(Some(2), 10);
        let first = book.arrive(keyed("a")).unwrap();
        let _second = book.arrive(keyed("b")).unwrap();
        assert!(book.arrive(keyed("c")).is_none());
        assert!(book.arrive(keyed("d")).is_none());
        let seen = book.summary(10);
        assert_eq!((seen.calls, seen.in_flight, seen.max_in_flight, seen.overruns), (4, 2, 3, 2));
        book.leave(&first, 5, true);
        assert!(book.arrive(keyed("c")).is_some(), "a refused call is no duplicate of itself");
        assert_eq!(book.summary(10).duplicates, 0);
        book.limit = Some(1);
        assert!(book.arrive(keyed("e")).is_none());
        book.limit = None;
        assert!(book.arrive(keyed("e")).is_some());
        assert_eq!(book.summary(10).max_in_flight, 3);
    }

    #[test]
    fn repeats_after_success_and_repeats_in_flight_are_counted_apart() {
        let mut book = Book::new(None, 10);
        let failed = book.arrive(keyed("a")).unwrap();
        book.leave(&failed, 1, false);
        let first = book.arrive(keyed("a")).unwrap();
        assert_eq!((book.summary(0).duplicates, book.summary(0).overlaps), (0, 0));
        let second = book.arrive(keyed("a")).unwrap();
        assert_eq!((book.summary(0).duplicates, book.summary(0).overlaps), (0, 1));
        book.leave(&first, 2, true);
        book.leave(&second, 3, true);
        let third = book.arrive(keyed("a")).unwrap();
        assert_eq!((book.summary(0).duplicates, book.summary(0).overlaps), (1, 1));
        book.leave(&third, 4, false);
        let duplicates: Vec<_> = book.summary(10).log.iter().map(|entry| entry.duplicate).collect();
        assert_eq!(duplicates, [false, false, false, true]);
        // Without a key nothing can be told apart.
        assert!(book.arrive(Entry::default()).is_some() && book.arrive(Entry::default()).is_some());
        assert_eq!((book.summary(0).duplicates, book.summary(0).overlaps), (1, 1));
    }

    #[test]
    fn the_log_is_bounded_and_a_reset_keeps_what_is_in_flight() {
        let mut book = Book::new(None, 2);
        let calls: Vec<_> = ["a", "b", "c"].map(|key| book.arrive(keyed(key)).unwrap()).into();
        for call in &calls[..2] {
            book.answered(call.id, Some(200));
            book.leave(call, 9, true);
        }
        let log: Vec<_> =
            book.summary(9).log.into_iter().map(|e| (e.key.unwrap(), e.end_us, e.status)).collect();
        assert_eq!(log, [("b".to_owned(), Some(9), Some(200)), ("c".to_owned(), None, None)]);
        assert_eq!(book.summary(1).log[0].key.as_deref(), Some("c"));

        book.reset();
        let seen = book.summary(9);
        assert_eq!((seen.calls, seen.in_flight, seen.max_in_flight, seen.log.len()), (0, 1, 1, 0));
        let fresh = book.arrive(keyed("a")).unwrap();
        book.caller_gone(calls[2].id);
        book.leave(&calls[2], 10, true);
        assert_eq!(book.summary(9).log, [keyed("a")], "an old call leaves the new log alone");
        book.leave(&fresh, 11, true);
        assert_eq!((book.summary(9).in_flight, book.summary(9).duplicates), (0, 0));
    }
}
