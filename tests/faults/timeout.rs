//! Every statement has a bound, and a connection that ran into it is closed: also on the server, with its locks.

use std::time::Duration;

use permitq::store::Dialect;

use crate::support::Db;
use crate::support::site::until;

servers![a_timed_out_connection_is_closed_on_the_server_too,];

async fn a_timed_out_connection_is_closed_on_the_server_too(db: Db) {
    // Statements of other connections than the hand's that run or wait.
    let busy = match db.database.dialect() {
        Dialect::Postgres => {
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
                AND pid <> pg_backend_pid() AND application_name = 'permitq' AND state <> 'idle'"
        }
        _ => {
            "SELECT count(*) FROM information_schema.processlist
              WHERE db = DATABASE() AND id <> CONNECTION_ID() AND info LIKE '%UPDATE%'"
        }
    };
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
