//! The schema: created and upgraded by anyone, at any time, at once; refused where this binary cannot run on it.

use futures_util::future::join_all;
use permitq::model::{Attempt, Claim, OnAbandon, Outcome, Standing, State};
use permitq::store::{Dialect, Error, Migrated, SCHEMA_VERSION};

use crate::support::{Db, ended, registration};

contract![
    empty:
    without_a_schema_the_command_that_helps_is_named,
    many_migrate_at_once_and_one_does_it,
    a_newer_schema_runs_if_it_admits_us,
    a_new_installation_has_one_row_to_tune,
    an_upgrade_meets_the_running_fleet,
];

async fn without_a_schema_the_command_that_helps_is_named(db: Db) {
    let error = db.store().schema().await.unwrap_err();
    assert!(matches!(error, Error::Schema(_)));
    assert!(error.to_string().contains("permitq migrate"), "{error}");
}

async fn many_migrate_at_once_and_one_does_it(db: Db) {
    let mut stores: Vec<_> = (0..8).map(|_| db.store()).collect();
    let done = join_all(stores.iter_mut().map(permitq::store::Store::migrate)).await;
    let done: Vec<Migrated> = done.into_iter().map(Result::unwrap).collect();
    let first = Migrated { from: 0, to: SCHEMA_VERSION };
    assert_eq!(done.iter().filter(|migrated| **migrated == first).count(), 1);
    assert!(done.iter().all(|migrated| migrated.to == SCHEMA_VERSION), "{done:?}");
    let schema = db.store().schema().await.unwrap();
    assert_eq!((schema.version, schema.min_binary), (SCHEMA_VERSION, 1));
    assert_eq!(db.int("SELECT count(*) FROM permitq_schema").await, 1);
    assert!(schema.installation.len() >= 32, "{schema:?}");
}

async fn a_newer_schema_runs_if_it_admits_us(db: Db) {
    let db = db.migrated().await;
    // (version, min_binary, runs)
    let newer = SCHEMA_VERSION + 3;
    for (version, min_binary, runs) in
        [(newer, SCHEMA_VERSION, true), (newer, newer, false), (SCHEMA_VERSION - 1, 0, false)]
    {
        db.sql(&format!("UPDATE permitq_schema SET version = {version}, min_binary = {min_binary}")).await;
        let schema = db.store().schema().await;
        assert_eq!(schema.is_ok(), runs, "{version} {min_binary}: {schema:?}");
        if version == newer {
            let done = db.store().migrate().await.unwrap();
            assert_eq!(done, Migrated { from: newer, to: newer }, "never backwards");
        }
    }
    let error = db.store().schema().await.unwrap_err().to_string();
    assert!(error.contains("permitq migrate"), "{error}");
}

async fn a_new_installation_has_one_row_to_tune(db: Db) {
    let db = db.migrated().await;
    assert_eq!(db.sql("UPDATE permitq_semaphore SET max_permits = 6").await, 1);
    db.store().migrate().await.unwrap();
    assert_eq!(db.int("SELECT max_permits FROM permitq_semaphore WHERE name = 'default'").await, 6);
}

/// From the first schema, while a task runs: what was there stays, and who claimed before finishes after.
async fn an_upgrade_meets_the_running_fleet(db: Db) {
    db.sql(match db.database.dialect() {
        Dialect::Sqlite => include_str!("../../sql/sqlite/migrations/0001_core.sql"),
        Dialect::Postgres => include_str!("../../sql/postgres/migrations/0001_core.sql"),
        Dialect::Mysql => include_str!("../../sql/mysql/migrations/0001_core.sql"),
    })
    .await;
    db.sql("INSERT INTO permitq_task (kind, biz_key) VALUES ('call', 'a'), ('call', 'b')").await;
    db.store().register(&registration("old")).await.unwrap();
    let mut old = crate::support::Consumer::new("old", db.store());
    // What a binary of that schema claimed.
    let task = db.int("SELECT id FROM permitq_task WHERE biz_key = 'a'").await;
    db.sql(&format!(
        "UPDATE permitq_task SET state = 'running', claim_no = 1, attempts = 1, consumer = 'old', started_at = run_at,
                until = run_at WHERE id = {task}"
    ))
    .await;
    db.sql("UPDATE permitq_semaphore SET in_use = 1").await;
    let claim = Claim {
        attempt: Attempt { task, claim_no: 1 },
        kind: "call".to_owned(),
        semaphore: "default".to_owned(),
        biz_key: None,
        payload: "{}".to_owned(),
        standing: Standing { attempts: 1, max_attempts: 3, on_abandon: OnAbandon::Retry },
        timeout: None,
        sent: old.clock.now(),
    };
    assert!(db.store().schema().await.unwrap_err().to_string().contains("run `permitq migrate`"));
    assert_eq!(db.store().migrate().await.unwrap(), Migrated { from: 1, to: SCHEMA_VERSION });
    old.finish(&[ended(claim, &Outcome::succeeded(None))]).await;
    assert_eq!(db.task(task).await.state, State::Succeeded);
    assert_eq!(old.claim(9).await.len(), 1);
    db.holds(1).await;
    // What an older binary writes: it knows no job.
    db.sql("INSERT INTO permitq_task (kind, biz_key) VALUES ('call', 'c')").await;
    assert_eq!(db.int("SELECT count(*) FROM permitq_task WHERE job IS NULL").await, 3);
    assert_eq!(db.store().jobs(None).await.unwrap(), []);
}
