//! Half a state, written by hand: the table refuses it, a pass repairs it, or the audit names it. None stays unseen.

use std::time::Duration;

use permitq::clock::Clock;
use permitq::model::{Outcome, Why};
use permitq::upkeep::Upkeep;

use crate::support::{Db, LEASE, ended, upkeep};

contract![half_a_state_is_refused_or_repaired_or_named,];

#[derive(Debug, PartialEq)]
enum Then {
    /// The statement fails.
    Refused,
    /// Two passes, and the books balance.
    Repaired,
    /// The audit has a line for it.
    Named,
}

const HOLD: Duration = Duration::from_mins(10);

async fn two_passes(db: &Db) {
    let mut upkeep = Upkeep::new(&db.database, Clock::held(), upkeep(HOLD));
    upkeep.pass().await.unwrap();
    upkeep.pass().await.unwrap();
}

/// What a person, a half-restored backup or a bug may leave behind. Each begins with one task that `a` runs, one that is
/// pending, one that failed, and one permit that cools.
async fn half_a_state_is_refused_or_repaired_or_named(db: Db) {
    use Then::{Named, Refused, Repaired};
    let table = [
        ("UPDATE permitq_task SET consumer = NULL WHERE state = 'running'", Refused),
        ("UPDATE permitq_task SET until = NULL WHERE state = 'running'", Refused),
        ("UPDATE permitq_task SET started_at = NULL WHERE state = 'running'", Refused),
        ("UPDATE permitq_task SET state = 'pending' WHERE state = 'running'", Refused),
        ("UPDATE permitq_task SET consumer = 'a' WHERE state = 'pending'", Refused),
        ("UPDATE permitq_task SET until = run_at WHERE state = 'pending'", Refused),
        ("UPDATE permitq_task SET run_at = NULL WHERE state = 'pending'", Refused),
        ("UPDATE permitq_task SET state = 'running' WHERE state = 'pending'", Refused),
        ("UPDATE permitq_task SET state = 'failed' WHERE state = 'pending'", Refused),
        ("UPDATE permitq_task SET state = 'blocked' WHERE state = 'pending'", Refused),
        ("UPDATE permitq_task SET finished_at = NULL WHERE state = 'failed'", Refused),
        ("UPDATE permitq_task SET state = 'pending' WHERE state = 'failed'", Refused),
        ("UPDATE permitq_task SET state = 'odd' WHERE state = 'pending'", Refused),
        ("UPDATE permitq_semaphore SET in_use = -1", Refused),
        ("UPDATE permitq_semaphore SET in_use = NULL", Refused),
        ("UPDATE permitq_semaphore SET max_permits = NULL", Refused),
        ("UPDATE permitq_cooling SET until = NULL", Refused),
        // A permit without a task, and a task without a permit.
        ("UPDATE permitq_semaphore SET in_use = in_use + 1", Repaired),
        ("UPDATE permitq_semaphore SET in_use = 0", Repaired),
        ("DELETE FROM permitq_task WHERE state = 'running'", Repaired),
        ("DELETE FROM permitq_cooling", Repaired),
        (
            "UPDATE permitq_task SET state = 'pending', consumer = NULL, until = NULL WHERE state = 'running'",
            Repaired,
        ),
        (
            "UPDATE permitq_task SET state = 'running', consumer = 'a', started_at = run_at, until = run_at
              WHERE state = 'pending'",
            Repaired,
        ),
        // An owner that is gone, or that nobody knows.
        ("UPDATE permitq_consumer SET state = 'gone'", Repaired),
        ("UPDATE permitq_task SET consumer = 'nobody' WHERE state = 'running'", Repaired),
        // What nobody can serve.
        ("UPDATE permitq_task SET semaphore = 'none' WHERE state = 'pending'", Named),
        ("UPDATE permitq_cooling SET semaphore = 'none'", Named),
        ("DELETE FROM permitq_semaphore", Named),
        (
            "INSERT INTO permitq_attempt (task, claim_no, kind, semaphore, consumer, claimed_at, ended_at, outcome, ended_by)
             SELECT id, claim_no, kind, semaphore, consumer, started_at, started_at, 'failed', 'a'
               FROM permitq_task WHERE state = 'running'",
            Named,
        ),
    ];
    for (n, (by_hand, then)) in table.into_iter().enumerate() {
        begin(&db, n).await;
        let done = db.try_sql(by_hand).await;
        assert_eq!(done.is_err(), then == Refused, "{by_hand}: {done:?}");
        assert!(done.is_err() || done.unwrap() > 0, "{by_hand} changed nothing");
        two_passes(&db).await;
        let impossible = db.store().audit().await.unwrap().impossible;
        assert_eq!(!impossible.is_empty(), then == Named, "{by_hand}: {impossible:?}");
        if then != Named {
            db.conservation().await;
            let lost = db.store().reclaim("r", LEASE, 0, 10).await.unwrap();
            assert!(lost.is_empty(), "{by_hand}: a third pass finds {lost:?}");
        }
    }
}

async fn begin(db: &Db, n: usize) {
    for table in ["task", "cooling", "attempt", "consumer", "semaphore", "limit"] {
        db.sql(&format!("DELETE FROM permitq_{table}")).await;
    }
    db.store().add_semaphore("default", 9, "test").await.unwrap();
    db.enqueue(4).await;
    let mut a = db.consumer("a").await;
    let mut claims = a.claim(3).await.into_iter();
    let _runs = claims.next();
    let ends = [
        ended(claims.next().unwrap(), &Outcome::failed("no")),
        ended(claims.next().unwrap(), &Outcome::unclear(Why::Timeout, "slow")),
    ];
    a.finish(&ends).await;
    db.holds(2).await;
    assert!(db.store().audit().await.unwrap().impossible.is_empty(), "case {n}");
}
