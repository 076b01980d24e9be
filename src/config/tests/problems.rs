//! What people get wrong, and what they are told.

use std::path::PathBuf;

use super::super::*;
use super::{Given, env, file};

/// The text has one problem, which is told with these words and without any secret.
fn refused(text: &str, words: &str) {
    let problems = file(text).unwrap_err();
    assert_eq!(problems.len(), 1, "{text}\n{problems:#?}");
    assert!(problems[0].contains(words), "{text}\n{}\n{words}", problems[0]);
    assert!(problems[0].starts_with("permitq.toml: ") || problems[0].starts_with("configuration: "));
    assert!(!problems[0].contains("hunter2"), "{}", problems[0]);
}

#[test]
fn each_problem_names_its_place_its_key_and_a_value_that_would_do() {
    for (text, words) in [
        (
            "[lease]\ndurration = \"2m\"",
            "permitq.toml: lease.durration: unknown key (the keys of lease are duration, heartbeat, reclaim)",
        ),
        (
            "[leese]\nduration = \"2m\"",
            "permitq.toml: leese: unknown key (the sections are database, consumer,",
        ),
        ("lease = 5", "permitq.toml: lease: holds a value, but is a table of keys"),
        (
            "[lease]\nduration = { a = 1 }",
            "permitq.toml: lease.duration: holds a table, but is a single value",
        ),
        ("[consumer]\nslots = [1]", "consumer.slots: holds a list, but is a single value (4 would do)"),
        ("[lease]\nduration = 90", "lease.duration: 90 has no unit; write 90s for seconds (2m would do)"),
        ("[lease]\nduration = 0", "lease.duration: a lease of 0s is under four beats of 15s"),
        ("[lease]\nduration = \"59s\"", "a few late beats would lose it (lease.duration = \"1m\" would do)"),
        (
            "[lease]\nheartbeat = \"1m\"",
            "permitq.toml: lease.heartbeat: a lease of 2m is under four beats of 1m",
        ),
        ("[lease]\nheartbeat = \"1s\"\nduration = \"9s\"", "shorter than the statement timeout of 10s"),
        ("[lease]\nheartbeat = \"0s\"", "lease.heartbeat: 0s is too short; at least 1ms (15s would do)"),
        ("[lease]\nreclaim = 0", "lease.reclaim: 0s is too short"),
        ("[consumer]\nslots = 0", "consumer.slots: 0 is not from 1 to 10000 (4 would do"),
        ("[consumer]\nslots = 10001", "consumer.slots: 10001 is not from 1 to 10000"),
        ("[consumer]\nslots = -1", "consumer.slots: \"-1\" is no whole number"),
        ("[consumer]\npoll = \"0s\"", "consumer.poll: 0s is too short"),
        ("[consumer]\nname = \"\"", "consumer.name: must have 1 to 100 characters"),
        ("[consumer]\nroles = []", "consumer.roles: names no role"),
        ("[consumer]\nroles = [\"cook\"]", "consumer.roles: \"cook\" is none of consume, schedule, reclaim"),
        ("[database]\nurl = []", "database.url: no database is named"),
        (
            "[database]\nurl = \"mongodb://u:hunter2@h\"",
            "database.url: not the URL of a database that is supported",
        ),
        ("[database]\nurl = \"env:NO_URL\"", "database.url: environment variable NO_URL is not set"),
        ("[retry]\nbackoff = \"11m\"", "retry.backoff: a backoff of 11m is above its cap of 10m"),
        ("[retry]\nbackoff_cap = \"1s\"", "retry.backoff_cap: a backoff of 5s is above its cap of 1s"),
        ("[retry]\nmax_attempts = 0", "retry.max_attempts: 0 is not from 1 to 1000"),
        (
            "[admin]\nlisten = \"localhost:8080\"",
            "admin.listen: \"localhost:8080\" is no address with a port; a host name will not do (127.0.0.1:8080 would do)",
        ),
        ("[log]\nformat = \"xml\"", "log.format: \"xml\" is none of human, json (human would do)"),
        (
            "[retention]\nfailed = \"1y\"",
            "retention.failed: \"1y\" is no fixed length; write days, such as 30d",
        ),
        (
            "[retention]\nper_job = 0",
            "retention.per_job: 0 keeps not even the newest run of a job (10000 would do)",
        ),
        (
            "[downstream.Report]\nurl = \"http://h\"",
            "downstream.Report: the name of a downstream has 1 to 100 of a-z, 0-9, _ and - ([downstream.report] would do)",
        ),
        (
            "[downstream.default]\nmethod = \"PUT\"",
            "permitq.toml: downstream.default.url: is missing (downstream.default.url = \"http://127.0.0.1:9000/call\" would do)",
        ),
        ("[downstream.default]", "downstream.default.url: is missing"),
        (
            "[downstream.default]\nurl = \"ftp://h\"",
            "downstream.default.url: the URL must begin with http:// or https://",
        ),
        ("[downstream.default]\nurl = \"http://u:hunter2@h\"", "put them into headers"),
    ] {
        refused(text, words);
    }
}

