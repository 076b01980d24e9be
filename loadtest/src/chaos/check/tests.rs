//! The judge before hand-made evidence: it must find what is wrong, and nothing where all is well.

use super::super::evidence::{Change, Task};
use super::super::journal::{Cap, Exit, Struck};
use super::super::watch::Sample;
use super::*;

const ZERO: i64 = 1_000_000;

/// Two tasks under a cap of two: one succeeds at once, the other's consumer is killed and its call goes on.
fn clean() -> Evidence {
    let mut seen =
        Evidence { zero: ZERO, end: 20_000, settled: Some(21_000), idle: 1_000, ..Evidence::default() };
    seen.journal.caps = vec![Cap { sent: 0, acked: 0, max: 2 }];
    seen.journal.acked = ["a".to_owned(), "b".to_owned()].into();
    seen.journal.struck = vec![Struck { at: 1_600, until: 2_000, what: Fault::Kill, member: Some(2) }];
    seen.tasks = vec![task(1, "a", 1), task(2, "b", 2)];
    seen.calls = vec![call(1, 1, 1_010, 2_000), call(2, 1, 1_510, 3_500), call(2, 2, 8_010, 9_000)];
    seen.attempts = vec![
        attempt(1, 1, "c1-x", [1_000, 2_010, 2_010], "succeeded"),
        attempt(2, 1, "c2-x", [1_500, 5_000, 6_900], "abandoned"),
        attempt(2, 2, "c3-x", [8_000, 9_010, 9_010], "succeeded"),
    ];
    seen.changes = vec![
        change(1, "pending", "running", [0, 1], [0, 1]),
        change(1, "running", "succeeded", [1, 1], [1, 1]),
        change(2, "pending", "running", [0, 1], [0, 1]),
        change(2, "running", "pending", [1, 1], [1, 1]),
        change(2, "pending", "running", [1, 2], [1, 2]),
        change(2, "running", "succeeded", [2, 2], [2, 2]),
    ];
    seen.samples = vec![
        sample(100, 0, 0, 0),
        sample(1_600, 2, 2, 0),
        sample(6_000, 1, 0, 1),
        sample(12_000, 0, 0, 0),
        sample(21_000, 0, 0, 0),
    ];
    seen.codes = vec![Some(0)];
    seen
}

fn task(id: i64, key: &str, claim_no: i64) -> Task {
    Task {
        id,
        key: key.to_owned(),
        state: "succeeded".to_owned(),
        attempts: claim_no,
        max_attempts: Some(3),
        claim_no,
    }
}

fn call(task: i64, claim_no: i64, start: u64, end: u64) -> Call {
    Call { task, claim_no, start, end: Some(end), status: Some(200), refused: false }
}

fn attempt(task: i64, claim_no: i64, consumer: &str, at: [i64; 3], outcome: &str) -> Attempt {
    let [claimed, ended, released] = at.map(|at| ZERO + at);
    let (consumer, outcome) = (consumer.to_owned(), outcome.to_owned());
    Attempt { task, claim_no, consumer, claimed, ended, released: Some(released), outcome }
}

fn change(task: i64, from: &str, to: &str, claim_no: [i64; 2], attempts: [i64; 2]) -> Change {
    Change { task, from: from.to_owned(), to: to.to_owned(), claim_no, attempts }
}

fn sample(at: u64, in_use: i64, running: i64, cooling: i64) -> Sample {
    Sample { at, until: at + 5, in_use, running, cooling, open: 0 }
}

/// The promises that do not hold.
fn broken(seen: &Evidence) -> Vec<&'static str> {
    let mut promises: Vec<_> = check(seen).violations.iter().map(|violation| violation.promise).collect();
    promises.dedup();
    promises
}

#[test]
fn a_kill_that_was_dealt_with_is_no_breach() {
    let found = check(&clean());
    assert_eq!(found.violations, []);
    assert_eq!((found.duplicates_explained, found.duplicates_unexplained), (1, 0));
    let kill = &found.recovery["kill"];
    assert_eq!((kill.faults, kill.holding), (1, 1));
    assert!(kill.max_ms.abs_diff(5_300) < 10, "{kill:?}");
}

#[test]
fn one_call_too_many_is_found() {
    let mut seen = clean();
    seen.journal.caps[0].max = 1;
    let found = check(&seen);
    assert_eq!((found.overruns, broken(&seen)), (1, vec!["I1"]));
    let refused = Evidence { calls: vec![Call { refused: true, ..call(1, 1, 1_010, 1_010) }], ..clean() };
    assert_eq!(check(&refused).overruns, 1);
}

#[test]
fn a_lowered_cap_binds_a_second_later() {
    let lowered = |at| {
        let mut seen = clean();
        seen.journal.caps.push(Cap { sent: at - 50, acked: at, max: 1 });
        check(&seen).overruns
    };
    // The second call is claimed at 1500.
    assert_eq!(lowered(400), 1);
    assert_eq!(lowered(1_000), 0);
}

