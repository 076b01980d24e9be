//! Pairs of units that meet on one row, in both orders: the one that is under way is held open by hand, the other comes.

use std::time::Duration;

use permitq::model::{NewTask, Outcome, State, Why};
use permitq::store::{Dialect, Peak, Recorded, Repair};
use tokio::spawn;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::support::{Consumer, Db, Held, LEASE, ended, late};

contract![
    a_retune_waits_for_the_claim_under_way,
    a_cap_is_in_force_from_when_it_is_set_not_from_when_it_was_asked_for,
    a_claim_waits_for_the_repair_under_way,
    a_repair_waits_for_the_claim_under_way,
    a_reclaimer_leaves_a_fresh_attempt_alone,
    a_fence_that_meets_a_beat_fences_nobody,
    a_beat_that_meets_a_fence_is_gone,
    a_cooling_is_ended_once_by_whoever_comes_first,
    a_claim_takes_no_task_before_its_enqueue_is_committed,
    an_enqueue_finds_the_task_that_is_being_claimed,
];

/// What a claim of this task for `a` does, in its one transaction.
fn claim_by_hand(db: &Db, task: i64) -> [String; 2] {
    let now = match db.database.dialect() {
        Dialect::Sqlite => "CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000",
        Dialect::Postgres => "clock_timestamp()",
        Dialect::Mysql => "UTC_TIMESTAMP(6)",
    };
    [
        "UPDATE permitq_semaphore SET in_use = in_use + 1".to_owned(),
        format!(
            "UPDATE permitq_task SET state = 'running', claim_no = claim_no + 1, attempts = 1, consumer = 'a',
                    started_at = {now}, until = {now} WHERE id = {task}"
        ),
    ]
}

async fn hold(db: &Db, statements: &[String]) -> Held {
    db.hold(&statements.iter().map(String::as_str).collect::<Vec<_>>()).await
}

/// Ends what is held once the other has run into it, or has got past it: some databases skip, others wait.
async fn meets<T>(mut other: JoinHandle<T>, held: Held) -> T {
    let early = timeout(Duration::from_millis(50), &mut other).await;
    held.commit().await;
    match early {
        Ok(answer) => answer.unwrap(),
        Err(_) => other.await.unwrap(),
    }
}

async fn a_retune_waits_for_the_claim_under_way(db: Db) {
    let task = db.enqueue(2).await[0];
    let mut a = db.consumer("a").await;
    let held = hold(&db, &claim_by_hand(&db, task)).await;
    let mut store = db.store();
    let mut retune = spawn(async move { store.set_max("default", 0, "ann").await.unwrap() });
    held.holds_up(&mut retune).await;
    held.commit().await;
    assert!(retune.await.unwrap());
    db.holds(1).await;
    assert!(a.claim(1).await.is_empty(), "the cap is 0");
    assert_eq!(db.task(task).await.state, State::Running, "nobody is interrupted");
}

/// The log must not call a claim an overrun that was made while the new cap waited for the lock.
async fn a_cap_is_in_force_from_when_it_is_set_not_from_when_it_was_asked_for(db: Db) {
    let task = db.enqueue(1).await[0];
    db.consumer("a").await;
    let mut held = db.hold(&["UPDATE permitq_semaphore SET in_use = in_use"]).await;
    let mut store = db.store();
    let retune = spawn(async move { store.set_max("default", 0, "ann").await.unwrap() });
    // Longer than the second in which an old cap still counts.
    tokio::time::sleep(Duration::from_millis(1200)).await;
    for statement in claim_by_hand(&db, task) {
        held.execute(&statement).await;
    }
    held.commit().await;
    assert!(retune.await.unwrap());
    assert_eq!(db.store().peak("default", Peak::EVER).await.unwrap(), Peak { peak: 1, overruns: 0 });
}

async fn a_claim_waits_for_the_repair_under_way(db: Db) {
    db.enqueue(9).await;
    let mut a = db.consumer("a").await;
    let running = a.claim(3).await;
    db.sql("UPDATE permitq_semaphore SET in_use = 0").await;
    // An auditor raises the deficit; decided before it, the claim would take four.
    let held = db.hold(&["UPDATE permitq_semaphore SET in_use = 3"]).await;
    let mut claim = spawn(async move { a.claim(4).await });
    held.holds_up(&mut claim).await;
    held.commit().await;
    assert_eq!(claim.await.unwrap().len(), 1);
    assert_eq!(running.len(), 3);
    db.holds(4).await;
}

async fn a_repair_waits_for_the_claim_under_way(db: Db) {
    let task = db.enqueue(2).await[0];
    db.consumer("a").await;
    let held = hold(&db, &claim_by_hand(&db, task)).await;
    let mut store = db.store();
    let mut repair = spawn(async move { store.repair("default", LEASE, "auditor").await.unwrap() });
    held.holds_up(&mut repair).await;
    held.commit().await;
    assert_eq!(repair.await.unwrap(), Repair { in_use: 1, counted: 1, cooling: 0 });
    db.holds(1).await;
}

