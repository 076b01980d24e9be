//! Configuration as the binary takes it: every problem at once, each with its place.

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