#[test]
fn a_call_that_was_claimed_under_the_old_cap_may_arrive_later() {
    let mut seen = clean();
    seen.journal.caps.push(Cap { sent: 1_505, acked: 1_506, max: 1 });
    seen.calls[1].start = 2_650;
    seen.calls[0].end = Some(3_000);
    seen.attempts[0].released = Some(ZERO + 3_010);
    assert_eq!(check(&seen).overruns, 0);
    // But not later than any call may.
    seen.calls[1].start = 3_400;
    assert_eq!(broken(&seen), ["I1"]);
    seen.journal.struck.push(Struck { at: 1_600, until: 3_300, what: Fault::Freeze, member: Some(2) });
    let found = check(&seen);
    assert_eq!((found.paused_sends, found.violations), (1, vec![]));
}

#[test]
fn a_permit_that_is_freed_before_its_call_ends_is_found_though_nobody_took_it() {
    let mut seen = clean();
    seen.attempts[1].released = Some(ZERO + 3_000);
    assert_eq!(broken(&seen), ["I1"]);
    // After a step of the clock by as much the same row means something else.
    seen.journal.steps = vec![(1_700, -3_000)];
    assert!(!broken(&seen).contains(&"I1"));
}

#[test]
fn calls_over_the_cap_after_an_edit_are_listed_and_others_are_not_excused() {
    let mut seen = clean();
    seen.journal.caps[0].max = 1;
    seen.journal.edits = vec![Edit { sent: 1_200, acked: Some(1_210), by: -1 }];
    seen.samples.insert(1, sample(1_300, 0, 1, 0));
    let found = check(&seen);
    assert_eq!((found.overruns, found.overruns_after_edits, found.samples_excused), (0, 1, 1));
    assert_eq!(found.violations, []);
    // It took one away: a third call has another cause.
    seen.calls.push(call(1, 2, 1_600, 1_900));
    let found = check(&seen);
    assert_eq!((found.overruns, found.overruns_after_edits), (1, 1));
    seen.calls.pop();
    seen.journal.edits[0].by = 1;
    assert_eq!(check(&seen).overruns, 1);
}

#[test]
fn a_counter_that_drifts_or_is_repaired_late_is_found() {
    let mut seen = clean();
    seen.samples.insert(1, sample(1_300, 2, 1, 0));
    assert_eq!(broken(&seen), ["I2"]);
    seen.journal.edits = vec![Edit { sent: 1_200, acked: Some(1_210), by: 1 }];
    assert_eq!(broken(&seen), [""; 0]);
    seen.samples[2] = sample(1_600, 3, 2, 0);
    assert_eq!(broken(&seen), ["I2"], "it took until 6000");
    let mut seen = clean();
    seen.samples.last_mut().unwrap().in_use = 1;
    seen.samples.last_mut().unwrap().cooling = 1;
    assert_eq!(broken(&seen), ["I2"], "a permit that never came back");
    let mut seen = clean();
    seen.samples.remove(2);
    assert_eq!(broken(&seen), [""; 0]);
    seen.samples.remove(2);
    assert_eq!(broken(&seen), ["I2"], "nobody looked");
    seen.samples.clear();
    assert_eq!(broken(&seen), ["I2"]);
}

#[test]
fn a_repair_may_wait_for_whoever_is_frozen_with_the_lock() {
    let repaired_at = |at| {
        let mut seen = clean();
        seen.journal.edits = vec![Edit { sent: 1_190, acked: Some(1_200), by: 1 }];
        seen.samples.insert(1, sample(1_300, 2, 1, 0));
        seen.samples.insert(2, sample(at, 2, 2, 0));
        seen.journal.struck.push(Struck { at: 1_250, until: 9_000, what: Fault::Freeze, member: Some(7) });
        broken(&seen)
    };
    let bound = 1_200 + REPAIR;
    assert_eq!(repaired_at(bound + 900), [""; 0]);
    assert_eq!(repaired_at(bound + 1_100), ["I2"], "the server ends a frozen client's transaction");
}

#[test]
fn a_repeat_needs_an_attempt_that_did_not_succeed() {
    let mut seen = clean();
    seen.attempts[1].outcome = "succeeded".to_owned();
    let found = check(&seen);
    assert_eq!((found.duplicates_explained, found.duplicates_unexplained), (0, 1));
    assert_eq!(broken(&seen), ["I3"]);
    let mut seen = clean();
    seen.calls.push(call(1, 1, 4_000, 4_100));
    assert_eq!(check(&seen).duplicates_unexplained, 1, "the same attempt twice");
}

#[test]
fn a_success_needs_an_answer_and_is_recorded_once() {
    let mut seen = clean();
    seen.calls[0].status = None;
    assert_eq!(broken(&seen), ["I3"]);
    let mut seen = clean();
    seen.tasks[0].state = "failed".to_owned();
    seen.changes[1].to = "failed".to_owned();
    assert_eq!(broken(&seen), ["I3"]);
}

