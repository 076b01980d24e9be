//! One loop of a consumer is broken, and what the others make of it.

use std::time::Duration;

use permitq::model::State;
use permitq::store::Dialect;
use tokio::time::sleep;

use crate::support::Db;
use crate::support::site::{Site, until};

contract! {
    who_cannot_beat_stops_claiming_and_comes_back_under_a_new_id,
    a_broken_upkeep_stops_nobody_and_recovers,
}

const CALL: Duration = Duration::from_millis(300);

/// Every beat fails, and no other statement.
fn no_beats(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Sqlite => {
            "CREATE TRIGGER test_fail_permitq_consumer BEFORE UPDATE OF lease_until ON permitq_consumer
             BEGIN SELECT RAISE(ABORT, 'no beat'); END"
        }
        Dialect::Postgres => {
            "CREATE FUNCTION test_fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no beat'; END $$;
             CREATE TRIGGER test_fail_permitq_consumer BEFORE UPDATE OF lease_until ON permitq_consumer
             FOR EACH ROW EXECUTE FUNCTION test_fail()"
        }
        Dialect::Mysql => {
            "CREATE TRIGGER test_fail_permitq_consumer BEFORE UPDATE ON permitq_consumer FOR EACH ROW
             IF NEW.lease_until <> OLD.lease_until
             THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'no beat'; END IF"
        }
    }
}

async fn who_cannot_beat_stops_claiming_and_comes_back_under_a_new_id(db: Db) {
    let site = Site::new(db, 2).await;
    let _member = site.start(&["run", "--roles", "consume", "--name", "c"]);
    site.alive(1).await;
    let first = site.enqueue(1, CALL).await;
    site.nothing_lost_or_doubled(&first, 2).await;
    site.db.sql(no_beats(site.db.database.dialect())).await;
    until("its lease to pass", async || !site.db.store().expired().await.unwrap().is_empty()).await;

    // Nobody has taken the lease, and it claims nothing all the same.
    let tasks = site.enqueue(2, CALL).await;
    sleep(Duration::from_secs(1)).await;
    assert_eq!(site.stub.summary().calls, 1);
    assert_eq!(site.db.task(tasks[0]).await.state, State::Pending);
    // Fenced, it registers anew: that is a beat which needs no UPDATE, and worth one lease.
    let _reclaimer = site.start(&["run", "--roles", "reclaim"]);
    until("gone", async || {
        site.db.int("SELECT count(*) FROM permitq_consumer WHERE state = 'gone'").await > 0
    })
    .await;
    site.db.mend("permitq_consumer").await;
    site.nothing_lost_or_doubled(&[&first[..], &tasks].concat(), 2).await;
    let owners = "SELECT count(DISTINCT consumer) FROM permitq_attempt";
    assert!(site.db.int(owners).await > 1, "the same id went on");
    let living = site.db.store().consumers().await.unwrap();
    assert!(living.iter().all(|row| row.name == "c") && living.len() == 1, "{living:?}");
}

async fn a_broken_upkeep_stops_nobody_and_recovers(db: Db) {
    let site = Site::new(db, 2).await;
    site.db.fail_on("DELETE", "permitq_cooling").await;
    site.db
        .sql(
            "INSERT INTO permitq_cooling (semaphore, until, why) SELECT name, since, 'timeout' FROM permitq_limit
               JOIN permitq_semaphore ON semaphore = name WHERE permitq_limit.max_permits = 2;
             UPDATE permitq_semaphore SET in_use = 1",
        )
        .await;
    let _member = site.consumer("c");
    let tasks = site.enqueue(6, CALL).await;
    let done = "SELECT count(*) FROM permitq_task WHERE state = 'succeeded'";
    until("all tasks done", async || site.db.int(done).await == 6).await;
    site.db.holds(1).await;
    assert!(site.db.store().expired().await.unwrap().is_empty(), "the heart beats");
    site.db.mend("permitq_cooling").await;
    site.nothing_lost_or_doubled(&tasks, 2).await;
}
