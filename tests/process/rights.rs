//! A consumer with no more rights than `sql/README.md` grants it.

use std::time::Duration;

use loadtest::servers::Server;
use permitq::store::Dialect;
use tokio::task::block_in_place;

use crate::support::Db;
use crate::support::site::{Site, until};

servers![alone: a_consumer_works_with_the_documented_rights,];

/// It claims, beats, finishes, is killed, taken back and cooled, and changes no schema.
async fn a_consumer_works_with_the_documented_rights(server: Server) {
    let db = Db::alone_on(&server).await;
    let postgres = db.database.dialect() == Dialect::Postgres;
    let (user, table) = if postgres { ("bare", "") } else { ("bare@'127.0.0.1'", "alone.") };
    let all = |table: &str| format!("SELECT, INSERT, UPDATE, DELETE ON {table}");
    let grants = [
        format!("SELECT ON {table}permitq_schema"),
        format!("SELECT, DELETE ON {table}permitq_limit"),
        format!("SELECT, UPDATE (in_use) ON {table}permitq_semaphore"),
        all(&format!("{table}permitq_task")),
        all(&format!("{table}permitq_cooling")),
        all(&format!("{table}permitq_attempt")),
        all(&format!("{table}permitq_consumer")),
        format!("SELECT, INSERT, DELETE ON {table}permitq_action"),
        all(&format!("{table}permitq_job")),
        all(&format!("{table}permitq_trigger")),
        all(&format!("{table}permitq_instant")),
        all(&format!("{table}permitq_pause")),
        format!("SELECT, INSERT, UPDATE ON {table}permitq_dependency"),
    ];
    let grants = grants.map(|grant| format!("GRANT {grant} TO {user}"));
    block_in_place(|| {
        server.execute(format!("CREATE USER {user}"));
        if !postgres {
            for grant in &grants {
                server.execute(grant);
            }
        }
    });
    if postgres {
        // A server's user administers no tables of a database that it is not connected to.
        for grant in grants {
            db.sql(&grant).await;
        }
    }

    let site = Site::new(db, 2).await;
    let url = site.db.url().replace("//permitq@", "//bare@");
    let bare = [("PERMITQ_DATABASE__URL", &*url)];
    let tasks = site.enqueue(6, Duration::from_millis(700)).await;
    let first = site.start_with(&["run", "--name", "first"], &bare);
    site.in_flight(2).await;
    first.kill();
    let mut second = site.start_with(&["run", "--name", "second"], &bare);
    site.settled().await;
    site.cap_held(2).await;
    assert_eq!(site.abandoned().await, 2);
    assert_eq!(site.db.int("SELECT count(*) FROM permitq_task WHERE state = 'succeeded'").await, 6);
    assert_eq!(tasks.len(), 6);

    // It fires what was added with no more rights.
    let add = ["schedule", "add", "hourly", "--kind", "call", "--payload", r#"{"ms": 5}"#, "--every", "1s"];
    let added = site.permitq(&add).env("PERMITQ_DATABASE__URL", &url).output().unwrap();
    assert!(added.status.success(), "{added:?}");
    let runs = "SELECT count(*) FROM permitq_task WHERE job = 'hourly' AND state = 'succeeded'";
    until("two runs", async || site.db.int(runs).await >= 2).await;
    second.terminate();
    assert_eq!(second.exit_code().await, Some(0));
    until("it took leave", async || {
        site.db.int("SELECT count(*) FROM permitq_consumer WHERE state <> 'gone'").await == 0
    })
    .await;

    // Where the schema is missing, it makes none and names the command that does.
    let without = site.permitq(&["migrate"]).env("PERMITQ_DATABASE__URL", &url).output().unwrap();
    assert!(without.status.success(), "there is nothing to do: {without:?}");
}
