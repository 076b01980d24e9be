//! The ten holes of the recipe that people copy: a counter row, a conditional claim, a release in `finally`, a job that
//! resets stale tasks. Each is opened on purpose here, and must stay shut.

use std::time::Duration;

use permitq::clock::Clock;
use permitq::model::{NewTask, Outcome, State};
use permitq::store::{Expired, Recorded, Repair};
use tokio::spawn;
use tokio::time::timeout;

use crate::support::{Consumer, Db, LEASE, ended, late, registration};

contract![
    hole_01_dying_between_permit_and_claim_leaks_nothing,
    hole_02_releasing_after_a_reclaim_releases_nothing,
    hole_03_a_reclaimer_takes_nothing_that_finishes_meanwhile,
    hole_04_dying_between_the_reclaimers_updates_leaks_nothing,
    hole_05_a_consumers_id_is_no_fence,
    hole_06_a_lost_last_attempt_ends_failed,
    hole_07_an_abandoned_call_keeps_its_permit,
    hole_08_a_paused_process_wakes_up_to_nothing,
    hole_09_only_the_databases_clock_tells_who_is_stale,
    hole_10_the_counter_never_goes_below_zero,
];

async fn hole_01_dying_between_permit_and_claim_leaks_nothing(db: Db) {
    db.enqueue(4).await;
    let mut a = db.consumer("a").await;
    let running = a.claim_one().await;
    // Before the task is ours, and when it is ours but the permit is not taken yet.
    for table in ["permitq_task", "permitq_semaphore"] {
        db.fail_on("UPDATE", table).await;
        assert!(a.try_exchange(&[], 2).await.is_err(), "{table}");
        db.holds(1).await;
        assert_eq!(db.int("SELECT count(*) FROM permitq_task WHERE claim_no > 0").await, 1);
        db.mend(table).await;
    }
    // The same in an exchange: what was to be finished is still ours.
    let done = [ended(running, &Outcome::succeeded(None))];
    for (event, table) in
        [("INSERT", "permitq_attempt"), ("UPDATE", "permitq_task"), ("UPDATE", "permitq_semaphore")]
    {
        db.fail_on(event, table).await;
        assert!(a.try_exchange(&done, 2).await.is_err(), "{event} {table}");
        db.mend(table).await;
        db.holds(1).await;
        assert_eq!(db.int("SELECT count(*) FROM permitq_attempt").await, 0);
    }
    let got = a.exchange(&done, 9).await;
    assert_eq!((got.recorded.as_slice(), got.claims.len()), ([Recorded::Done].as_slice(), 3));
    db.holds(3).await;
}

async fn hole_02_releasing_after_a_reclaim_releases_nothing(db: Db) {
    db.enqueue(2).await;
    let mut a = db.consumer("a").await;
    let done: Vec<_> =
        a.claim(2).await.into_iter().map(|claim| ended(claim, &Outcome::succeeded(None))).collect();
    db.vanish("a").await;
    assert_eq!(db.reclaim().await.len(), 2);
    db.holds(2).await;
    for _ in 0..2 {
        assert_eq!(a.finish(&done).await, [Recorded::Lost; 2]);
        db.holds(2).await;
    }
    assert_eq!(db.cool_down().await, 2);
    assert_eq!(a.finish(&done).await, [Recorded::Lost; 2]);
    db.holds(0).await;
}

