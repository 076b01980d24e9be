//! When will it start, when will it end? From what the last attempts took: an estimate, and none where there were none.

use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;

use crate::model::{Holder, PermitState};
use crate::store::RecentRun;

/// What the last attempts of a semaphore took.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Estimate {
    /// From so many attempts.
    pub(super) attempts: usize,
    /// Seconds that a permit was held, on average.
    pub(super) mean_hold: f64,
    /// Seconds that a call of this kind took, on average; `None` where none is among them.
    pub(super) mean_run: Option<f64>,
    /// Attempts that ended a second, from the first claim among them to the last end.
    pub(super) per_second: Option<f64>,
}

impl Estimate {
    /// `None` where no attempt has come to its end.
    pub(super) fn of(runs: &[RecentRun], kind: &str) -> Option<Self> {
        let seconds = |from: Timestamp, to: Timestamp| to.duration_since(from).as_secs_f64();
        let holds: Vec<_> =
            runs.iter().filter_map(|run| Some(seconds(run.claimed_at, run.permit_released_at?))).collect();
        let done = |run: &&RecentRun| run.kind == kind && matches!(&*run.outcome, "succeeded" | "failed");
        let took: Vec<_> =
            runs.iter().filter(done).map(|run| seconds(run.claimed_at, run.ended_at)).collect();
        let first = runs.iter().map(|run| run.claimed_at).min();
        let last = runs.iter().map(|run| run.ended_at).max();
        let span = first.zip(last).map(|(first, last)| seconds(first, last)).filter(|span| *span > 0.0);
        Some(Self {
            attempts: runs.len(),
            mean_hold: mean(&holds)?,
            mean_run: mean(&took),
            per_second: span.map(|span| count(runs.len()) / span),
        })
    }

    /// When a call that was claimed then will be over; no sooner than now.
    pub(super) fn end(&self, claimed: Timestamp, now: Timestamp) -> Option<Timestamp> {
        after(claimed, self.mean_run?).map(|end| end.max(now))
    }

    /// When the task with so many others before it gets a permit, where so many calls can go on at once: each permit is
    /// free when its holder is done, and those before take the first that is.
    pub(super) fn start(
        &self,
        now: Timestamp,
        ahead: usize,
        permits: usize,
        holders: &[&Holder],
    ) -> Option<Timestamp> {
        let mut free: Vec<Timestamp> = holders
            .iter()
            .filter_map(|holder| match holder.state {
                PermitState::Held => after(holder.since, self.mean_hold),
                PermitState::Cooling => Some(holder.until),
            })
            .map(|end| end.max(now))
            .collect();
        // More are in use than may be: the first to end make room for nobody.
        free.sort_unstable();
        free.drain(..free.len().saturating_sub(permits));
        free.resize(permits, now);
        for _ in 0..ahead {
            let first = free.iter_mut().min()?;
            *first = after(*first, self.mean_hold)?;
        }
        free.into_iter().min()
    }
}

fn after(instant: Timestamp, seconds: f64) -> Option<Timestamp> {
    instant.checked_add(Duration::try_from_secs_f64(seconds).ok()?).ok()
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / count(values.len()))
}

/// Of rows that one statement read.
fn count(n: usize) -> f64 {
    f64::from(u32::try_from(n).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).unwrap()
    }

    fn run(kind: &str, from: i64, to: i64, freed: Option<i64>) -> RecentRun {
        RecentRun {
            kind: kind.to_owned(),
            outcome: "succeeded".to_owned(),
            claimed_at: at(from),
            ended_at: at(to),
            permit_released_at: freed.map(at),
        }
    }

    fn holder(state: PermitState, since: i64, until: i64) -> Holder {
        Holder {
            semaphore: "default".to_owned(),
            task: Some(1),
            claim_no: Some(1),
            consumer: None,
            host: None,
            pid: None,
            since: at(since),
            until: at(until),
            state,
            why: None,
            lease_until: None,
        }
    }

    #[test]
    fn the_means_are_those_of_the_log() {
        assert_eq!(Estimate::of(&[], "a"), None);
        assert_eq!(Estimate::of(&[run("a", 0, 9, None)], "a"), None, "its permit still cools");
        let runs = [run("a", 0, 10, Some(10)), run("b", 0, 20, Some(40)), run("a", 20, 40, Some(40))];
        let estimate = Estimate::of(&runs, "a").unwrap();
        let (mean_hold, mean_run, per_second) = (70.0 / 3.0, Some(15.0), Some(3.0 / 40.0));
        assert_eq!(estimate, Estimate { attempts: 3, mean_hold, mean_run, per_second });
        assert_eq!(Estimate::of(&runs, "none").unwrap().mean_run, None);
        assert_eq!(estimate.end(at(100), at(101)), Some(at(115)));
        assert_eq!(estimate.end(at(100), at(200)), Some(at(200)), "overdue: any moment now");
    }

    #[test]
    fn a_task_starts_when_its_turn_has_come() {
        let estimate = Estimate { attempts: 1, mean_hold: 10.0, mean_run: None, per_second: None };
        let held = |since| holder(PermitState::Held, since, since + 99);
        let [a, b, c] = [held(-8), held(-3), holder(PermitState::Cooling, -50, 30)];
        let start = |ahead, permits, holders: &[&Holder]| estimate.start(at(0), ahead, permits, holders);
        assert_eq!(start(0, 2, &[&a]), Some(at(0)), "one is free");
        assert_eq!(start(0, 2, &[&a, &b]), Some(at(2)));
        assert_eq!(start(1, 2, &[&a, &b]), Some(at(7)));
        assert_eq!(start(2, 2, &[&a, &b]), Some(at(12)));
        assert_eq!(start(3, 2, &[&a, &c]), Some(at(30)), "a cooling permit is free at its bound");
        assert_eq!(start(0, 1, &[&a, &b]), Some(at(7)), "the cap was lowered");
        assert_eq!(start(0, 0, &[]), None);
    }
}
