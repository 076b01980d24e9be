//! What dies, and what freezes.

use std::time::Duration;

use permitq::model::State;

use crate::support::Db;
use crate::support::site::{HOLD, Site, until};

const CALL: Duration = Duration::from_millis(700);

contract! { crash:
    a_killed_consumers_calls_count_until_they_are_over,
    capacity_is_whole_again_when_everybody_died,
    a_frozen_consumer_loses_its_attempt_and_goes_on_under_a_new_id,
    an_answer_between_fence_and_reclaim_is_the_result,
    a_short_freeze_loses_nothing,
    cancelling_a_running_task_cools_its_permit,
    at_most_once_means_one_call,
}

/// Hole 7: the reclaimer must not free a permit while the downstream still works on the abandoned call.
async fn a_killed_consumers_calls_count_until_they_are_over(db: Db) {
    let site = Site::new(db, 4).await;
    let tasks = site.enqueue(24, CALL).await;
    let mut members: Vec<_> = (1..=4).map(|n| site.consumer(&format!("c{n}"))).collect();
    site.in_flight(4).await;
    // The first two that hold a call.
    let mut holders: Vec<_> =
        site.db.store().holders().await.unwrap().iter().map(|holder| holder.pid).collect();
    holders.dedup();
    for pid in holders.into_iter().take(2).flatten() {
        let at = members.iter().position(|member| i64::from(member.pid()) == pid).unwrap();
        members.remove(at).kill();
    }
    members.extend((5..=6).map(|n| site.consumer(&format!("c{n}"))));
    site.settled().await;
    site.cap_held(4).await;
    for task in tasks {
        assert_eq!(site.db.task(task).await.state, State::Succeeded);
    }
    let abandoned = "SELECT count(*) FROM permitq_attempt WHERE outcome = 'abandoned'";
    assert!(site.db.int(abandoned).await >= 1, "nobody was killed while it held a call");
}

/// P5: lease, two passes, and the bound stored at the claim: then the capacity is whole, and nobody was asked.
async fn capacity_is_whole_again_when_everybody_died(db: Db) {
    let site = Site::new(db, 2).await;
    let tasks = site.enqueue(2, CALL).await;
    let first = site.consumer("first");
    site.in_flight(2).await;
    first.kill();
    let _reclaimer = site.start(&["run", "--roles", "reclaim"]);
    until("both permits free", async || site.db.in_use().await == 0).await;
    site.db.conservation().await;
    // No earlier than the bound stored at the claim, for the downstream may still work.
    for task in tasks {
        let attempt = &site.db.store().attempts(task).await.unwrap()[0];
        let held = attempt.permit_released_at.unwrap().duration_since(attempt.claimed_at).unsigned_abs();
        assert!(held >= HOLD, "freed after {held:?}");
    }
    let states = site.db.store().states(None).await.unwrap();
    assert_eq!(states, [(State::Pending, 2)]);
}

/// Hole 8, P4: who wakes up with a lease that is gone owns nothing any more, frees nothing, and goes on anew.
async fn a_frozen_consumer_loses_its_attempt_and_goes_on_under_a_new_id(db: Db) {
    let site = Site::new(db, 1).await;
    let task = site.enqueue(1, CALL).await[0];
    // Long enough that only the late answer itself ends the cooling while this test waits.
    let patient = [("PERMITQ_DOWNSTREAM__DEFAULT__CALL_TIMEOUT", "5m")];
    let frozen = site.start_with(&["run", "--name", "frozen"], &patient);
    site.in_flight(1).await;
    site.freeze(&[&frozen]).await;
    let reclaimer = site.start(&["run", "--roles", "reclaim"]);
    site.state(task, State::Pending).await;
    assert_eq!(site.db.in_use().await, 1, "its call may still run: the permit cools");
    frozen.thaw();

    // The late answer ends its own cooling and is kept as evidence; the task runs again, under the new id.
    site.state(task, State::Succeeded).await;
    until("every permit back", async || site.db.in_use().await == 0).await;
    let attempts = site.db.store().attempts(task).await.unwrap();
    let [lost, done] = attempts.as_slice() else { panic!("{attempts:?}") };
    assert_eq!((lost.outcome.as_str(), done.outcome.as_str()), ("abandoned", "succeeded"));
    assert!(lost.ended_by.starts_with("reclaimer"), "{lost:?}");
    assert_ne!(lost.consumer, done.consumer, "a new id");
    assert!(lost.consumer.starts_with("frozen") && done.consumer.starts_with("frozen"));
    until("the late answer kept", async || {
        let attempts = site.db.store().attempts(task).await.unwrap();
        attempts[0].late_status == Some(200) && attempts[0].late_answer.is_some()
    })
    .await;
    site.cap_held(1).await;
    drop(reclaimer);
}

