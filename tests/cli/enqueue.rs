//! One task from options.

use permitq::model::PAYLOAD_MAX;
use serde_json::json;

use super::{Bench, Ran};

#[test]
fn the_id_and_nothing_else_goes_to_standard_output() {
    let bench = Bench::new();
    assert_eq!(bench.run(&["enqueue", "--kind", "report"]).ok().out, "1\n");
    assert_eq!(bench.json(&["enqueue", "--kind", "report"]), json!({"id": 2, "created": true}));
}

#[test]
fn the_same_key_again_finds_the_first_task() {
    let bench = Bench::new();
    bench.run(&["enqueue", "--kind", "report", "--key", "K"]).ok();
    let again = bench.run(&["enqueue", "--kind", "report", "--key", "K"]).ok();
    assert_eq!(again.says(&["already there"]).out, "1\n");
    let again = bench.json(&["enqueue", "--kind", "report", "--key", "K"]);
    assert_eq!(again, json!({"id": 1, "created": false}));
}

#[test]
fn every_option_reaches_the_table() {
    let bench = Bench::migrated();
    bench.run(&["permits", "add", "mail", "2"]).ok();
    let args = "enqueue --kind send --key K --payload {\"b\":1,\"a\":2} --priority -3 --at 2030-01-01T01:00:00+01:00 \
                --timeout 90s --max-attempts 5 --on-abandon fail --semaphore mail";
    bench.run(&args.split_whitespace().collect::<Vec<_>>()).ok();
    let task = bench.json(&["task", "show", "1"]);
    for (field, value) in [
        ("kind", json!("send")),
        ("biz_key", json!("K")),
        ("payload", json!({"a": 2, "b": 1})),
        ("priority", json!(-3)),
        ("state", json!("scheduled")),
        ("run_at", json!("2030-01-01T00:00:00Z")),
        ("timeout", json!(90.0)),
        ("max_attempts", json!(5)),
        ("on_abandon", json!("fail")),
        ("semaphore", json!("mail")),
        ("source", json!("cli")),
    ] {
        assert_eq!(task[field], value, "{field}");
    }
    bench.run(&["enqueue", "--kind", "send", "--delay", "5m"]).ok();
    bench.run(&["task", "show", "2"]).ok().shows(&["scheduled", "due in 4 m"]);
}

#[test]
fn the_payload_may_come_from_a_file_or_from_standard_input() {
    let bench = Bench::new();
    bench.write("p.json", "{\"n\": 12345678901234567890123, \"a\": 1}\n");
    bench.run(&["enqueue", "--kind", "a", "--payload", "@p.json"]).ok();
    bench.feed(&["enqueue", "--kind", "a", "--payload", "-"], "[1, \"😀\"]\n").ok();
    // The text itself, not a value that went through a parser.
    let shown = bench.run(&["task", "show", "1", "--json"]).ok();
    assert!(shown.out.contains(r#""payload":{"n": 12345678901234567890123, "a": 1}"#), "{}", shown.out);
    assert_eq!(bench.json(&["task", "show", "2"])["payload"], json!([1, "😀"]));
}

#[test]
fn bad_input_says_what_and_where_and_creates_nothing() {
    let bench = Bench::new();
    let long_key = "ö".repeat(300);
    bench.write("bad.json", "{\"a\": 1,}");
    bench.write("empty.json", "\n");
    bench.write("latin1.json", "");
    std::fs::write(bench.path("latin1.json"), b"\"\xe4\"").unwrap();
    bench.write("large.json", &format!("\"{}\"", "x".repeat(PAYLOAD_MAX)));
    for (args, words) in [
        (&["--payload", "{a}"][..], &["--payload: not JSON", "quote it for the shell"][..]),
        (&["--payload", ""], &["the payload is empty; leave out --payload"]),
        (&["--payload", "@bad.json"], &["bad.json: not JSON", "line 1 column 9"]),
        (&["--payload", "@empty.json"], &["empty.json: the payload is empty"]),
        (&["--payload", "@latin1.json"], &["cannot read latin1.json", "UTF-8"]),
        (&["--payload", "@large.json"], &["large.json: the payload is over the limit of 4194304 bytes"]),
        (&["--payload", "@none.json"], &["cannot read none.json"]),
        (&["--key", &long_key], &["--key: business key of 300 characters", "1 to 255"]),
        (&["--key", ""], &["--key: business key of 0 characters"]),
        (&["--key", "a\nb"], &["none of them control characters"]),
        (&["--at", "tomorrow"], &["--at", "2026-12-01T09:00:00Z"]),
        (&["--at", "2030-01-01T00:00:00"], &["with its offset"]),
        (&["--at", "2030-01-01T00:00:00Z", "--delay", "5m"], &["cannot be used with"]),
        (&["--delay", "5M"], &["5M means 5 months; write 5m"]),
        (&["--delay", "90"], &["write 90s"]),
        (&["--timeout", "0s"], &["--timeout: timeout must be more than 0"]),
        (&["--timeout", "8d"], &["at most 7 days"]),
        (&["--max-attempts", "0"], &["--max-attempts: max_attempts must be from 1 to 1000"]),
        (&["--max-attempts", "-1"], &["-1"]),
        (&["--priority", "99999999999"], &["--priority"]),
        (&["--on-abandon", "give-up"], &["retry_after_cooling"]),
        (&["--semaphore", ""], &["--semaphore: semaphore \"\" must have 1 to 100"]),
        (&["--batch", "-"], &["cannot be used with"]),
    ] {
        bench.run(&[&["enqueue", "--kind", "a"], args].concat()).fails(2, words);
    }
    bench.run(&["enqueue"]).fails(2, &["--kind <KIND>"]);
    bench.run(&["enqueue", "--kind", ""]).fails(2, &["--kind: kind \"\" must have 1 to 100 characters"]);
    assert!(!bench.path("permitq.db").exists());
}

#[test]
fn an_unknown_semaphore_is_told_with_those_there_are() {
    let bench = Bench::new();
    bench
        .run(&["enqueue", "--kind", "a", "--semaphore", "mail"])
        .fails(1, &["unknown semaphore \"mail\"; there are: default", "permitq permits add mail N"]);
    assert_eq!(bench.json(&["tasks"])["tasks"], json!([]));
}

/// Also on a file that neither of them has seen before.
#[test]
fn many_enqueues_at_once_of_the_same_key_make_one_task() {
    let bench = Bench::new();
    let args = ["enqueue", "--kind", "a", "--key", "K", "--json"];
    let started: Vec<_> = (0..8).map(|_| bench.start(&args)).collect();
    let answers: Vec<_> = started.into_iter().map(|child| Ran::of(child).ok().value()).collect();
    assert!(answers.iter().all(|answer| answer["id"] == answers[0]["id"]), "{answers:?}");
    assert_eq!(answers.iter().filter(|answer| answer["created"] == true).count(), 1, "{answers:?}");
    assert_eq!(bench.json(&["tasks"])["tasks"].as_array().unwrap().len(), 1);
}