#[test]
fn a_final_state_stays() {
    let mut seen = clean();
    seen.changes.push(change(1, "succeeded", "pending", [1, 1], [1, 0]));
    assert_eq!(broken(&seen), ["I4"]);
    // It fails, a person wants it again, it succeeds.
    let mut seen = clean();
    seen.tasks[0].claim_no = 2;
    seen.attempts[0].outcome = "failed".to_owned();
    seen.attempts.push(attempt(1, 2, "c1-x", [12_000, 13_010, 13_010], "succeeded"));
    seen.calls.push(call(1, 2, 12_010, 13_000));
    seen.changes[1].to = "failed".to_owned();
    seen.changes.extend([
        change(1, "failed", "pending", [1, 1], [1, 0]),
        change(1, "pending", "running", [1, 2], [0, 1]),
        change(1, "running", "succeeded", [2, 2], [1, 1]),
    ]);
    seen.tasks[0].attempts = 1;
    assert_eq!(broken(&seen), ["I4"]);
    seen.journal.retried = vec![1];
    assert_eq!(broken(&seen), [""; 0]);
    let moves = [
        change(1, "pending", "running", [1, 1], [1, 2]),
        change(1, "pending", "running", [3, 4], [3, 4]),
        change(1, "running", "running", [1, 2], [1, 2]),
    ];
    for one in moves {
        let mut seen = clean();
        seen.changes.push(one);
        assert_eq!(broken(&seen), ["I4"], "{:?}", seen.changes.last());
    }
}

#[test]
fn a_change_that_nobody_saw_is_found() {
    for unseen in 0..6 {
        let mut seen = clean();
        seen.changes.remove(unseen);
        assert_eq!(broken(&seen), ["I4"], "{unseen}");
    }
    let mut seen = clean();
    seen.changes.clear();
    assert_eq!(broken(&seen), ["I4"]);
}

#[test]
fn what_does_not_end_in_time_and_who_ends_by_himself_is_found() {
    let mut seen = clean();
    seen.settled = None;
    assert_eq!(broken(&seen), ["I5"]);
    let mut seen = clean();
    seen.settled = Some(seen.end + drain(0) + 1);
    assert_eq!(broken(&seen), ["I5"]);
    let mut seen = clean();
    seen.journal.exits = vec![Exit { at: 5_000, pid: 7, code: Some(1) }];
    assert_eq!(broken(&seen), [""; 0], "it found no database when it started");
    seen.at_work = vec![7];
    assert_eq!(broken(&seen), ["I5"]);
    let mut seen = clean();
    seen.journal.exits = vec![Exit { at: 5_000, pid: 7, code: Some(101) }];
    assert_eq!(broken(&seen), ["I5"], "it panicked");
    let mut seen = clean();
    seen.calls.clear();
    assert!(broken(&seen).contains(&"I5"));
}

#[test]
fn a_claim_and_a_call_without_a_row_are_found() {
    let mut seen = clean();
    seen.attempts.remove(1);
    assert!(broken(&seen).contains(&"I6"));
    let mut seen = clean();
    seen.attempts[1].released = None;
    assert_eq!(broken(&seen), ["I6"]);
}

#[test]
fn a_lost_task_and_one_that_stays_are_found() {
    let mut seen = clean();
    seen.journal.acked.insert("c".to_owned());
    assert_eq!((check(&seen).lost, broken(&seen)), (1, vec!["I7"]));
    let mut seen = clean();
    seen.journal.doubtful.insert("c".to_owned());
    assert_eq!(broken(&seen), [""; 0], "no answer came, and no task");
    let mut seen = clean();
    seen.journal.acked.remove("b");
    assert_eq!(broken(&seen), ["I7"]);
    let mut seen = clean();
    seen.attempts[2].outcome = "failed".to_owned();
    seen.tasks[1].state = "running".to_owned();
    seen.changes.pop();
    assert_eq!((check(&seen).lost, broken(&seen)), (1, vec!["I7"]));
}

#[test]
fn a_permit_that_comes_back_too_late_is_found_unless_the_database_was_away() {
    let mut seen = clean();
    seen.attempts[1].released = Some(ZERO + 1_600 + i64::try_from(RECOVERY).unwrap() + 500);
    assert_eq!(broken(&seen), ["P5"]);
    seen.journal.outages = vec![super::super::journal::Outage { from: 3_000, until: 3_100 }];
    let found = check(&seen);
    assert_eq!((found.violations, found.recovery["kill"].stalled), (vec![], 1));
}

#[test]
fn a_further_kill_allows_for_one_more_lease_and_no_more() {
    let mut seen = clean();
    seen.journal.struck.push(Struck { at: 5_000, until: 5_000, what: Fault::Kill, member: Some(4) });
    for (after, broken_ones) in [(RECOVERY + 500, 0), (RECOVERY + YOUTH + 500, 1)] {
        seen.attempts[1].released = Some(ZERO + 1_600 + i64::try_from(after).unwrap());
        assert_eq!(check(&seen).violations.len(), broken_ones, "{after}");
    }
}

#[test]
fn spans_that_overlap_count_once() {
    let spans = || [(0, 10), (5, 12), (20, 30), (25, 26)].into_iter();
    assert_eq!(overlap(spans(), 0, 100), 22);
    assert_eq!(overlap(spans(), 8, 22), 6);
    assert_eq!(overlap(spans(), 12, 20), 0);
}