async fn hole_03_a_reclaimer_takes_nothing_that_finishes_meanwhile(db: Db) {
    let tasks = db.enqueue(3).await;
    let mut a = db.consumer("a").await;
    let mut claims = a.claim(3).await;
    let late = ended(claims.remove(1), &Outcome::succeeded(None));
    db.vanish("a").await;
    // The first task's finish is under way when the reclaimer comes: it waits, or skips the row.
    let finish = format!(
        "UPDATE permitq_task SET state = 'succeeded', consumer = NULL, until = NULL, finished_at = started_at
          WHERE id = {}",
        tasks[0]
    );
    let held = db.hold(&[&finish, "UPDATE permitq_semaphore SET in_use = in_use - 1"]).await;
    let mut store = db.store();
    let mut reclaim = spawn(async move { store.reclaim("r", LEASE, 0, 10).await.unwrap() });
    let skipped = timeout(Duration::from_millis(50), &mut reclaim).await;
    held.commit().await;
    let ended = match skipped {
        Ok(ended) => ended.unwrap(),
        Err(_) => reclaim.await.unwrap(),
    };
    assert_eq!(ended.iter().map(|attempt| attempt.task).collect::<Vec<_>>(), tasks[1..]);
    assert_eq!(db.task(tasks[0]).await.state, State::Succeeded);
    db.holds(2).await;
    // The other order: the reclaimer was first.
    assert_eq!(a.finish(&[late]).await, [Recorded::Lost]);
    assert_eq!(db.task(tasks[1]).await.state, State::Pending);
    db.holds(2).await;
}

async fn hole_04_dying_between_the_reclaimers_updates_leaks_nothing(db: Db) {
    db.enqueue(3).await;
    let _ = db.consumer("a").await.claim(3).await;
    db.vanish("a").await;
    let before = db.store().holders().await.unwrap();
    for (event, table) in
        [("INSERT", "permitq_attempt"), ("INSERT", "permitq_cooling"), ("UPDATE", "permitq_task")]
    {
        db.fail_on(event, table).await;
        assert_eq!(db.reclaim().await, [] as [i64; 0], "{event} {table}");
        db.mend(table).await;
        assert_eq!(db.store().holders().await.unwrap(), before);
        assert_eq!(db.int("SELECT count(*) FROM permitq_attempt").await, 0);
        db.holds(3).await;
    }
    assert_eq!(db.reclaim().await.len(), 3);
    // And between the two halves of a cooling's end.
    db.age("permitq_cooling", "until", Duration::from_hours(1), "1 = 1").await;
    for (event, table) in
        [("UPDATE", "permitq_attempt"), ("DELETE", "permitq_cooling"), ("UPDATE", "permitq_semaphore")]
    {
        db.fail_on(event, table).await;
        assert!(db.end_coolings(10).await.is_err(), "{event} {table}");
        db.mend(table).await;
        db.holds(3).await;
    }
    assert_eq!(db.end_coolings(10).await.unwrap(), 3);
    db.holds(0).await;
}

async fn hole_05_a_consumers_id_is_no_fence(db: Db) {
    let id = db.enqueue(1).await[0];
    let mut a = db.consumer("a").await;
    let first = a.claim_one().await;
    let old = ended(first, &Outcome::succeeded(Some("old".into())));
    // It loses the task and claims it again, alive all the while.
    db.age("permitq_task", "until", Duration::from_hours(1), "1 = 1").await;
    assert_eq!(db.reclaim().await, [id]);
    let again = a.claim_one().await;
    assert_eq!(again.attempt.claim_no, old.attempt.claim_no + 1);
    let before = db.task(id).await;
    assert_eq!(a.finish(std::slice::from_ref(&old)).await, [Recorded::Lost]);
    assert!(a.store.late("a", &late(old.attempt, "old", false)).await.unwrap());
    assert_eq!(db.task(id).await, before);
    db.holds(2).await;
    let new = ended(again, &Outcome::succeeded(Some("new".into())));
    assert_eq!(a.finish(&[old, new]).await, [Recorded::Lost, Recorded::Done]);
    assert_eq!(db.task(id).await.result.as_deref(), Some("new"));
    db.holds(1).await;
}

async fn hole_06_a_lost_last_attempt_ends_failed(db: Db) {
    let id = db.enqueue_one(NewTask { max_attempts: Some(3), ..NewTask::new("call", "{}") }).await;
    for round in 1..=3 {
        let owner = format!("a{round}");
        assert_eq!(db.consumer(&owner).await.claim_one().await.standing.attempts, round);
        db.vanish(&owner).await;
        assert_eq!(db.reclaim().await, [id]);
    }
    let task = db.task(id).await;
    assert_eq!((task.state, task.attempts), (State::Failed, 3));
    assert!(db.consumer("b").await.claim(1).await.is_empty());
    assert_eq!(db.reclaim().await, [] as [i64; 0]);
    db.holds(3).await;
    assert_eq!(db.cool_down().await, 3);
    db.holds(0).await;
}

