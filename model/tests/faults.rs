//! Each hole of the recipe that people copy, and each slip of our own, breaks a promise: a model that could not fail
//! would prove nothing.

use std::collections::BTreeSet;

use model::promise::{ATTEMPTS, CAP, CONSERVATION, LEASE, LOWERED, NO_LEAK, ONE_OWNER, TABLE};
use model::{Fault, Fleet};
use stateright::{Checker, HasDiscoveries, Model};

/// The shortest way to each of these broken promises is found.
fn breaks(fleet: Fleet, promises: &[&'static str]) {
    let wanted: BTreeSet<_> = promises.iter().copied().collect();
    let checked = fleet.checker().threads(2).finish_when(HasDiscoveries::AllOf(wanted)).spawn_bfs().join();
    for promise in promises {
        checked.assert_any_discovery(promise);
    }
}

fn two(fault: Fault) -> Fleet {
    Fleet { tasks: 2, way: 0, ..Fleet::small(1) }.with(fault)
}

#[test]
fn hole_01_dying_between_permit_and_claim_leaks_a_permit() {
    breaks(two(Fault::PermitThenTask), &[NO_LEAK, CONSERVATION]);
}

#[test]
fn hole_02_releasing_in_finally_releases_twice() {
    breaks(two(Fault::ReleaseInFinally), &[ONE_OWNER, CONSERVATION, CAP]);
}

#[test]
fn hole_03_a_reclaimer_that_updates_by_id_resets_finished_tasks() {
    breaks(two(Fault::SelectThenUpdate), &[TABLE, CONSERVATION]);
}

#[test]
fn hole_04_dying_between_the_reclaimers_updates_leaks_a_permit() {
    breaks(two(Fault::ResetThenPermits), &[NO_LEAK, CONSERVATION]);
}

#[test]
fn hole_05_a_consumers_id_is_no_fence() {
    let fleet = Fleet { slots: 2, ..Fleet::small(1) };
    breaks(fleet.with(Fault::ConsumerIsTheFence), &[ONE_OWNER]);
    let fleet = Fleet { tasks: 2, slots: 2, way: 0, ..Fleet::small(1) };
    breaks(fleet.with(Fault::ConsumerIsTheFence), &[CAP]);
}

#[test]
fn hole_06_a_lost_last_attempt_goes_round_for_ever() {
    breaks(Fleet { claims: 3, ..Fleet::small(1) }.with(Fault::EndlessAttempts), &[ATTEMPTS]);
}

#[test]
fn hole_07_a_reclaimed_permit_is_used_while_the_call_goes_on() {
    breaks(two(Fault::FreedAtReclaim), &[CAP]);
}

#[test]
fn hole_08_a_paused_process_starts_a_call_whose_permit_is_gone() {
    breaks(two(Fault::NoStartWindow), &[CAP]);
}

#[test]
fn hole_09_a_local_clock_takes_what_is_in_force() {
    let fleet = Fleet { lease: Some(1), ..two(Fault::LocalClock) };
    breaks(fleet, &[LEASE, CAP]);
}

#[test]
fn hole_10_permits_counted_elsewhere_open_the_gate() {
    breaks(two(Fault::CountedElsewhere), &[CONSERVATION, CAP]);
}

#[test]
fn the_whole_recipe_breaks_nearly_everything() {
    let mut fleet = two(Fault::PermitThenTask);
    fleet.lease = Some(1);
    // All but those that split the same statement once more.
    let twice = [Fault::ResetThenPermits, Fault::CountedElsewhere];
    fleet.faults = Fault::HOLES.into_iter().filter(|hole| !twice.contains(hole)).collect();
    breaks(fleet, &[CAP, LEASE, NO_LEAK, CONSERVATION, TABLE]);
}

#[test]
fn each_part_of_the_bound_is_needed() {
    let way = Fleet { way: 1, ..two(Fault::HoldWithoutTheWay) };
    for fleet in [two(Fault::HoldWithoutStartWindow), way, two(Fault::HoldWithoutTheCall)] {
        breaks(fleet, &[CAP]);
    }
}

#[test]
fn a_hand_over_must_look_at_the_cap() {
    let fleet = Fleet { lowest: 0, ..two(Fault::HandOverBypassesMax) };
    breaks(fleet, &[LOWERED]);
}

#[test]
fn what_is_still_on_its_way_must_not_be_handed_back() {
    breaks(two(Fault::HandBackInFlight), &[CAP]);
}

#[test]
fn a_late_answer_ends_its_own_cooling_only() {
    breaks(
        Fleet { slots: 2, claims: 3, max_attempts: 3, ..Fleet::small(2) }.with(Fault::LateByTask),
        &[ONE_OWNER],
    );
}

#[test]
fn a_broken_connection_is_not_the_end_of_a_call() {
    breaks(two(Fault::BrokenIsClear), &[CAP]);
}
