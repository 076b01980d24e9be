//! What nobody will finish is taken back, and its permit cools: nothing is freed before the call must be over.

use permitq::model::{NewTask, OnAbandon, Outcome, State};
use permitq::store::{Left, Recorded};

use crate::support::{Db, LEASE, ended};

contract![
    a_reclaimed_task_follows_its_on_abandon,
    what_was_taken_back_keeps_its_place_in_the_queue,
    a_lost_last_attempt_ends_failed,
    whoever_is_gone_or_unknown_loses_its_tasks,
    a_living_consumer_keeps_its_tasks_until_a_lease_past_their_until,
    reclaim_goes_in_bounded_batches,
    rows_that_stay_hide_none_behind_them,
    a_bad_row_holds_up_no_other,
    a_reclaimers_word_is_not_the_owners,
];

async fn a_reclaimed_task_follows_its_on_abandon(db: Db) {
    let table = [
        (OnAbandon::Retry, State::Pending),
        (OnAbandon::RetryAfterCooling, State::Scheduled),
        (OnAbandon::Fail, State::Failed),
    ];
    for (on_abandon, state) in table {
        let owner = format!("owner-{on_abandon}");
        let id = db.enqueue_one(NewTask { on_abandon: Some(on_abandon), ..NewTask::new("call", "{}") }).await;
        let mut a = db.consumer(&owner).await;
        assert_eq!(a.claim_one().await.attempt.task, id);
        let until = db.task(id).await.until.unwrap();
        db.vanish(&owner).await;
        assert_eq!(db.reclaim().await, [id]);
        assert_eq!(db.reclaim().await, [] as [i64; 0], "once");
        db.holds(1).await;

        let task = db.task(id).await;
        assert_eq!((task.state, task.attempts, task.consumer), (state, 1, None));
        let log = db.store().attempts(id).await.unwrap().remove(0);
        assert_eq!((&*log.outcome, &*log.consumer), ("abandoned", &*owner));
        assert_eq!(log.permit_released_at, None);
        let holder = db.store().holders().await.unwrap().remove(0);
        assert_eq!((holder.until, holder.why.as_deref()), (until, Some("abandoned")));
        if on_abandon == OnAbandon::RetryAfterCooling {
            assert_eq!(task.run_at, until, "never two overlapping calls");
        }
        db.cool_down().await;
        db.holds(0).await;
        db.store().cancel(id, "test").await.unwrap();
    }
}

/// It has waited already: whoever came after it does not start before it.
async fn what_was_taken_back_keeps_its_place_in_the_queue(db: Db) {
    let [first, second] = db.enqueue(2).await.try_into().unwrap();
    assert_eq!(db.consumer("a").await.claim_one().await.attempt.task, first);
    db.vanish("a").await;
    assert_eq!(db.reclaim().await, [first]);
    let mut b = db.consumer("b").await;
    let again = b.claim_one().await;
    assert_eq!(again.attempt.task, first);
    let outcome = Outcome::not_started("its consumer leaves");
    b.finish(&[ended(again, &outcome)]).await;
    let order: Vec<_> = b.claim(2).await.iter().map(|claim| claim.attempt.task).collect();
    assert_eq!(order, [first, second]);
}

async fn a_lost_last_attempt_ends_failed(db: Db) {
    let id = db.enqueue_one(NewTask { max_attempts: Some(2), ..NewTask::new("call", "{}") }).await;
    for (owner, state) in [("a", State::Pending), ("b", State::Failed)] {
        let _ = db.consumer(owner).await.claim_one().await;
        db.vanish(owner).await;
        db.reclaim().await;
        assert_eq!(db.task(id).await.state, state);
    }
    let error = db.task(id).await.error.unwrap();
    assert!(error.contains("b vanished") && error.contains("attempt 2 of 2"), "{error}");
    db.holds(2).await;
}

async fn whoever_is_gone_or_unknown_loses_its_tasks(db: Db) {
    db.enqueue(4).await;
    for id in ["alive", "draining", "gone", "unknown"] {
        let _ = db.consumer(id).await.claim_one().await;
    }
    db.leave("draining", Left::Draining).await;
    db.leave("gone", Left::Gone).await;
    db.sql("DELETE FROM permitq_consumer WHERE id = 'unknown'").await;
    assert_eq!(db.reclaim().await.len(), 2);
    db.holds(4).await;
    let mut owners: Vec<_> =
        db.store().holders().await.unwrap().into_iter().map(|h| (h.consumer.unwrap(), h.why)).collect();
    owners.sort();
    let cools = || Some("abandoned".to_owned());
    let expected = [("alive", None), ("draining", None), ("gone", cools()), ("unknown", cools())];
    assert_eq!(owners, expected.map(|(id, why)| (id.to_owned(), why)));
}

