//! How long an operation may take: `database.statement_timeout` here, and a little less on the server.

use std::time::Duration;

use permitq::store::{Dialect, Error};

use crate::support::Db;

contract![the_server_gives_up_before_the_client,];

/// Where the client were first, its statement would go on there, with its locks.
async fn the_server_gives_up_before_the_client(db: Db) {
    let slow = match db.database.dialect() {
        // Nothing waits in SQLite but the store itself.
        Dialect::Sqlite => return,
        Dialect::Postgres => {
            "CREATE FUNCTION test_slow() RETURNS trigger LANGUAGE plpgsql AS
             $$ BEGIN PERFORM pg_sleep(60); RETURN NEW; END $$;
             CREATE TRIGGER test_slow BEFORE UPDATE ON permitq_semaphore FOR EACH ROW EXECUTE FUNCTION test_slow()"
        }
        Dialect::Mysql => {
            "CREATE TRIGGER test_slow BEFORE UPDATE ON permitq_semaphore FOR EACH ROW DO SLEEP(60)"
        }
    };
    db.sql(slow).await;
    let mut store = db.database.clone().limit(Duration::from_secs(2)).store();
    let error = store.set_max("default", 6, "test").await.unwrap_err();
    // An answer, not silence: it is known that nothing was applied.
    assert!(matches!(error, Error::Database { .. }), "{error}");
    assert!(!error.is_unknown());
    assert_eq!(db.int("SELECT max_permits FROM permitq_semaphore").await, 4);
}