async fn hole_07_an_abandoned_call_keeps_its_permit(db: Db) {
    db.enqueue(9).await;
    let _ = db.consumer("a").await.claim(9).await;
    db.vanish("a").await;
    assert_eq!(db.reclaim().await.len(), 4);
    let mut b = db.consumer("b").await;
    assert!(b.claim(1).await.is_empty(), "four calls may still run downstream");
    db.age("permitq_cooling", "until", Duration::from_mins(1), "1 = 1").await;
    assert_eq!(db.end_coolings(9).await.unwrap(), 0);
    assert!(b.claim(1).await.is_empty());
    assert_eq!(db.cool_down().await, 4);
    assert_eq!(b.claim(9).await.len(), 4);
    db.holds(4).await;
}

async fn hole_08_a_paused_process_wakes_up_to_nothing(db: Db) {
    let id = db.enqueue(2).await[0];
    let mut a = db.consumer("a").await;
    let late = ended(a.claim_one().await, &Outcome::succeeded(None));
    db.vanish("a").await;
    db.reclaim().await;
    // Whatever it does first when it wakes up, and however often: it is gone for ever.
    for _ in 0..2 {
        assert!(a.claim(1).await.is_empty());
        assert_eq!(a.store.beat("a", LEASE).await.unwrap(), None);
        let got = a.exchange(std::slice::from_ref(&late), 1).await;
        assert_eq!((got.recorded.as_slice(), got.claims.len()), ([Recorded::Lost].as_slice(), 0));
        assert!(a.store.register(&registration("a")).await.is_err());
        db.holds(1).await;
    }
    assert_eq!(db.task(id).await.state, State::Pending);
}

async fn hole_09_only_the_databases_clock_tells_who_is_stale(db: Db) {
    db.enqueue(2).await;
    db.consumer("a").await;
    // A consumer whose clock is a day ahead: what it claims is stamped by the database all the same.
    let clock = Clock::held();
    clock.advance(Duration::from_hours(24));
    let mut a = Consumer { clock, ..Consumer::new("a", db.store()) };
    let mut store = db.store();
    let before = store.clock().await.unwrap();
    let claim = a.claim_one().await;
    let task = db.task(claim.attempt.task).await;
    let stamps = before..=store.clock().await.unwrap();
    assert!(stamps.contains(&task.started_at.unwrap().as_microsecond()));
    // A reclaimer whose own clock says that this lease is over, and who names it exactly.
    let lease_until = store.consumers().await.unwrap()[0].lease_until.as_microsecond();
    assert!(store.expired().await.unwrap().is_empty());
    assert!(!store.fence(&Expired { consumer: "a".into(), lease_until }).await.unwrap());
    assert!(db.reclaim().await.is_empty());
    // Only when the database's clock has passed it.
    db.age("permitq_consumer", "lease_until", LEASE * 2, "1 = 1").await;
    let expired = store.expired().await.unwrap().remove(0);
    assert!(store.fence(&expired).await.unwrap());
    assert_eq!(db.reclaim().await.len(), 1);
}

async fn hole_10_the_counter_never_goes_below_zero(db: Db) {
    db.enqueue(9).await;
    let mut a = db.consumer("a").await;
    let mut claims = a.claim(3).await;
    db.sql("UPDATE permitq_semaphore SET in_use = 1").await;
    let done: Vec<_> = claims.drain(..2).map(|claim| ended(claim, &Outcome::succeeded(None))).collect();
    assert_eq!(a.finish(&done).await, [Recorded::Done; 2], "an edited counter fails no finish");
    assert_eq!(db.in_use().await, 0);
    // A gate below zero would admit five.
    assert_eq!(a.claim(9).await.len(), 4);
    let repaired = db.store().repair("default", LEASE, "auditor").await.unwrap();
    assert_eq!(repaired, Repair { in_use: 4, counted: 5, cooling: 0 });
    assert!(a.claim(1).await.is_empty());
    db.holds(5).await;
}
