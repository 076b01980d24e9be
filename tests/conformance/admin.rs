//! What people do to tasks: cancel, retry and accept, each on record.

use std::time::Duration;

use permitq::model::{Ended, NewTask, OnAbandon, Outcome, Retry, RunAt, Standing, State, Why, settle};
use permitq::store::{Accepted, Cancelled, Filter, Recorded, Retried};

use crate::support::{Db, ended, late};

contract![
    a_waiting_task_is_cancelled_at_once,
    cancelling_a_running_task_cools_its_permit,
    what_is_finished_is_not_cancelled,
    only_failed_and_cancelled_tasks_are_retried,
    a_retry_gives_a_whole_budget,
    a_retry_waits_for_the_given_up_call_unless_overlap_is_allowed,
    a_late_answer_is_accepted_where_nobody_runs_or_has_ended_the_task,
    accepting_and_claiming_never_both_happen,
    lists_filter_and_page,
];

const FIRST: Standing = Standing { attempts: 1, max_attempts: 3, on_abandon: OnAbandon::Retry };

async fn a_waiting_task_is_cancelled_at_once(db: Db) {
    let later = NewTask { run_at: RunAt::In(Duration::from_hours(1)), ..NewTask::new("call", "{}") };
    let scheduled = db.enqueue_one(later).await;
    let pending = db.enqueue(1).await[0];
    db.sql("INSERT INTO permitq_task (kind, state, waiting_for, biz_key) VALUES ('call', 'blocked', 1, 'b')")
        .await;
    let blocked = db.int("SELECT id FROM permitq_task WHERE biz_key = 'b'").await;
    let mut store = db.store();
    for id in [scheduled, pending, blocked] {
        assert_eq!(store.cancel(id, "ann").await.unwrap(), Cancelled::Done);
        let task = db.task(id).await;
        assert_eq!((task.state, task.error.as_deref()), (State::Cancelled, Some("cancelled by ann")));
        assert!(task.finished_at.is_some());
        let action = store.actions(id).await.unwrap().remove(0);
        assert_eq!((&*action.who, &*action.what), ("ann", "cancel"));
    }
    db.holds(0).await;
    assert_eq!(store.cancel(999, "ann").await.unwrap(), Cancelled::Missing);
    assert!(db.consumer("a").await.claim(1).await.is_empty());
}

async fn cancelling_a_running_task_cools_its_permit(db: Db) {
    let id = db.enqueue(1).await[0];
    let mut a = db.consumer("a").await;
    let claim = a.claim_one().await;
    assert_eq!(db.store().cancel(id, "ann").await.unwrap(), Cancelled::Cooling);
    db.holds(1).await;
    assert!(
        a.store.beat("a", crate::support::LEASE).await.unwrap().unwrap().is_empty(),
        "its owner hears of it"
    );
    assert_eq!(a.finish(&[ended(claim, &Outcome::succeeded(None))]).await, [Recorded::Lost]);
    assert_eq!(db.task(id).await.state, State::Cancelled);
    db.holds(1).await;
    let log = db.store().attempts(id).await.unwrap().remove(0);
    assert_eq!((&*log.outcome, &*log.ended_by, &*log.consumer), ("cancelled", "ann", "a"));
    assert_eq!(db.cool_down().await, 1);
    db.holds(0).await;
}

async fn what_is_finished_is_not_cancelled(db: Db) {
    let tasks = db.enqueue(2).await;
    let mut a = db.consumer("a").await;
    let [one, two] = a.claim(2).await.try_into().unwrap();
    a.finish(&[ended(one, &Outcome::succeeded(None)), ended(two, &Outcome::failed("no"))]).await;
    for (id, state) in tasks.into_iter().zip([State::Succeeded, State::Failed]) {
        let before = db.task(id).await;
        assert_eq!(db.store().cancel(id, "ann").await.unwrap(), Cancelled::Finished(state));
        assert_eq!(db.task(id).await, before);
        assert!(db.store().actions(id).await.unwrap().is_empty());
    }
}

