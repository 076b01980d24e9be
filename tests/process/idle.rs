//! P12: an idle fleet costs next to nothing.

use std::collections::BTreeMap;
use std::fs::{self, File};
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
const WINDOW: Duration = Duration::from_secs(20);

/// As by default.
const SETTINGS: [(&str, &str); 6] = [
    ("PERMITQ_CONSUMER__POLL", "1s"),
    ("PERMITQ_LEASE__DURATION", "2m"),
    ("PERMITQ_LEASE__HEARTBEAT", "15s"),
    ("PERMITQ_LEASE__RECLAIM", "15s"),
    ("PERMITQ_DATABASE__STATEMENT_TIMEOUT", "10s"),
    // One line for each transaction.
    ("PERMITQ_LOG", "permitq=trace"),
];

/// Counted by the consumers themselves: each transaction, reading or writing, is a line of their trace.
async fn an_idle_fleet_costs_next_to_nothing(db: Db) {
    let site = Site::new(db, 4).await;
    let folder = TempDir::new().unwrap();
    let logs: Vec<_> = (0..CONSUMERS).map(|n| folder.path().join(n.to_string())).collect();
    let _fleet: Vec<Member> =
        logs.iter().map(|log| site.start_logged(&["run"], &SETTINGS, File::create(log).unwrap())).collect();
    until("the fleet has looked for work", async || {
        logs.iter().all(|log| fs::read_to_string(log).unwrap().contains("look for impossible states"))
    })
    .await;
    sleep(Duration::from_secs(3)).await; // the start itself, looks for what came before them included

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
    let rate = |n: i64| f64::from(u32::try_from(n).unwrap()) / passed.as_secs_f64();
    println!(
        "{dialect:?}: {:.2} transactions a second ({:.2} by the server's count): {units:?}",
        rate(i64::try_from(all).unwrap()),
        rate(counted)
    );

    // No timer is over more often in the window, jitter included; one more of each for a machine that is behind.
    let most = |unit: &str| match unit {
        "beat" | "check" => 2 + 1,
        "look" if dialect == Dialect::Mysql => 27 + 1, // no wake-up: it polls
        "look" => 1,
        _ => 0,
    };
    for (unit, n) in units {
        assert!(n <= CONSUMERS * most(&unit), "{n} times {unit:?} in {passed:?}");
    }
}

/// What the server itself counts: transactions on PostgreSQL, statements on MariaDB (of all its databases).
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
