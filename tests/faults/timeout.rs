//! Every statement has a bound, and a connection that ran into it is closed: also on the server, with its locks.

use std::time::Duration;

use loadtest::proxy::{Mode, Proxy};
use permitq::store::{Database, Dialect};
use tokio::time::Instant;

use crate::support::Db;
use crate::support::site::until;

servers![
    a_timed_out_connection_is_closed_on_the_server_too,
    who_is_cut_off_inside_a_transaction_does_not_keep_its_locks_for_long,
];

/// Statements of other connections than the hand's that wait for a lock.
fn busy(db: &Db) -> &'static str {
    match db.database.dialect() {
        Dialect::Postgres => {
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
                AND pid <> pg_backend_pid() AND application_name = 'permitq' AND wait_event_type = 'Lock'"
        }
        _ => {
            "SELECT count(*) FROM information_schema.processlist
              WHERE db = DATABASE() AND id <> CONNECTION_ID() AND info LIKE '%UPDATE%'"
        }
    }
}

async fn a_timed_out_connection_is_closed_on_the_server_too(db: Db) {
    let busy = busy(&db);
    let held = db.hold(&["UPDATE permitq_semaphore SET max_permits = 7"]).await;
    let mut store = db.database.clone().limit(Duration::from_millis(500)).store();
    let mut set = tokio::spawn(async move {
        let answer = store.set_max("default", 9, "ann").await;
        (answer, store)
    });
    until("it waits for the lock", async || db.int(busy).await == 1).await;
    held.holds_up(&mut set).await;
    let (answer, mut store) = set.await.unwrap();
    // The server gives up a little before the client, or the other way round: either ends it.
    answer.unwrap_err();
    // The lock is still held: it was not this that ended it.
    until("nobody waits any more", async || db.int(busy).await == 0).await;
    held.commit().await;
    assert_eq!(db.int("SELECT max_permits FROM permitq_semaphore").await, 7, "it came to nothing");
    assert!(store.set_max("default", 9, "ann").await.unwrap(), "and the store works on");
}

/// Everybody waits for the semaphore's row.
async fn who_is_cut_off_inside_a_transaction_does_not_keep_its_locks_for_long(db: Db) {
    let busy = busy(&db);
    let server = db.url().rsplit_once('@').and_then(|(_, place)| place.split_once('/')).unwrap().0;
    let proxy = Proxy::start(server.parse().unwrap()).await.unwrap();
    let mut store = Database::new(&proxy.url(db.url())).unwrap().store();
    let held = db.hold(&["UPDATE permitq_semaphore SET max_permits = 7"]).await;
    let cut_off = tokio::spawn(async move { store.set_max("default", 9, "ann").await });
    until("it waits for the lock", async || db.int(busy).await == 1).await;
    proxy.set(Mode::Blackhole);
    held.commit().await;
    let locked = "SELECT name FROM permitq_semaphore FOR UPDATE NOWAIT";
    until("it has the lock", async || db.try_sql(locked).await.is_err()).await;
    let began = Instant::now();
    db.sql("UPDATE permitq_semaphore SET max_permits = 5").await;
    // Two seconds; a statement may take ten.
    assert!(began.elapsed() < Duration::from_secs(7), "{:?}", began.elapsed());
    cut_off.abort();
    db.holds(0).await;
}