async fn a_living_consumer_keeps_its_tasks_until_a_lease_past_their_until(db: Db) {
    let id = db.enqueue(1).await[0];
    let mut a = db.consumer("a").await;
    let claim = a.claim_one().await;
    let hold = crate::support::policy("call").hold;
    for (past, taken) in [(hold / 2, 0), (hold / 2 + LEASE / 2, 0), (LEASE / 2 + LEASE / 10, 1)] {
        db.age("permitq_task", "until", past, &format!("id = {id}")).await;
        assert_eq!(db.reclaim().await.len(), taken, "{past:?} further");
    }
    assert_eq!(a.finish(&[ended(claim, &Outcome::succeeded(None))]).await, [Recorded::Lost]);
    assert_eq!(db.end_coolings(10).await.unwrap(), 1, "that call must be over");
    db.holds(0).await;
}

async fn reclaim_goes_in_bounded_batches(db: Db) {
    db.set_max(9).await;
    let tasks = db.enqueue(7).await;
    let _ = db.consumer("a").await.claim(7).await;
    db.vanish("a").await;
    let mut store = db.store();
    let mut after = 0;
    for expected in [&tasks[..3], &tasks[3..6], &tasks[6..], &[]] {
        let got = store.reclaim("r", LEASE, after, 3).await.unwrap();
        let got: Vec<_> = got.iter().map(|attempt| attempt.task).collect();
        assert_eq!(got, expected);
        after = got.last().copied().unwrap_or(after);
        db.holds(7).await;
    }
}

async fn a_bad_row_holds_up_no_other(db: Db) {
    let tasks = db.enqueue(4).await;
    let _ = db.consumer("a").await.claim(4).await;
    db.vanish("a").await;
    // By hand: three rows that say they run attempts which the log says have ended.
    for bad in &tasks[..3] {
        db.sql(&format!(
            "INSERT INTO permitq_attempt (task, claim_no, kind, semaphore, consumer, claimed_at, ended_at, outcome,
                                          ended_by)
             SELECT id, claim_no, kind, semaphore, consumer, started_at, started_at, 'failed', 'a'
               FROM permitq_task WHERE id = {bad}"
        ))
        .await;
    }
    let got = db.store().reclaim("r", LEASE, 0, 2).await.unwrap();
    assert_eq!(got.iter().map(|attempt| attempt.task).collect::<Vec<_>>(), tasks[3..]);
    db.holds(4).await;
    assert_eq!(db.store().audit().await.unwrap().impossible.len(), 3, "and the audit names them");
}

async fn a_reclaimers_word_is_not_the_owners(db: Db) {
    db.enqueue(1).await;
    let mut a = db.consumer("a").await;
    let late = ended(a.claim_one().await, &Outcome::succeeded(None));
    db.vanish("a").await;
    // The reclaimer may be the very process that lost the task.
    assert_eq!(db.store().reclaim("a", LEASE, 0, 10).await.unwrap().len(), 1);
    assert_eq!(a.finish(&[late]).await, [Recorded::Lost]);
}

/// Ten tasks of a living consumer come first, and the batch is smaller than that.
async fn rows_that_stay_hide_none_behind_them(db: Db) {
    db.set_max(15).await;
    let tasks = db.enqueue(15).await;
    let _living = db.consumer("alive").await.claim(10).await;
    let _lost = db.consumer("a").await.claim(5).await;
    db.vanish("a").await;
    let mut store = db.store();
    let (mut got, mut after) = (Vec::new(), 0);
    for most in [2, 2, 2] {
        let batch = store.reclaim("r", LEASE, after, most).await.unwrap();
        after = batch.iter().map(|attempt| attempt.task).max().unwrap_or(after);
        got.extend(batch.into_iter().map(|attempt| attempt.task));
    }
    assert_eq!(got, tasks[10..]);
    db.holds(15).await;
}
