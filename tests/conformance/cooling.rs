//! A permit whose call was given up cools until the call must be over, or its own late answer ends it.

use std::time::Duration;

use permitq::model::{Attempt, Outcome, PermitState, State, Why};
use permitq::store::Peak;

use crate::support::{Db, ended, late};

contract![
    a_cooling_ends_at_its_until_and_frees_its_permit,
    coolings_end_in_bounded_batches_of_one_semaphore,
    a_late_answer_is_kept_once_and_changes_no_task,
    a_late_answer_ends_only_its_own_cooling,
    the_peak_is_computed_from_the_log,
    an_overrun_is_found_in_the_log,
];

async fn a_cooling_ends_at_its_until_and_frees_its_permit(db: Db) {
    let id = db.enqueue(1).await[0];
    let mut a = db.consumer("a").await;
    let claim = a.claim_one().await;
    a.finish(&[ended(claim, &Outcome::unclear(Why::Timeout, "slow"))]).await;
    assert_eq!(db.end_coolings(10).await.unwrap(), 0, "not before its until");
    db.holds(1).await;
    let holder = db.store().holders().await.unwrap().remove(0);
    assert_eq!((holder.state, holder.task), (PermitState::Cooling, Some(id)));
    assert_eq!(db.cool_down().await, 1);
    db.holds(0).await;
    let log = db.store().attempts(id).await.unwrap().remove(0);
    assert!(log.permit_released_at.unwrap() >= log.ended_at);
    assert_eq!(db.cool_down().await, 0);
}

async fn coolings_end_in_bounded_batches_of_one_semaphore(db: Db) {
    db.enqueue(4).await;
    let mut a = db.consumer("a").await;
    let ends: Vec<_> =
        a.claim(4).await.into_iter().map(|c| ended(c, &Outcome::unclear(Why::Timeout, "slow"))).collect();
    a.finish(&ends).await;
    db.age("permitq_cooling", "until", Duration::from_hours(1), "1 = 1").await;
    let mut store = db.store();
    let now = store.clock().await.unwrap();
    for (semaphore, freed, left) in [("second", 0, 4), ("default", 3, 1), ("default", 1, 0)] {
        assert_eq!(store.end_coolings(semaphore, now, 3).await.unwrap(), freed);
        db.holds(left).await;
    }
}

async fn a_late_answer_is_kept_once_and_changes_no_task(db: Db) {
    let id = db.enqueue(1).await[0];
    let mut a = db.consumer("a").await;
    let attempt = a.claim_one().await.attempt;
    assert!(!a.store.late("a", &late(attempt, "too early: it still runs", true)).await.unwrap());
    db.vanish("a").await;
    db.reclaim().await;
    let before = db.task(id).await;
    let never = Attempt { claim_no: 9, ..attempt };
    // (who, attempt, answer, whether it is kept)
    for (who, attempt, answer, kept) in [
        ("b", attempt, "not mine", false),
        ("a", never, "never was", false),
        ("a", attempt, "the answer", true),
        ("a", attempt, "once more", false),
    ] {
        assert_eq!(a.store.late(who, &late(attempt, answer, false)).await.unwrap(), kept, "{answer}");
    }
    assert_eq!(db.task(id).await, before);
    let log = db.store().attempts(id).await.unwrap().remove(0);
    assert_eq!((log.late_status, log.late_answer.as_deref()), (Some(200), Some("the answer")));
    assert_eq!((&*log.outcome, log.late_outcome.as_deref()), ("abandoned", Some("succeeded")));
    db.holds(1).await;
}

async fn a_late_answer_ends_only_its_own_cooling(db: Db) {
    let id = db.enqueue(1).await[0];
    let mut attempts = Vec::new();
    for name in ["a", "b", "c"] {
        let mut consumer = db.consumer(name).await;
        attempts.push(consumer.claim_one().await.attempt);
        if name != "c" {
            db.vanish(name).await;
            assert_eq!(db.reclaim().await, [id]);
        }
    }
    db.holds(3).await;
    let mut store = db.store();
    // Somebody else's cooling, one's own, once more, and an attempt that still runs.
    for (who, attempt, left) in
        [("a", attempts[1], 3), ("a", attempts[0], 2), ("a", attempts[0], 2), ("c", attempts[2], 2)]
    {
        store.late(who, &late(attempt, "late", true)).await.unwrap();
        db.holds(left).await;
    }
    assert_eq!(db.task(id).await.state, State::Running);
    let log = store.attempts(id).await.unwrap();
    assert!(log[0].permit_released_at.is_some() && log[1].permit_released_at.is_none());
}

async fn the_peak_is_computed_from_the_log(db: Db) {
    assert_eq!(db.store().peak("default", Peak::EVER).await.unwrap(), Peak { peak: 0, overruns: 0 });
    db.enqueue(12).await;
    let mut a = db.consumer("a").await;
    let mut done = Vec::new();
    for _ in 0..3 {
        // Both sides of a hand-over meet at one instant, and are no overlap.
        let claims = a.exchange(&done, 4).await.claims;
        assert_eq!(claims.len(), 4);
        done = claims.into_iter().map(|c| ended(c, &Outcome::succeeded(None))).collect();
        assert_eq!(db.store().peak("default", Peak::EVER).await.unwrap(), Peak { peak: 4, overruns: 0 });
    }
    assert_eq!(db.store().peak("second", Peak::EVER).await.unwrap().peak, 0);
}

async fn an_overrun_is_found_in_the_log(db: Db) {
    db.enqueue(8).await;
    let mut a = db.consumer("a").await;
    let cooling: Vec<_> =
        a.claim(4).await.into_iter().map(|c| ended(c, &Outcome::unclear(Why::Timeout, "slow"))).collect();
    a.finish(&cooling).await;
    // Somebody empties the semaphore by hand, although four calls may still run.
    db.sql("UPDATE permitq_semaphore SET in_use = 0").await;
    assert_eq!(a.claim(2).await.len(), 2);
    assert_eq!(db.store().peak("default", Peak::EVER).await.unwrap(), Peak { peak: 6, overruns: 2 });
}
