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
        // Each call is claimed and ended by transactions that write.
        assert!(
            report["transactions_per_task"].as_f64().is_some_and(|n| (0.9..20.0).contains(&n)),
            "{report}"
        );
        assert_eq!((&report["database"], &report["targets"]), (&database.into(), &Value::Array(Vec::new())));
    });
}

#[test]
fn a_target_is_told_whether_or_not_it_is_reached() {
    let page = tempfile::NamedTempFile::new().unwrap();
    let file = page.path().to_str().unwrap();
    let report = loadtest(&["limit", "--database", "sqlite", "--tasks", "12", "--ms", "50", "--html", file]);
    let targets = report["targets"].as_array().unwrap();
    assert_eq!(targets.len(), 5, "{report}");
    for target in targets {
        let (value, bound) = (target["value"].as_f64().unwrap(), target["bound"].as_f64().unwrap());
        let ok = if target["sense"] == "≤" { value <= bound } else { value >= bound };
        assert_eq!(target["ok"], ok, "{report}");
    }
    let page = std::fs::read_to_string(page).unwrap();
    assert!(
        page.contains("Calls in flight") && page.contains("From a free permit to the next call"),
        "{page}"
    );
}

#[test]
fn soak_tells_what_grows_and_that_nothing_was_lost() {
    on_every_database(|database| {
        let page = tempfile::NamedTempFile::new().unwrap();
        let file = page.path().to_str().unwrap();
        let report = loadtest(&["soak", "--database", database, "--minutes", "0.1", "--html", file]);
        assert_eq!((&report["overruns"], &report["lost"]), (&0.into(), &0.into()), "{report}");
        let number = |key: &str| report[key].as_i64().unwrap();
        // Some fail once and are repeated, some fail for good.
        assert!(number("failed") > 0 && number("calls") > number("succeeded") + number("failed"), "{report}");
        assert!(report["flat"].is_boolean(), "{report}");
        let samples = report["samples"].as_array().unwrap();
        let seen = |key: &str| samples.iter().any(|s| s.pointer(key).and_then(Value::as_f64).unwrap() > 0.0);
        let server = database != "sqlite";
        for (key, there) in [
            ("/rss_mib", true),
            ("/files", true),
            ("/kib_per_task", true),
            ("/wait/p50_ms", true),
            ("/sessions", server),
            ("/log_kib_per_task", server),
        ] {
            assert_eq!(seen(key), there, "{key}: {report}");
        }
        assert!(std::fs::read_to_string(page).unwrap().contains("Tasks ended"));
    });
}

#[test]
fn burst_tells_over_how_many_processes_the_permits_go() {
    on_every_database(|database| {
        let report = loadtest(&["burst", "--database", database, "--bursts", "2"]);
        assert!(report["most_on_one"].as_i64().is_some_and(|most| (1..=4).contains(&most)), "{report}");
        let bursts = report["bursts_by_most"].as_array().unwrap();
        assert_eq!(bursts.iter().filter_map(Value::as_i64).sum::<i64>(), 2, "{report}");
    });
}

#[test]
fn idle_tells_what_nothing_costs() {
    // It waits for most of its time.
    std::thread::scope(|scope| {
        on_every_database(|database| {
            let database = database.to_owned();
            scope.spawn(move || {
                let report = loadtest(&["idle", "--database", &database, "--seconds", "2"]);
                assert!(report["transactions_per_s"].as_f64().is_some_and(|n| n >= 0.0), "{report}");
                assert_eq!(report["targets"].as_array().unwrap().len(), 3, "{report}");
                assert_eq!(report["connections"].as_f64() > Some(0.0), database != "sqlite", "{report}");
            });
        });
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
        for key in ["bare_per_s", "without_log_per_s", "without_cap_per_s", "transactions_per_task"] {
            assert!(report[key].as_f64().is_some_and(|number| number > 0.0), "{key}: {report}");
        }
        assert!(report["peak"].as_i64().is_some_and(|peak| (1..=12).contains(&peak)), "{report}");
    });
}

#[test]
fn delayed_tasks_are_called_once_and_not_early() {
    let delayed = |database: &str, spread: &str| {
        let args = ["delayed", "--database", database, "--tasks", "300", "--spread", spread, "--slots", "50"];
        let report = loadtest(&args);
        assert_eq!(report["errors"], 0, "{report}");
        let late = &report["lateness"];
        assert!(late["p50_ms"].as_f64() <= late["p99_ms"].as_f64(), "{report}");
        let bars = report["histogram"].as_array().unwrap();
        assert_eq!(bars.iter().filter_map(|bar| bar["tasks"].as_i64()).sum::<i64>(), 300, "{report}");
        assert_eq!(report["due_per_s"].is_null(), spread == "0");
    };
    on_every_database(|database| delayed(database, "1"));
    delayed("sqlite", "0");
}

#[test]
fn killed_holders_never_cost_the_downstream_more_than_the_cap() {
    on_every_database(|database| {
        let report = loadtest(&["kill", "--database", database, "--seconds", "8", "--tasks", "8"]);
        assert_eq!((&report["overruns"], &report["lost"]), (&0.into(), &0.into()), "{report}");
        assert_eq!(report["called_twice"], 2, "{report}");
    });
}
