//! Configuration as the binary takes it: every problem at once, each with its place.

use std::fmt::Write;

use serde_json::Value;

use super::Bench;

#[test]
fn every_problem_is_listed_with_its_place_and_nothing_is_started() {
    let bench = Bench::new();
    bench.write(
        "permitq.toml",
        "[lease]\nheartbeat = \"1m\"\nbeat = \"1s\"\n\
         [downstream.default]\nurl = \"http://127.0.0.1:9/call\"\ncall_timeout = \"0s\"\n",
    );
    let output = bench.command(&["run"]).env("PERMITQ_LEASE__RECLAIM", "5M").output().unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{err}");
    for said in [
        "permitq.toml: lease.beat",
        "under four beats",
        "downstream.default.call_timeout",
        "PERMITQ_LEASE__RECLAIM: lease.reclaim: 5M means 5 months; write 5m for minutes",
    ] {
        assert!(err.contains(said), "no {said:?} in {err}");
    }
    assert!(!bench.path("permitq.db").exists());
}

#[test]
fn a_consumer_without_a_downstream_says_what_is_missing() {
    let bench = Bench::new();
    bench.run(&["run"]).fails(2, &["[downstream.default]"]);
    bench.write(
        "permitq.toml",
        "[downstream.default]\nurl = \"http://127.0.0.1:9/call\"\nsemaphore = \"ocr\"\n",
    );
    bench.run(&["run"]).fails(1, &["no semaphore \"ocr\"", "permitq permits add ocr MAX"]);
}

#[test]
fn a_named_file_must_be_there() {
    let bench = Bench::new();
    bench.run(&["tasks", "--config", "other.toml"]).fails(2, &["other.toml"]);
}

#[test]
fn a_port_in_use_is_said() {
    let bench = Bench::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    bench.run(&["stub", "--listen", &address]).fails(1, &[&address, "Address already in use", "--listen"]);
}

/// Every key, and two values that are not its default.
const KEYS: [(&str, &str, &str); 44] = [
    ("database.url", "sqlite://a.db", "sqlite://b.db"),
    ("database.statement_timeout", "9s", "11s"),
    ("database.clock_slack", "4s", "6s"),
    ("consumer.slots", "7", "9"),
    ("consumer.poll", "2s", "500ms"),
    ("consumer.name", "ann", "bob"),
    ("consumer.ageing", "5m", "6m"),
    ("consumer.roles", "consume", "reclaim"),
    ("lease.duration", "3m", "4m"),
    ("lease.heartbeat", "14s", "16s"),
    ("lease.reclaim", "13s", "17s"),
    ("downstream.default.url", "https://127.0.0.1:1/a", "https://127.0.0.1:2/b"),
    ("downstream.default.probe", "http://127.0.0.1:1/a/{key}", "http://127.0.0.1:2/b/{key}"),
    ("downstream.default.semaphore", "one", "two"),
    ("downstream.default.method", "PUT", "PATCH"),
    ("downstream.default.connect_timeout", "4s", "6s"),
    ("downstream.default.read_timeout", "1m", "2m"),
    ("downstream.default.call_timeout", "7m", "9m"),
    ("downstream.default.tcp_user_timeout", "50s", "45s"),
    ("downstream.default.start_window", "9s", "11s"),
    ("downstream.default.stops_on_disconnect", "true", "false"),
    ("downstream.default.unclear_statuses", "202,504", "502"),
    ("downstream.default.down_statuses", "503,529", "529"),
    ("downstream.default.retry_statuses", "409", "404"),
    ("downstream.default.fail_statuses", "501", "505"),
    ("downstream.default.max_attempts", "8", "9"),
    ("downstream.default.backoff", "3s", "2s"),
    ("downstream.default.backoff_cap", "8m", "7m"),
    ("downstream.default.on_abandon", "fail", "retry_after_cooling"),
    ("downstream.default.ca_file", "a.pem", "b.pem"),
    ("downstream.default.headers.team", "red", "blue"),
    ("downstream.report.url", "http://127.0.0.1:3/c", "http://127.0.0.1:4/d"),
    ("downstream.report.call_timeout", "6m", "5m"),
    ("retry.max_attempts", "5", "6"),
    ("retry.backoff", "4s", "6s"),
    ("retry.backoff_cap", "9m", "11m"),
    ("shutdown.grace", "9m", "11m"),
    ("retention.succeeded", "6d", "8d"),
    ("retention.failed", "29d", "31d"),
    ("retention.cancelled", "never", "1d"),
    ("retention.per_job", "5", "6"),
    ("admin.listen", "127.0.0.1:8081", "127.0.0.1:8082"),
    ("log.format", "json", "human"),
    ("downstream.report.semaphore", "three", "four"),
];

/// In the file, and over it in the environment: what is given is what is in force.
#[test]
fn every_key_can_be_set_in_every_way() {
    let bench = Bench::new();
    let mut file = String::new();
    for (key, value, _) in KEYS {
        let _written = writeln!(file, "{key} = \"{value}\"");
    }
    bench.write("permitq.toml", &file);
    let by_env = KEYS.map(|(key, _, value)| {
        let name = key.replace('.', "__").to_uppercase();
        (format!("PERMITQ_{name}"), value)
    });
    for env in [false, true] {
        let mut command = bench.command(&["config", "show", "--json"]);
        if env {
            command.envs(by_env.iter().map(|(name, value)| (name, value)));
        }
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let shown: Value = serde_json::from_slice(&output.stdout).unwrap();
        for setting in shown["settings"].as_array().unwrap() {
            let key = setting["key"].as_str().unwrap();
            let known = KEYS.iter().zip(&by_env).find(|((name, ..), _)| *name == key);
            // The second downstream shares the first one's keys.
            let Some(((_, file, _), (name, env_value))) = known else {
                assert!(key.starts_with("downstream.report."), "no value is tried for {key}");
                continue;
            };
            let expected = if env { (*env_value, name.as_str()) } else { (*file, "permitq.toml") };
            // What may hold a secret is masked.
            if !key.contains(".headers.") {
                assert_eq!(setting["value"], expected.0, "{key}");
            }
            assert_eq!(setting["origin"], expected.1, "{key}");
        }
        let count = KEYS.iter().filter(|(key, ..)| {
            shown["settings"].as_array().unwrap().iter().any(|setting| setting["key"] == *key)
        });
        assert_eq!(count.count(), KEYS.len(), "{shown}");
    }
}
