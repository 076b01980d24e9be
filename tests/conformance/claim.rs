//! A claim: permit first, then task, in one transaction.

use std::cmp::Reverse;
use std::time::Duration;

use jiff::Timestamp;
use permitq::model::{NewTask, OnAbandon, RunAt, State};
use permitq::store::{Left, Policy};

use crate::support::{Consumer, Db, ended, policy};

contract![
    claims_never_exceed_the_cap,
    a_full_semaphore_claims_nothing_and_writes_nothing,
    the_order_is_priority_then_run_at_then_id_over_all_kinds,
    what_comes_back_keeps_its_priority,
    a_consumer_claims_only_its_kinds_and_its_semaphore,
    only_an_alive_consumer_claims,
    fewer_tasks_than_permits_give_nothing_back,
    a_claim_carries_what_the_call_needs,
    open_fields_follow_the_policy_at_the_first_claim_and_stay,
    tasks_that_are_not_due_are_not_claimed,
];

async fn claims_never_exceed_the_cap(db: Db) {
    db.enqueue(9).await;
    let mut consumers = [db.consumer("a").await, db.consumer("b").await];
    for (who, want, got) in [(0, 3, 3), (1, 3, 1), (1, 1, 0), (0, 9, 0)] {
        assert_eq!(consumers[who].claim(want).await.len(), got);
        db.conservation().await;
    }
    db.holds(4).await;
}

async fn a_full_semaphore_claims_nothing_and_writes_nothing(db: Db) {
    db.enqueue(9).await;
    let mut a = db.consumer("a").await;
    assert_eq!(a.claim(9).await.len(), 4);
    let before = db.changes().await;
    assert!(a.claim(2).await.is_empty());
    assert_eq!(db.changes().await, before);
    db.holds(4).await;
}

async fn the_order_is_priority_then_run_at_then_id_over_all_kinds(db: Db) {
    let at = |second| RunAt::At(Timestamp::from_second(second).unwrap());
    // (kind, priority, run_at), in the order in which they must be claimed.
    let order = [
        ("b", 5, 90),
        ("a", 5, 91),
        ("b", 0, 10),
        ("a", 0, 10),
        ("b", 0, 10),
        ("a", 0, 10),
        ("a", 0, 11),
        ("b", -1, 1),
    ];
    // Ids ascend within equals, and descend everywhere else.
    let mut tasks: Vec<_> = order
        .iter()
        .map(|(kind, priority, run_at)| NewTask {
            priority: *priority,
            run_at: at(*run_at),
            ..NewTask::new(*kind, "{}")
        })
        .collect();
    tasks.sort_by_key(|task| {
        let RunAt::At(at) = task.run_at else { unreachable!() };
        (task.priority, Reverse(at))
    });
    db.store().enqueue(&tasks).await.unwrap();

    db.set_max(1).await;
    let mut a = db.consumer("a").await;
    a.policies = vec![policy("a"), policy("b")];
    let mut claimed = Vec::new();
    let mut done = Vec::new();
    for _ in order {
        let claim = a.exchange(&done, 1).await.claims.pop().unwrap();
        claimed.push((claim.kind.clone(), claim.attempt.task));
        done = vec![ended(claim, &permitq::model::Outcome::succeeded(None))];
    }
    let kinds: Vec<_> = claimed.iter().map(|(kind, _)| kind.as_str()).collect();
    assert_eq!(kinds, order.map(|(kind, ..)| kind));
    assert!(claimed[2..6].is_sorted_by_key(|(_, id)| *id), "{claimed:?}");
}

async fn a_consumer_claims_only_its_kinds_and_its_semaphore(db: Db) {
    db.store().add_semaphore("second", 2, "test").await.unwrap();
    let second = |kind| NewTask { semaphore: Some("second".into()), ..NewTask::new(kind, "{}") };
    db.store()
        .enqueue(&[NewTask::new("call", "{}"), NewTask::new("mail", "{}"), second("call"), second("mail")])
        .await
        .unwrap();
    // (semaphore, kinds, tasks got)
    let table: [(&str, &[&str], usize); 5] = [
        ("default", &["other"], 0),
        ("default", &[], 0),
        ("third", &["call"], 0),
        ("default", &["call"], 1),
        ("second", &["call", "mail", "other"], 2),
    ];
    let mut a = db.consumer("a").await;
    for (semaphore, kinds, got) in table {
        a.semaphore = semaphore.to_owned();
        a.policies = kinds.iter().map(|kind| policy(kind)).collect();
        let claims = a.claim(9).await;
        assert_eq!(claims.len(), got, "{semaphore} {kinds:?}");
        assert!(claims.iter().all(|claim| claim.semaphore == semaphore && kinds.contains(&&*claim.kind)));
        db.conservation().await;
    }
}

async fn only_an_alive_consumer_claims(db: Db) {
    db.enqueue(1).await;
    let mut draining = db.consumer("draining").await;
    db.leave("draining", Left::Draining).await;
    let mut gone = db.consumer("gone").await;
    db.leave("gone", Left::Gone).await;
    let mut unknown = Consumer::new("unknown", db.store());
    for consumer in [&mut draining, &mut gone, &mut unknown] {
        assert!(consumer.claim(1).await.is_empty(), "{}", consumer.id);
        db.holds(0).await;
    }
    assert_eq!(db.consumer("alive").await.claim(1).await.len(), 1);
}