#[test]
fn a_downstreams_problems_do_so_too() {
    for (line, words) in [
        ("read_timeout = \"9m\"", "downstream.default.read_timeout: read timeout above call timeout"),
        (
            "call_timeout = \"none\"",
            "downstream.default.call_timeout: \"none\" is no duration: nothing here may be without a bound (every call needs a bound, because a call that was given up holds its permit",
        ),
        ("call_timeout = \"0s\"", "downstream.default.call_timeout: 0s is too short"),
        ("call_timeout = \"8d\"", "downstream.default.call_timeout: 8d is above 7 days"),
        ("start_window = 0", "downstream.default.start_window: 0s is too short"),
        ("semaphore = \"\"", "downstream.default.semaphore: must have 1 to 100"),
        ("method = \"post\"", "downstream.default.method: \"post\" is none of GET, POST"),
        ("unclear_statuses = [99, 202]", "downstream.default.unclear_statuses: 99 is no HTTP status"),
        ("unclear_statuses = [\"x\"]", "\"x\" is no HTTP status (202,408,"),
        (
            "on_abandon = \"drop\"",
            "on_abandon: \"drop\" is none of retry, retry_after_cooling, fail (retry would do)",
        ),
        ("stops_on_disconnect = 2", "stops_on_disconnect: \"2\" is no true or false (false would do)"),
        (
            "headers = { A = \"env:NO_TOKEN\" }",
            "downstream.default.headers.a: environment variable NO_TOKEN is not set",
        ),
        ("headers = { A = \"file:/no/token\" }", "headers.a: file \"/no/token\" cannot be read"),
        ("headers = { \"A B\" = \"x\" }", "no name of an HTTP header"),
        (
            "headers = { A = \"hunter2\\n\" }",
            "headers.a: the value holds a character that no header may carry",
        ),
        ("headers = { A = \"x\", a = \"y\" }", "the header is given twice"),
    ] {
        refused(&format!("[downstream.default]\nurl = \"http://h\"\n{line}"), words);
    }
}

#[test]
fn the_environments_problems_name_the_variable() {
    for (name, value, words) in [
        (
            "PERMITQ_LEASE__DURATION",
            "5M",
            "PERMITQ_LEASE__DURATION: lease.duration: 5M means 5 months; write 5m for minutes",
        ),
        ("PERMITQ_LEASE_DURATION", "5m", "joined by two underscores, as in PERMITQ_LEASE__DURATION"),
        ("PERMITQ_LEASE__LENGTH", "5m", "PERMITQ_LEASE__LENGTH: lease.length: unknown key"),
        ("PERMITQ_LEASE", "5m", "PERMITQ_LEASE: lease: holds a value, but is a table of keys"),
        ("DATABASE_URL", "redis://h", "DATABASE_URL: database.url: not the URL"),
    ] {
        let problems = env(&[(name, value)]).unwrap_err();
        assert_eq!(problems.len(), 1, "{problems:#?}");
        assert!(problems[0].contains(words), "{}", problems[0]);
    }
}

#[test]
fn every_problem_is_listed_at_once() {
    let toml = r#"
        [lease]
        duration = "10s"
        lenght = 1
        width = 2
        [retry]
        backoff = "5M"
        [downstream.default]
        url = "nowhere"
        read_timeout = "soon"
        [downstream.report]
        url = "http://h"
        read_timeout = "9m"
        start_window = "0s"
        [colour]
        red = 1
    "#;
    let env = [("PERMITQ_CONSUMER__SLOTS", "many"), ("PERMITQ_SHUTDOWN__GRACE", "none")];
    let problems = Given { file: toml, env: &env, ..Given::default() }.load().unwrap_err();
    let keys: Vec<_> = problems.iter().map(|line| line.split(": ").nth(1).unwrap()).collect();
    assert_eq!(
        keys,
        [
            "consumer.slots",
            "lease.lenght",
            "lease.width",
            "downstream.default.url",
            "downstream.default.read_timeout",
            "retry.backoff",
            "shutdown.grace",
            "colour",
            "lease.duration",
            "downstream.report.start_window",
            "downstream.report.read_timeout",
        ],
        "{problems:#?}"
    );
}

#[test]
fn a_value_that_could_not_be_read_has_no_second_problem() {
    let problems = file("[lease]\nheartbeat = \"1M\"\nduration = \"30s\"").unwrap_err();
    assert_eq!(problems.len(), 1, "{problems:#?}");
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let missing = |sources: Sources| Config::load(&sources).unwrap_err().to_string();
    let path = PathBuf::from("/no/such/permitq.toml");
    let named = missing(Sources { file: Some(path.clone()), ..Sources::default() });
    assert!(named.starts_with("/no/such/permitq.toml: cannot be read: "), "{named}");
    let env = BTreeMap::from([("PERMITQ_CONFIG".to_owned(), "/no/such/other.toml".to_owned())]);
    let by_env = missing(Sources { env: env.clone(), ..Sources::default() });
    assert!(by_env.starts_with("/no/such/other.toml: "), "{by_env}");
    assert!(
        missing(Sources { env, file: Some(path.clone()), ..Sources::default() }).contains("permitq.toml")
    );
    assert!(Config::load(&Sources { default_file: path, ..Sources::default() }).is_ok());
}

#[test]
fn a_syntax_error_names_its_line_and_shows_no_text() {
    let problems = file("[lease]\n\nduration = hunter2\n").unwrap_err();
    assert_eq!(problems.len(), 1);
    assert!(
        problems[0].starts_with("permitq.toml: TOML parse error at line 3, column 12: "),
        "{}",
        problems[0]
    );
    assert!(!problems[0].contains("hunter2"), "{}", problems[0]);
    let twice = file("[lease]\nreclaim = \"1s\"\nreclaim = \"2s\"\n").unwrap_err();
    assert!(twice[0].contains("line 3") && twice[0].contains("duplicate key"), "{}", twice[0]);
}
