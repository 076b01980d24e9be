//! What can happen to the database and to the line to it, on the servers, with consumers as real processes. Every loop
//! recovers by itself, nothing is lost or doubled, and the cap holds.

mod chaos;
mod commit;
mod line;
mod outage;
mod packet;
mod rows;
mod server;
mod timeout;

use std::time::Duration;

use permitq::store::Dialect;

use crate::support::Db;
use crate::support::site::{Member, Site, until};

/// Leases that a busy machine keeps, too: the scaled time of a site is meant for those that are to run out.
const STEADY: [(&str, &str); 3] = [
    ("PERMITQ_LEASE__DURATION", "4s"),
    ("PERMITQ_LEASE__HEARTBEAT", "1s"),
    ("PERMITQ_LEASE__RECLAIM", "500ms"),
];
/// One call.
const CALL: Duration = Duration::from_millis(200);

/// Three consumers with steady leases, straight at the server.
fn three(site: &Site) -> Vec<Member> {
    (1..=3).map(|n| site.start_with(&["run", "--name", &format!("c{n}")], &STEADY)).collect()
}

/// Waits until so many consumers are registered.
async fn registered(site: &Site, n: i64) {
    let count = "SELECT count(*) FROM permitq_consumer WHERE state = 'alive'";
    until(&format!("{n} registered"), async || site.db.int(count).await == n).await;
}

/// All is done, each task with one call, and nobody was declared gone.
async fn nothing_lost_or_doubled(site: &Site, tasks: &[i64], max: u32) {
    site.nothing_lost_or_doubled(tasks, max).await;
    assert_eq!(site.db.int("SELECT count(*) FROM permitq_consumer WHERE state = 'gone'").await, 0);
}

/// The server ends every connection to this database but the hand's.
async fn kill_connections(db: &Db) {
    if db.database.dialect() == Dialect::Postgres {
        db.sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
              WHERE datname = current_database() AND pid <> pg_backend_pid()
                AND backend_type = 'client backend'",
        )
        .await;
        return;
    }
    // Listed once: who has come back meanwhile is left alone.
    let ids = db
        .text(
            "SELECT CAST(coalesce(group_concat(id), '') AS CHAR) FROM information_schema.processlist
              WHERE db = DATABASE() AND id <> CONNECTION_ID()",
        )
        .await;
    for id in ids.split_terminator(',') {
        // It may have ended since it was listed.
        let _ended = db.try_sql(&format!("KILL {id}")).await;
    }
}
