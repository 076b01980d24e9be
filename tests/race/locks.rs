//! Two units meet on one row: somebody holds it open, they run into it, and the order of the locks decides.

use std::path::Path;
use std::time::Duration;

use permitq::model::{NewTask, Outcome, State};
use permitq::store::{Cancelled, Dialect, Recorded, Retried};
use tokio::spawn;
use tokio::time::timeout;

use crate::support::{Db, ended};

contract![
    a_claim_decides_under_the_lock_and_not_before_it,
    claims_that_meet_share_what_is_free,
    a_finish_and_a_cancel_that_meet_end_the_attempt_once,
    two_finishes_of_one_attempt_free_it_once,
    a_key_that_another_is_inserting_waits_for_its_end,
    a_retry_that_meets_a_retry_happens_once,
    a_repair_counts_after_it_has_the_lock,
];

mod skip {
    use super::*;

    servers![a_claim_passes_by_what_others_have_locked,];
}

async fn a_claim_decides_under_the_lock_and_not_before_it(db: Db) {
    // (cap while it looks, what the other transaction makes of it, claimed)
    for (before, after, got) in [(4, 1, 1), (4, 0, 0), (1, 3, 3)] {
        db.set_max(before).await;
        db.sql("DELETE FROM permitq_task").await;
        db.enqueue(9).await;
        let mut a = db.consumer(&format!("{before}-{after}")).await;
        let held = db.hold(&[&format!("UPDATE permitq_semaphore SET max_permits = {after}")]).await;
        let mut claim = spawn(async move { a.claim(4).await });
        held.holds_up(&mut claim).await;
        held.commit().await;
        assert_eq!(claim.await.unwrap().len(), got, "{before} to {after}");
        db.holds(i64::try_from(got).unwrap()).await;
        db.sql("UPDATE permitq_semaphore SET in_use = 0").await;
    }
}

async fn claims_that_meet_share_what_is_free(db: Db) {
    db.enqueue(20).await;
    let held = db.hold(&["UPDATE permitq_semaphore SET in_use = in_use"]).await;
    let mut claims = Vec::new();
    for id in ["a", "b", "c", "d"] {
        // Registering is held up as well where the whole database has one write lock.
        let mut consumer = crate::support::Consumer::new(id, db.store());
        claims.push(spawn(async move {
            consumer.store.register(&crate::support::registration(id)).await.unwrap();
            consumer.claim(3).await
        }));
    }
    for claim in &mut claims {
        held.holds_up(claim).await;
    }
    held.commit().await;
    let mut got = 0;
    for claim in claims {
        got += claim.await.unwrap().len();
    }
    assert_eq!(got, 4);
    db.holds(4).await;
}

async fn a_finish_and_a_cancel_that_meet_end_the_attempt_once(db: Db) {
    for round in 0..6 {
        let id = db.enqueue(1).await[0];
        let mut a = db.consumer(&format!("a{round}")).await;
        let done = [ended(a.claim_one().await, &Outcome::succeeded(None))];
        let mut store = db.store();
        let held = db.hold(&["UPDATE permitq_task SET priority = priority"]).await;
        let finish = spawn(async move { a.finish(&done).await });
        let cancel = spawn(async move { store.cancel(id, "ann").await.unwrap() });
        // Each comes first in turn, where the database queues those who wait.
        let (mut first, mut second) = (finish, cancel);
        if round % 2 == 0 {
            held.holds_up(&mut first).await;
            held.holds_up(&mut second).await;
        } else {
            held.holds_up(&mut second).await;
            held.holds_up(&mut first).await;
        }
        held.commit().await;
        let both = (first.await.unwrap()[0], second.await.unwrap());
        let state = db.task(id).await.state;
        match both {
            (Recorded::Done, Cancelled::Finished(State::Succeeded)) => assert_eq!(state, State::Succeeded),
            (Recorded::Lost, Cancelled::Cooling) => assert_eq!(state, State::Cancelled),
            other => panic!("{other:?}"),
        }
        let log = db.store().attempts(id).await.unwrap();
        assert_eq!(log.len(), 1);
        assert_eq!(db.cool_down().await, i64::from(log[0].outcome == "cancelled"));
        db.holds(0).await;
    }
}

