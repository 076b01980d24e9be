//! The workloads that measure, in a short form: they run, tell what they promise to tell, and the cap holds. Nothing here
//! asserts how fast.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::process::Command;

use serde_json::Value;

/// The JSON of the last line; the workload must have ended well.
fn loadtest(args: &[&str]) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_loadtest")).args(args).arg("--json").output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{args:?}: {said}\n{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_str(said.lines().last().unwrap()).unwrap()
}

fn on_every_database(check: impl Fn(&str)) {
    for database in ["sqlite", "postgres", "mariadb"] {
        check(database);
    }
}

#[test]
fn limit_tells_how_well_permits_are_used() {
    on_every_database(|database| {
        let report = loadtest(&["limit", "--database", database, "--tasks", "24", "--ms", "20"]);
        for key in ["utilisation", "bare_utilisation", "of_bare", "wall_s"] {
            assert!(report[key].as_f64().is_some_and(|number| number > 0.0), "{key}: {report}");
        }
        assert_eq!(report["overruns"], 0);
        assert!(report["max_in_flight"].as_u64().is_some_and(|most| (1..=4).contains(&most)), "{report}");
        assert_eq!(report["transactions_per_task"].is_number(), database == "postgres", "{report}");
    });
}

#[test]
fn pickup_and_drain_tell_what_they_measured() {
    on_every_database(|database| {
        let report = loadtest(&["pickup", "--database", database, "--tasks", "2"]);
        assert!(report["from_commit"]["p50_ms"].is_number(), "{report}");
        let report =
            loadtest(&["drain", "--database", database, "--tasks", "300", "--slots", "8", "--cap", "12"]);
        assert_eq!(report["overruns"], 0);
        assert!(report["peak"].as_i64().is_some_and(|peak| (1..=12).contains(&peak)), "{report}");
    });
}

#[test]
fn killed_holders_never_cost_the_downstream_more_than_the_cap() {
    on_every_database(|database| {
        let report = loadtest(&["kill", "--database", database, "--seconds", "8", "--tasks", "8"]);
        assert_eq!((&report["overruns"], &report["lost"]), (&0.into(), &0.into()), "{report}");
        assert_eq!(report["called_twice"], 2, "{report}");
    });
}
