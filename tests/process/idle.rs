//! P12: an idle fleet costs next to nothing.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::PathBuf;
use std::time::Duration;

use permitq::store::Dialect;
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

use crate::support::Db;
use crate::support::site::{Member, Site, until};

contract! {
    an_idle_fleet_costs_next_to_nothing,
}

const CONSUMERS: usize = 8;
/// Five times as fast as by default, which makes 16 / 15 s + 16 / 40 s = 1.5 transactions a second of eight consumers, where
/// a wake-up is connected, and 9 where they poll.
const SETTINGS: [(&str, &str); 5] = [
    ("PERMITQ_CONSUMER__POLL", "1s"),
    ("PERMITQ_LEASE__DURATION", "24s"),
    ("PERMITQ_LEASE__HEARTBEAT", "3s"),
    ("PERMITQ_LEASE__RECLAIM", "3s"),
    // One line for each transaction.
    ("PERMITQ_LOG", "permitq=trace"),
];
const WINDOW: Duration = Duration::from_secs(9);

/// Counted by the consumers themselves: each transaction, reading or writing, is a line of their trace.
async fn an_idle_fleet_costs_next_to_nothing(db: Db) {
    let site = Site::new(db, 4).await;
    let folder = TempDir::new().unwrap();
    let logs: Vec<_> = (0..CONSUMERS).map(|n| folder.path().join(n.to_string())).collect();
    let _fleet: Vec<Member> =
        logs.iter().map(|log| site.start_logged(&["run"], &SETTINGS, File::create(log).unwrap())).collect();
    until("each heart has beaten, and each scheduler looked", async || {
        let begun = |log| ["beat", "look at schedules"].iter().all(|unit| said(log, unit));
        logs.iter().all(begun)
    })
    .await;
    // All connections are open. PostgreSQL's sessions hand their counts in after ten idle seconds at the latest.
    sleep(Duration::from_secs(11)).await;

    let lengths: Vec<_> = logs.iter().map(|log| fs::read_to_string(log).unwrap().len()).collect();
    let (counted, began) = (server_count(&site.db).await, Instant::now());
    sleep(WINDOW).await;
    let passed = began.elapsed();
    let counted = server_count(&site.db).await - counted;
    let mut units = BTreeMap::<String, usize>::new();
    for (log, length) in logs.iter().zip(lengths) {
        let text = fs::read_to_string(log).unwrap();
        for line in text[length..].lines() {
            let Some((_, unit)) = line.split_once("transaction unit=\"") else { panic!("idle, but: {line}") };
            *units.entry(unit.trim_end_matches('"').to_owned()).or_default() += 1;
        }
    }
    let dialect = site.db.database.dialect();
    let all: usize = units.values().sum();
    println!("{dialect:?}: {all} transactions in {passed:.1?}, {units:?}; the server counts {counted}");
    if dialect == Dialect::Postgres {
        // Each listener asks once, at most, and so do we.
        assert!(
            counted <= i64::try_from(all + CONSUMERS).unwrap() + 2,
            "the server counts {counted}, we {all}"
        );
    }
    // No timer is over more often in the window, jitter included; one more of each for a machine that is behind.
    let most = |unit: &str| match unit {
        "beat" => 3 + 1,
        "check" => 4 + 1,
        "look" if dialect == Dialect::Mysql => 12 + 1, // no wake-up: it polls
        // Five times as rarely.
        "look at schedules" if dialect == Dialect::Mysql => 3 + 1,
        "look" | "look at schedules" => 1,
        _ => 0,
    };
    for (unit, n) in units {
        assert!(n <= CONSUMERS * most(&unit), "{n} times {unit:?} in {passed:?}");
    }
}

fn said(log: &PathBuf, unit: &str) -> bool {
    fs::read_to_string(log).unwrap().contains(&format!("unit=\"{unit}\""))
}

/// What the server itself counts: transactions on PostgreSQL, this one included; statements on MariaDB, of all its
/// databases.
async fn server_count(db: &Db) -> i64 {
    match db.database.dialect() {
        Dialect::Sqlite => 0,
        Dialect::Postgres => {
            db.int(
                "SELECT CAST(xact_commit + xact_rollback AS bigint) FROM pg_stat_database
                  WHERE datname = current_database()",
            )
            .await
        }
        Dialect::Mysql => {
            db.int(
                "SELECT CAST(variable_value AS SIGNED) FROM information_schema.global_status
                  WHERE variable_name = 'Questions'",
            )
            .await
        }
    }
}