async fn only_failed_and_cancelled_tasks_are_retried(db: Db) {
    let tasks = db.enqueue(5).await;
    let mut a = db.consumer("a").await;
    let [one, two, three, _four] = a.claim(4).await.try_into().unwrap();
    a.finish(&[
        ended(one, &Outcome::succeeded(None)),
        ended(two, &Outcome::failed("no")),
        ended(three, &Outcome::retry("later", None)),
    ])
    .await;
    let mut store = db.store();
    let refused = [
        (tasks[0], State::Succeeded),
        (tasks[2], State::Scheduled),
        (tasks[3], State::Running),
        (tasks[4], State::Pending),
    ];
    for (id, state) in refused {
        assert_eq!(store.retry(id, "ann").await.unwrap(), Retried::NotFinished(state));
        assert!(store.actions(id).await.unwrap().is_empty());
    }
    store.cancel(tasks[4], "ann").await.unwrap();
    for id in [tasks[1], tasks[4]] {
        assert_eq!(store.retry(id, "ann").await.unwrap(), Retried::Done);
        let task = db.task(id).await;
        assert_eq!((task.state, task.finished_at, task.attempts), (State::Pending, None, 0));
        assert_eq!(store.actions(id).await.unwrap().pop().unwrap().what, "retry");
    }
    assert_eq!(store.retry(999, "ann").await.unwrap(), Retried::Missing);
    db.holds(1).await;
}

async fn a_retry_gives_a_whole_budget(db: Db) {
    let id = db.enqueue_one(NewTask { max_attempts: Some(1), ..NewTask::new("call", "{}") }).await;
    let mut a = db.consumer("a").await;
    for round in 1..3 {
        let claim = a.claim_one().await;
        assert_eq!((claim.attempt.claim_no, claim.standing.attempts), (round, 1));
        a.finish(&[ended(claim, &Outcome::retry("no", None))]).await;
        assert_eq!(db.task(id).await.state, State::Failed);
        assert_eq!(db.store().retry(id, "ann").await.unwrap(), Retried::Done);
    }
    assert_eq!(db.store().attempts(id).await.unwrap().len(), 2, "the log keeps both");
}

async fn a_retry_waits_for_the_given_up_call_unless_overlap_is_allowed(db: Db) {
    for on_abandon in OnAbandon::ALL {
        let task =
            NewTask { on_abandon: Some(on_abandon), max_attempts: Some(1), ..NewTask::new("call", "{}") };
        let id = db.enqueue_one(task).await;
        let mut a = db.consumer(on_abandon.as_str()).await;
        let claim = a.claim_one().await;
        let until = db.task(id).await.until.unwrap();
        a.finish(&[ended(claim, &Outcome::unclear(Why::Timeout, "slow"))]).await;
        let answer = db.store().retry(id, "ann").await.unwrap();
        let task = db.task(id).await;
        if on_abandon == OnAbandon::Retry {
            assert_eq!((answer, task.state), (Retried::Done, State::Pending));
        } else {
            assert_eq!(answer, Retried::AfterCooling(until), "{on_abandon}");
            assert_eq!((task.state, task.run_at), (State::Scheduled, until));
        }
        db.store().cancel(id, "ann").await.unwrap();
        // Its cooling is over: nothing to wait for.
        assert_eq!(db.cool_down().await, 1);
        assert_eq!(db.store().retry(id, "ann").await.unwrap(), Retried::Done);
        assert_eq!(db.task(id).await.state, State::Pending);
        db.store().cancel(id, "ann").await.unwrap();
    }
}

/// Loses its claim, and the answer comes late.
async fn answered_late(db: &Db, id: i64, consumer: &str, end: &dyn Fn(permitq::model::Attempt) -> Ended) {
    let mut owner = db.consumer(consumer).await;
    let attempt = owner.claim_one().await.attempt;
    assert_eq!(attempt.task, id);
    db.vanish(consumer).await;
    assert_eq!(db.reclaim().await, [id]);
    assert!(owner.store.late(consumer, &end(attempt)).await.unwrap());
}

