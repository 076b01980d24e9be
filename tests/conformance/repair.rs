//! The auditor: whatever was edited by hand, the counter comes back to what is there, and the cap never opens.

use std::time::Duration;

use permitq::model::{Outcome, Why};
use permitq::store::{Recorded, Repair};

use crate::support::{Db, ended};

contract![
    what_agrees_is_left_alone,
    a_deficit_is_raised_at_once,
    a_surplus_cools_and_is_never_just_lowered,
    an_absurd_surplus_is_bounded,
    a_deleted_running_task_cools_in_its_place,
    impossible_states_are_named,
];

const HOLD: Duration = Duration::from_mins(10);

async fn repair(db: &Db) -> Repair {
    let repair = db.store().repair("default", HOLD, "auditor").await.unwrap();
    db.conservation().await;
    repair
}

async fn what_agrees_is_left_alone(db: Db) {
    db.enqueue(4).await;
    let mut a = db.consumer("a").await;
    let claim = a.claim(2).await.remove(0);
    a.finish(&[ended(claim, &Outcome::unclear(Why::Timeout, "slow"))]).await;
    let before = db.changes().await;
    assert_eq!(repair(&db).await, Repair { in_use: 2, counted: 2, cooling: 0 });
    assert_eq!(db.changes().await, before);
    assert_eq!(db.store().repair("missing", HOLD, "auditor").await.unwrap(), Repair::default());
}

async fn a_deficit_is_raised_at_once(db: Db) {
    db.enqueue(9).await;
    let mut a = db.consumer("a").await;
    assert_eq!(a.claim(3).await.len(), 3);
    db.sql("UPDATE permitq_semaphore SET in_use = 0").await;
    let repaired = repair(&db).await;
    assert_eq!((repaired, repaired.drift()), (Repair { in_use: 0, counted: 3, cooling: 0 }, -3));
    assert_eq!(a.claim(9).await.len(), 1);
    db.holds(4).await;
}

async fn a_surplus_cools_and_is_never_just_lowered(db: Db) {
    db.enqueue(9).await;
    let mut a = db.consumer("a").await;
    let _ = a.claim_one().await;
    db.sql("UPDATE permitq_semaphore SET in_use = 3").await;
    assert_eq!(repair(&db).await, Repair { in_use: 3, counted: 1, cooling: 2 });
    let record = db.text("SELECT detail FROM permitq_action WHERE who = 'auditor' AND what = 'repair'").await;
    assert_eq!(record, "default: in_use was 3, counted 1, now cooling 2");
    db.holds(3).await;
    let drift: Vec<_> = db
        .store()
        .holders()
        .await
        .unwrap()
        .into_iter()
        .filter(|h| h.why.as_deref() == Some("drift"))
        .collect();
    assert_eq!(drift.len(), 2);
    for permit in drift {
        assert_eq!((permit.task, permit.consumer), (None, None));
        let left = Duration::try_from(permit.until.duration_since(permit.since)).unwrap();
        // The longest bound: that of the task that runs is longer than the auditor's own.
        assert!(left + Duration::from_secs(1) > HOLD, "{left:?}");
    }
    assert_eq!(a.claim(9).await.len(), 1);
    assert_eq!(repair(&db).await.drift(), 0);
    assert_eq!(db.cool_down().await, 2);
    db.holds(2).await;
}

async fn an_absurd_surplus_is_bounded(db: Db) {
    db.set_max(6).await;
    db.set_max(2).await;
    db.sql("UPDATE permitq_semaphore SET in_use = 1000000").await;
    // No more calls can be in flight than were ever allowed.
    assert_eq!(repair(&db).await.cooling, 6);
    db.holds(6).await;
}

async fn a_deleted_running_task_cools_in_its_place(db: Db) {
    let tasks = db.enqueue(9).await;
    let mut a = db.consumer("a").await;
    let lost = ended(a.claim(4).await.remove(0), &Outcome::succeeded(None));
    db.sql(&format!("DELETE FROM permitq_task WHERE id = {}", tasks[0])).await;
    assert!(a.claim(1).await.is_empty(), "its call may still run");
    assert_eq!(repair(&db).await, Repair { in_use: 4, counted: 3, cooling: 1 });
    assert!(a.claim(1).await.is_empty());
    assert_eq!(a.finish(&[lost]).await, [Recorded::Lost]);
    db.holds(4).await;
    assert_eq!(db.cool_down().await, 1);
    assert_eq!(a.claim(9).await.len(), 1);
}

async fn impossible_states_are_named(db: Db) {
    db.store().add_semaphore("doomed", 1, "test").await.unwrap();
    let task = permitq::NewTask { semaphore: Some("doomed".into()), ..permitq::NewTask::new("call", "{}") };
    db.enqueue_one(task).await;
    assert!(db.store().audit().await.unwrap().impossible.is_empty());
    db.sql("DELETE FROM permitq_semaphore WHERE name = 'doomed'").await;
    let audit = db.store().audit().await.unwrap();
    assert_eq!(audit.impossible.len(), 1);
    assert!(audit.impossible[0].contains("doomed"), "{audit:?}");
    assert_eq!(audit.semaphores.len(), 1);
}