async fn two_finishes_of_one_attempt_free_it_once(db: Db) {
    let tasks = db.enqueue(3).await;
    let mut a = db.consumer("a").await;
    let done = [ended(a.claim(3).await.remove(0), &Outcome::succeeded(None))];
    let held = db.hold(&["UPDATE permitq_task SET priority = priority"]).await;
    // The first one's answer got lost, and its transaction is still under way when it is repeated.
    let mut finishes = Vec::new();
    for _ in 0..2 {
        let (mut a, done) = (crate::support::Consumer::new("a", db.store()), done.clone());
        finishes.push(spawn(async move { a.finish(&done).await }));
    }
    for finish in &mut finishes {
        held.holds_up(finish).await;
    }
    held.commit().await;
    for finish in finishes {
        assert_eq!(finish.await.unwrap(), [Recorded::Done]);
    }
    assert_eq!(db.store().attempts(tasks[0]).await.unwrap().len(), 1);
    db.holds(2).await;
}

async fn a_key_that_another_is_inserting_waits_for_its_end(db: Db) {
    for (key, commits) in [("stays", true), ("goes", false)] {
        let insert = format!("INSERT INTO permitq_task (kind, biz_key) VALUES ('call', '{key}')");
        let held = db.hold(&[&insert]).await;
        let mut store = db.store();
        let mut enqueue =
            spawn(async move { store.enqueue(&[NewTask::new("call", "{}").key(key)]).await.unwrap()[0] });
        held.holds_up(&mut enqueue).await;
        if commits {
            held.commit().await;
        } else {
            held.roll_back().await;
        }
        let answer = enqueue.await.unwrap();
        assert_eq!(answer.created, !commits);
        assert_eq!(db.task(answer.id).await.biz_key.as_deref(), Some(key));
    }
    assert_eq!(db.int("SELECT count(*) FROM permitq_task").await, 2);
}

async fn a_retry_that_meets_a_retry_happens_once(db: Db) {
    let id = db.enqueue(1).await[0];
    db.store().cancel(id, "ann").await.unwrap();
    let held = db.hold(&["UPDATE permitq_task SET priority = priority"]).await;
    let mut retries: Vec<_> = ["ann", "bob"]
        .map(|who| {
            let mut store = db.store();
            spawn(async move { store.retry(id, who).await.unwrap() })
        })
        .into();
    for retry in &mut retries {
        held.holds_up(retry).await;
    }
    held.commit().await;
    let mut answers = Vec::new();
    for retry in retries {
        answers.push(retry.await.unwrap());
    }
    answers.sort_by_key(|answer| *answer != Retried::Done);
    assert_eq!(answers, [Retried::Done, Retried::NotFinished(State::Pending)]);
    assert_eq!(db.store().actions(id).await.unwrap().len(), 2, "one cancel, one retry");
}

async fn a_repair_counts_after_it_has_the_lock(db: Db) {
    db.enqueue(9).await;
    let mut a = db.consumer("a").await;
    let claims = a.claim(3).await;
    // Somebody's finish is under way: counted before it, the auditor would see drift where there is none.
    let finish = format!(
        "UPDATE permitq_task SET state = 'succeeded', consumer = NULL, until = NULL, finished_at = started_at
          WHERE id = {}",
        claims[0].attempt.task
    );
    let held = db.hold(&[&finish, "UPDATE permitq_semaphore SET in_use = in_use - 1"]).await;
    let mut store = db.store();
    let mut repair = spawn(async move {
        store.repair("default", std::time::Duration::from_mins(10), "auditor").await.unwrap()
    });
    held.holds_up(&mut repair).await;
    held.commit().await;
    assert_eq!(repair.await.unwrap().drift(), 0);
    db.holds(2).await;
}

/// Another claimer's transaction is stuck after its pick. It has locked what it picked, and nothing else.
async fn a_claim_passes_by_what_others_have_locked(db: Db) {
    db.set_max(20).await;
    let tasks = db.enqueue(500).await;
    let folder = if db.database.dialect() == Dialect::Postgres { "postgres" } else { "mysql" };
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("sql").join(folder).join("pick.sql");
    let mut pick: String = std::fs::read_to_string(file).unwrap();
    pick = pick.lines().filter(|line| !line.starts_with("--")).collect::<Vec<_>>().join(" ");
    for (n, value) in ["'default'", "'call'", "'default'", "'call'", "'default'", "8"].into_iter().enumerate()
    {
        pick = pick.replace(&format!("${}", n + 1), value).replacen('?', value, 1);
    }
    let held = db.hold(&[&pick]).await;
    let mut a = db.consumer("a").await;
    let claims = timeout(Duration::from_secs(20), a.claim(8)).await.expect("it waits for nobody");
    let claimed: Vec<_> = claims.iter().map(|claim| claim.attempt.task).collect();
    assert_eq!(claimed, tasks[8..16]);
    held.roll_back().await;
    assert_eq!(a.claim(8).await[0].attempt.task, tasks[0]);
}
