//! A file of tasks: all checked before the first is written.

use std::fmt::Write;

use serde_json::json;

use super::Bench;

#[test]
fn a_file_is_enqueued_and_may_be_repeated() {
    let bench = Bench::migrated();
    bench.run(&["permits", "add", "mail", "2"]).ok();
    bench.write(
        "tasks.jsonl",
        r#"{"kind": "a", "biz_key": "1", "payload": {"b": 1, "a": null}, "priority": 5, "delay": 90, "timeout": "5m"}

{"kind": "b", "biz_key": "2", "run_at": "2030-01-01T00:00:00Z", "max_attempts": 2, "semaphore": "mail"}
{"kind": "c", "biz_key": "1", "on_abandon": "fail"}
{"kind": "d", "biz_key": "4", "payload": null}"#,
    );
    let ran = bench.run(&["enqueue", "--batch", "tasks.jsonl"]).ok();
    assert_eq!(ran.out, "3 created, 1 already there\n");
    let again = bench.json(&["enqueue", "--batch", "tasks.jsonl"]);
    assert_eq!(again, json!({"created": 0, "existing": 4, "failed": 0}));

    let first = bench.json(&["task", "show", "1"]);
    assert_eq!(first["payload"], json!({"a": null, "b": 1}));
    assert_eq!((&first["timeout"], &first["state"]), (&json!(300.0), &json!("scheduled")));
    let key = |key: &str| bench.json(&["tasks", "--key", key])["tasks"][0].clone();
    assert_eq!(key("2")["run_at"], "2030-01-01T00:00:00Z");
    assert_eq!(key("2")["semaphore"], "mail");
    let id = key("4")["id"].to_string();
    assert_eq!(bench.json(&["task", "show", &id])["payload"], json!(null));
}

#[test]
fn more_than_one_transaction_and_from_standard_input() {
    let bench = Bench::new();
    let mut lines = String::new();
    for n in 0..1_203 {
        writeln!(lines, r#"{{"kind": "a", "payload": {n}}}"#).unwrap();
    }
    let ran = bench.feed(&["enqueue", "--batch", "-", "--json"], &lines).ok();
    assert_eq!(ran.value(), json!({"created": 1203, "existing": 0, "failed": 0}));
    assert_eq!(ran.err, "", "no progress bar where nobody watches");
    assert_eq!(bench.json(&["task", "show", "1203"])["payload"], 1202);
}

#[test]
fn one_bad_line_anywhere_and_nothing_is_written() {
    let bench = Bench::new();
    let good = "{\"kind\": \"a\"}\n".repeat(700);
    bench.write(
        "tasks.jsonl",
        &format!("{good}{{\"kind\": \"a\", \"prio\": 1}}\n\n{{\"kind\": \"\"}}\nnull\n"),
    );
    bench.run(&["enqueue", "--batch", "tasks.jsonl"]).fails(
        2,
        &[
            "3 bad lines, nothing was enqueued",
            "tasks.jsonl:701: unknown field `prio`",
            "tasks.jsonl:703: kind \"\" must have",
            "tasks.jsonl:704: invalid type: null",
        ],
    );
    assert!(!bench.path("permitq.db").exists());
}

#[test]
fn bad_lines_are_listed_up_to_twenty() {
    let bench = Bench::new();
    let ran = bench.feed(&["enqueue", "--batch", "-", "--json"], &"{}\n".repeat(33));
    let ran =
        ran.fails(2, &["33 bad lines", "<stdin>:1: missing field `kind`", "<stdin>:20: ", "and 13 more"]);
    assert!(!ran.err.contains("<stdin>:21:"), "{ran:?}");
}

#[test]
fn an_unknown_semaphore_is_a_bad_line() {
    let bench = Bench::migrated();
    let lines = "{\"kind\": \"a\"}\n{\"kind\": \"a\", \"semaphore\": \"mail\"}\n";
    bench
        .feed(&["enqueue", "--batch", "-"], lines)
        .fails(2, &["1 bad line, nothing was enqueued", "<stdin>:2: unknown semaphore \"mail\""]);
    assert_eq!(bench.json(&["tasks"])["tasks"], json!([]));
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let bench = Bench::new();
    bench.run(&["enqueue", "--batch", "none.jsonl"]).fails(2, &["--batch: cannot read none.jsonl"]);
    bench.run(&["enqueue", "--batch", "."]).fails(2, &["cannot read .:"]);
    std::fs::write(bench.path("latin1.jsonl"), b"{\"kind\": \"\xe4\"}\n").unwrap();
    bench.run(&["enqueue", "--batch", "latin1.jsonl"]).fails(2, &["latin1.jsonl:1: not UTF-8"]);
    assert_eq!(bench.feed(&["enqueue", "--batch", "-"], "\n\n").ok().out, "0 created, 0 already there\n");
}

/// What the checks let through, a trigger of the database's owner may still refuse.
#[tokio::test]
async fn a_refusal_halfway_names_the_line_and_says_what_is_in() {
    let bench = Bench::migrated();
    bench
        .sql(
            "CREATE TRIGGER no_reports BEFORE INSERT ON permitq_task WHEN NEW.kind = 'report' BEGIN \
             SELECT RAISE(ABORT, 'reports are closed'); END",
        )
        .await;
    let mut lines = "\n".to_owned();
    for n in 0..900 {
        let kind = if n == 730 { "report" } else { "a" };
        writeln!(lines, r#"{{"kind": "{kind}", "biz_key": "{n}"}}"#).unwrap();
    }
    bench.write("tasks.jsonl", &lines);
    let ran = bench.run(&["enqueue", "--batch", "tasks.jsonl", "--json"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert_eq!(ran.value(), json!({"created": 730, "existing": 0, "failed": 170}));
    ran.says(&[
        "tasks.jsonl:732: enqueue: refused: reports are closed",
        "730 lines are committed, up to line 731",
        "tail -n +732 tasks.jsonl | permitq enqueue --batch -",
    ]);
    assert_eq!(bench.store().states(None).await.unwrap()[0].1, 730);

    bench.sql("DROP TRIGGER no_reports").await;
    let again = bench.json(&["enqueue", "--batch", "tasks.jsonl"]);
    assert_eq!(again, json!({"created": 170, "existing": 730, "failed": 0}));
}