async fn fewer_tasks_than_permits_give_nothing_back(db: Db) {
    let mut a = db.consumer("a").await;
    assert!(a.claim(4).await.is_empty());
    db.holds(0).await;
    db.enqueue(2).await;
    assert!(a.claim(0).await.is_empty());
    assert_eq!(a.claim(4).await.len(), 2);
    db.holds(2).await;
}

async fn a_claim_carries_what_the_call_needs(db: Db) {
    let id = db
        .enqueue_one(NewTask {
            timeout: Some(Duration::from_millis(1500)),
            ..NewTask::new("call", r#"{"to": "🦀"}"#).key("crab/🦀")
        })
        .await;
    let mut a = db.consumer("a").await;
    let before = a.clock.now();
    let claim = a.claim_one().await;
    assert_eq!((claim.attempt.task, claim.attempt.claim_no), (id, 1));
    assert_eq!((&*claim.kind, &*claim.semaphore), ("call", "default"));
    assert_eq!((claim.biz_key.as_deref(), &*claim.payload), (Some("crab/🦀"), r#"{"to": "🦀"}"#));
    assert_eq!(claim.timeout, Some(Duration::from_millis(1500)));
    assert!(claim.sent >= before);
    let task = db.task(id).await;
    assert_eq!((task.state, task.claim_no, task.attempts), (State::Running, 1, 1));
    assert_eq!(task.consumer.as_deref(), Some("a"));
    let held = task.until.unwrap().duration_since(task.started_at.unwrap());
    assert_eq!(Duration::try_from(held).unwrap(), policy("call").hold);
}

async fn open_fields_follow_the_policy_at_the_first_claim_and_stay(db: Db) {
    let own = NewTask {
        max_attempts: Some(9),
        on_abandon: Some(OnAbandon::RetryAfterCooling),
        ..NewTask::new("call", "{}")
    };
    let (own, open) = (db.enqueue_one(own).await, db.enqueue_one(NewTask::new("call", "{}")).await);
    let mut a = db.consumer("a").await;
    a.policies = vec![Policy { max_attempts: 5, on_abandon: OnAbandon::Fail, ..policy("call") }];
    for claim in a.claim(2).await {
        let standing = claim.standing;
        let task = db.task(claim.attempt.task).await;
        let expected = if task.id == own { (9, OnAbandon::RetryAfterCooling) } else { (5, OnAbandon::Fail) };
        assert_eq!((standing.max_attempts, standing.on_abandon), expected);
        assert_eq!((task.max_attempts, task.on_abandon), (Some(expected.0), Some(expected.1)));
        a.finish(&[ended(claim, &permitq::model::Outcome::not_started("again"))]).await;
    }
    a.policies = vec![Policy { max_attempts: 7, ..policy("call") }];
    assert_eq!(a.claim(2).await.iter().find(|c| c.attempt.task == open).unwrap().standing.max_attempts, 5);
}

async fn tasks_that_are_not_due_are_not_claimed(db: Db) {
    let id = db
        .enqueue_one(NewTask { run_at: RunAt::In(Duration::from_hours(1)), ..NewTask::new("call", "{}") })
        .await;
    let mut a = db.consumer("a").await;
    assert!(a.claim(1).await.is_empty());
    // Promoted at its instant, by the database's clock, and not before.
    assert_eq!(db.store().promote(10).await.unwrap(), 0);
    db.age("permitq_task", "run_at", Duration::from_hours(1), "1 = 1").await;
    assert_eq!(db.store().promote(10).await.unwrap(), 1);
    assert_eq!(a.claim_one().await.attempt.task, id);
}

/// One order for all: fresh, taken back, handed back and retried.
async fn what_comes_back_keeps_its_priority(db: Db) {
    use permitq::model::Outcome;
    db.set_max(1).await;
    let urgent = db.enqueue_one(NewTask { priority: 9, ..NewTask::new("call", "{}") }).await;
    let mut a = db.consumer("a").await;
    assert_eq!(a.claim_one().await.attempt.task, urgent);
    db.vanish("a").await;
    assert_eq!(db.reclaim().await, [urgent]);
    // What fills the cap meanwhile, steadily.
    db.enqueue(3).await;
    db.cool_down().await;
    let mut b = db.consumer("b").await;
    let mut done = Vec::new();
    for end in [Outcome::not_started("window"), Outcome::retry("busy", None), Outcome::succeeded(None)] {
        let claim = b.exchange(&done, 1).await.claims.pop().unwrap();
        assert_eq!(claim.attempt.task, urgent, "{end:?}");
        b.finish(&[ended(claim, &end)]).await;
        db.age("permitq_task", "run_at", Duration::from_mins(1), "state = 'scheduled'").await;
        db.store().promote(10).await.unwrap();
        // And one more that came first by age.
        let aged = NewTask { run_at: RunAt::At(Timestamp::UNIX_EPOCH), ..NewTask::new("call", "{}") };
        db.enqueue_one(aged).await;
        done.clear();
    }
    assert_ne!(b.claim_one().await.attempt.task, urgent);
}