/// Its owner let it go and another claimed it, after the reclaimer had seen it and before it could take it.
async fn a_reclaimer_leaves_a_fresh_attempt_alone(db: Db) {
    let tasks = db.enqueue(2).await;
    let mut lost = db.consumer("lost").await;
    assert_eq!(lost.claim(2).await.len(), 2);
    let mut fresh = db.consumer("fresh").await;
    db.vanish("lost").await;
    let again = format!(
        "UPDATE permitq_task SET consumer = 'fresh', claim_no = claim_no + 1 WHERE id = {}",
        tasks[0]
    );
    let held = db.hold(&[&again]).await;
    let mut store = db.store();
    let reclaim = spawn(async move { store.reclaim("r", LEASE, 0, 10).await.unwrap() });
    let taken = meets(reclaim, held).await;
    let taken: Vec<_> = taken.iter().map(|attempt| attempt.task).collect();
    assert_eq!(taken, tasks[1..]);
    let task = db.task(tasks[0]).await;
    assert_eq!((task.state, task.claim_no, task.consumer.as_deref()), (State::Running, 2, Some("fresh")));
    assert_eq!(fresh.store.beat("fresh", LEASE).await.unwrap().unwrap().len(), 1);
    assert_eq!(db.reclaim().await, [] as [i64; 0]);
    db.holds(2).await;
}

async fn a_fence_that_meets_a_beat_fences_nobody(db: Db) {
    db.consumer("a").await;
    db.consumer("alive").await;
    db.age("permitq_consumer", "lease_until", Duration::from_hours(1), "id = 'a'").await;
    let mut store = db.store();
    let expired = store.expired().await.unwrap().remove(0);
    let latest = db.text(&lease_of_the_living(&db)).await;
    let beat = format!("UPDATE permitq_consumer SET lease_until = {latest} WHERE id = 'a'");
    let held = db.hold(&[&beat]).await;
    let mut fence = spawn(async move { store.fence(&expired).await.unwrap() });
    held.holds_up(&mut fence).await;
    held.commit().await;
    assert!(!fence.await.unwrap());
    assert_eq!(db.store().beat("a", LEASE).await.unwrap(), Some(vec![]));
}

/// The lease of the one who is alive, as a literal.
fn lease_of_the_living(db: &Db) -> String {
    let literal = match db.database.dialect() {
        Dialect::Sqlite => "CAST(lease_until AS TEXT)",
        Dialect::Postgres => "quote_literal(lease_until)",
        Dialect::Mysql => "quote(lease_until)",
    };
    format!("SELECT {literal} FROM permitq_consumer WHERE id = 'alive'")
}

async fn a_beat_that_meets_a_fence_is_gone(db: Db) {
    db.enqueue(1).await;
    let mut a = db.consumer("a").await;
    let done = ended(a.claim_one().await, &Outcome::succeeded(None));
    let held = db.hold(&["UPDATE permitq_consumer SET state = 'gone' WHERE id = 'a'"]).await;
    let mut store = db.store();
    let mut beat = spawn(async move { store.beat("a", LEASE).await.unwrap() });
    held.holds_up(&mut beat).await;
    held.commit().await;
    assert_eq!(beat.await.unwrap(), None);
    assert_eq!(db.reclaim().await.len(), 1);
    assert_eq!(a.finish(&[done]).await, [Recorded::Lost]);
    db.holds(1).await;
}

async fn a_cooling_is_ended_once_by_whoever_comes_first(db: Db) {
    for round in 0..2 {
        let task = db.enqueue(1).await[0];
        let mut a = db.consumer(&format!("a{round}")).await;
        let claim = a.claim_one().await;
        let attempt = claim.attempt;
        let _ = a.finish(&[ended(claim, &Outcome::unclear(Why::Timeout, "silent"))]).await;
        db.age("permitq_cooling", "until", Duration::from_hours(1), "1 = 1").await;
        // One of them is under way; the other finds nothing to free, whichever it is.
        let held = db
            .hold(&["DELETE FROM permitq_cooling", "UPDATE permitq_semaphore SET in_use = in_use - 1"])
            .await;
        let mut store = db.store();
        if round == 0 {
            let late = spawn(async move { store.late("a0", &late(attempt, "ok", true)).await.unwrap() });
            assert!(meets(late, held).await, "the evidence is kept all the same");
        } else {
            let now = store.clock().await.unwrap();
            let cool = spawn(async move { store.end_coolings("default", now, 9).await.unwrap() });
            assert_eq!(meets(cool, held).await, 0);
        }
        db.holds(0).await;
        db.store().cancel(task, "ann").await.unwrap();
    }
}

async fn a_claim_takes_no_task_before_its_enqueue_is_committed(db: Db) {
    for commits in [false, true] {
        let mut a = db.consumer(&format!("a {commits}")).await;
        let held = db.hold(&["INSERT INTO permitq_task (kind) VALUES ('call')"]).await;
        let mut claim = spawn(async move { (a.claim(1).await, a) });
        let early = timeout(Duration::from_millis(50), &mut claim).await;
        if commits {
            held.commit().await;
        } else {
            held.roll_back().await;
        }
        let (claims, mut a): (Vec<_>, Consumer) = match early {
            Ok(past) => {
                let past = past.unwrap();
                assert!(past.0.is_empty(), "not committed when it looked");
                past
            }
            Err(_) => claim.await.unwrap(),
        };
        let claims = claims.len() + a.claim(1).await.len();
        assert_eq!(claims, usize::from(commits));
    }
    db.holds(1).await;
}

async fn an_enqueue_finds_the_task_that_is_being_claimed(db: Db) {
    let first = db.enqueue_one(NewTask::new("call", "{}").key("k")).await;
    db.consumer("a").await;
    let held = hold(&db, &claim_by_hand(&db, first)).await;
    let mut store = db.store();
    let tasks = [NewTask::new("call", "{}").key("k"), NewTask::new("call", "{}").key("new")];
    let enqueue = spawn(async move { store.enqueue(&tasks).await.unwrap() });
    let answers = meets(enqueue, held).await;
    assert_eq!((answers[0].id, answers[0].created, answers[1].created), (first, false, true));
    assert_eq!(db.task(first).await.state, State::Running);
    db.holds(1).await;
}