/// Whoever is gone, but whose task nobody has taken back yet, still finishes it: the work is not done twice.
async fn an_answer_between_fence_and_reclaim_is_the_result(db: Db) {
    let site = Site::new(db, 1).await;
    let task = site.enqueue(1, CALL).await[0];
    let _member = site.start(&["run", "--name", "c", "--roles", "consume"]);
    site.in_flight(1).await;
    site.db.sql("UPDATE permitq_consumer SET state = 'gone'").await;
    until("registered anew", async || {
        site.db.int("SELECT count(*) FROM permitq_consumer WHERE state = 'alive'").await == 1
    })
    .await;
    assert_eq!(site.stub.summary().in_flight, 1, "it heard of it before its call was over");
    site.state(task, State::Succeeded).await;
    site.settled().await;
    let attempts = site.db.store().attempts(task).await.unwrap();
    assert_eq!(attempts.iter().map(|attempt| &*attempt.outcome).collect::<Vec<_>>(), ["succeeded"]);
}

/// A pause that is shorter than the lease costs nothing.
async fn a_short_freeze_loses_nothing(db: Db) {
    let site = Site::new(db, 1).await;
    let task = site.enqueue(1, CALL).await[0];
    let member = site.consumer("c");
    site.in_flight(1).await;
    site.freeze(&[&member]).await;
    site.in_flight(0).await;
    member.thaw();
    site.state(task, State::Succeeded).await;
    assert_eq!(site.db.task(task).await.claim_no, 1);
}

/// The canceller's transaction takes the task; its call cools, and the owner learns of it as lost.
async fn cancelling_a_running_task_cools_its_permit(db: Db) {
    let site = Site::new(db, 1).await;
    let tasks = site.enqueue(2, CALL).await;
    let _member = site.consumer("c");
    site.in_flight(1).await;
    let cancel = site.permitq(&["task", "cancel", &tasks[0].to_string()]).output().unwrap();
    assert!(cancel.status.success(), "{cancel:?}");
    site.state(tasks[0], State::Cancelled).await;
    site.settled().await;
    site.cap_held(1).await;
    assert_eq!(site.db.task(tasks[0]).await.state, State::Cancelled);
    assert_eq!(site.db.task(tasks[1]).await.state, State::Succeeded);
    assert_eq!(site.stub.summary().calls, 2);
}

/// `on_abandon = "fail"`: at most once.
async fn at_most_once_means_one_call(db: Db) {
    let stub = permitq::downstream::stub::StubOptions { limit: Some(1), ..Default::default() };
    let site = Site::with(db, stub, "on_abandon = \"fail\"").await;
    let task = site.enqueue(1, CALL).await[0];
    let member = site.consumer("c");
    site.in_flight(1).await;
    member.kill();
    let _other = site.consumer("other");
    site.state(task, State::Failed).await;
    site.settled().await;
    assert_eq!(site.stub.summary().calls, 1);
    assert!(site.db.task(task).await.error.unwrap().starts_with("abandoned: "));
}