async fn a_late_answer_is_accepted_where_nobody_runs_or_has_ended_the_task(db: Db) {
    let mut store = db.store();
    let id = db.enqueue_one(NewTask { max_attempts: Some(3), ..NewTask::new("call", "{}") }).await;
    assert_eq!(store.accept(id, "ann").await.unwrap(), Accepted::NoEvidence);
    assert_eq!(store.accept(999, "ann").await.unwrap(), Accepted::Missing);
    // A late failure is no result; the last late success is.
    answered_late(&db, id, "a", &|attempt| {
        let mut end = late(attempt, "", true);
        end.settlement = settle(FIRST, &Outcome::failed("no"), &Retry::default(), 1.0);
        end
    })
    .await;
    assert_eq!(store.accept(id, "ann").await.unwrap(), Accepted::NoEvidence);
    answered_late(&db, id, "b", &|attempt| late(attempt, "the answer", true)).await;
    let mut c = db.consumer("c").await;
    let claim = c.claim_one().await;
    assert_eq!(store.accept(id, "ann").await.unwrap(), Accepted::NotWaiting(State::Running));
    // Three of three: it fails, and a person decides.
    c.finish(&[ended(claim, &Outcome::retry("busy", None))]).await;
    assert_eq!(db.task(id).await.state, State::Failed);
    assert_eq!(store.accept(id, "ann").await.unwrap(), Accepted::Done(2));
    let task = db.task(id).await;
    assert_eq!(
        (task.state, task.result.as_deref(), task.error),
        (State::Succeeded, Some("the answer"), None)
    );
    assert_eq!((task.attempts, task.finished_at.is_some()), (3, true));
    let action = store.actions(id).await.unwrap().remove(0);
    assert_eq!((&*action.who, &*action.what), ("ann", "accept"));
    assert_eq!(action.detail.as_deref(), Some("the late answer to attempt 2"));
    // Once, and never over another result.
    for id in [id, db.enqueue(1).await[0]] {
        if id != task.id {
            answered_late(&db, id, "d", &|attempt| late(attempt, "x", true)).await;
            store.cancel(id, "ann").await.unwrap();
        }
        let before = db.task(id).await;
        assert_eq!(store.accept(id, "ann").await.unwrap(), Accepted::NotWaiting(before.state));
        assert_eq!(db.task(id).await, before);
    }
    db.holds(0).await;
}

async fn accepting_and_claiming_never_both_happen(db: Db) {
    for round in 0..8 {
        let id = db.enqueue(1).await[0];
        answered_late(&db, id, &format!("a{round}"), &|attempt| late(attempt, "done", true)).await;
        let mut claimer = db.consumer(&format!("b{round}")).await;
        let mut store = db.store();
        let (accepted, claims) = tokio::join!(store.accept(id, "ann"), claimer.claim(1));
        let accepted = accepted.unwrap();
        assert_eq!(accepted == Accepted::Done(1), claims.is_empty(), "{accepted:?}, {claims:?}");
        let ends: Vec<_> = claims.into_iter().map(|c| ended(c, &Outcome::succeeded(None))).collect();
        claimer.finish(&ends).await;
        assert_eq!(db.task(id).await.state, State::Succeeded);
        db.holds(0).await;
    }
}

async fn lists_filter_and_page(db: Db) {
    let mut tasks = vec![NewTask::new("call", "{}"); 5];
    tasks.push(NewTask::new("mail", "{}").key("the mail"));
    let ids = crate::support::ids(&db.store().enqueue(&tasks).await.unwrap());
    let _ = db.consumer("a").await.claim(2).await;
    let mut store = db.store();
    let open = Filter::default;
    let table = [
        (open(), 6),
        (Filter { kind: Some("call".into()), ..open() }, 5),
        (Filter { state: Some(State::Running), ..open() }, 2),
        (Filter { state: Some(State::Pending), kind: Some("call".into()), ..open() }, 3),
        (Filter { biz_key: Some("the mail".into()), ..open() }, 1),
        (Filter { semaphore: Some("other".into()), ..open() }, 0),
        (Filter { below: Some(ids[2]), ..open() }, 2),
    ];
    for (filter, count) in table {
        let got = store.tasks(&filter, 10).await.unwrap();
        assert_eq!(got.len(), count, "{filter:?}");
        assert!(got.is_sorted_by(|a, b| a.id > b.id) && got.iter().all(|task| task.payload.is_none()));
    }
    assert_eq!(store.tasks(&open(), 4).await.unwrap().len(), 4);
    let mut states = store.states(None).await.unwrap();
    states.sort_by_key(|(_, count)| *count);
    assert_eq!(states, [(State::Running, 2), (State::Pending, 4)]);
}
