//! Lists, one task, retry and cancel.

use permitq::model::{Outcome, Retry, Why};
use permitq::store::Exchange;
use serde_json::{Value, json};

use super::Bench;
use crate::support::late;

#[test]
fn a_list_can_be_filtered_and_paged() {
    let bench = Bench::migrated();
    for (kind, key) in [("a", "1"), ("a", "2"), ("b", "3")] {
        bench.run(&["enqueue", "--kind", kind, "--key", key]).ok();
    }
    bench.run(&["enqueue", "--kind", "b", "--delay", "1h"]).ok();
    let ids = |args: &[&str]| -> Vec<i64> {
        let list = bench.json(&[&["tasks"], args].concat());
        list["tasks"].as_array().unwrap().iter().map(|task| task["id"].as_i64().unwrap()).collect()
    };
    assert_eq!(ids(&[]), [4, 3, 2, 1]);
    assert_eq!(ids(&["--kind", "a"]), [2, 1]);
    assert_eq!(ids(&["--key", "3"]), [3]);
    assert_eq!(ids(&["--state", "scheduled"]), [4]);
    assert_eq!(ids(&["--semaphore", "default", "--kind", "b"]), [4, 3]);
    assert_eq!(ids(&["--semaphore", "mail"]), [0; 0]);
    assert_eq!(ids(&["--limit", "2", "--below", "4"]), [3, 2]);
    assert_eq!(bench.json(&["tasks", "--limit", "2"])["next"], 3);
    assert_eq!(bench.json(&["tasks", "--limit", "4"])["next"], json!(null), "no empty last page");

    bench
        .run(&["tasks", "--limit", "3"])
        .ok()
        .shows(&["id  kind  key  state", "4   b          scheduled  in 59 m", "3   b     3    pending"])
        .says(&["add --below 2 for the next page"]);
    let none = bench.run(&["tasks", "--kind", "none"]).ok();
    assert_eq!(none.out, "");
    none.says(&["no such task"]);
}

#[test]
fn a_task_in_a_list_has_the_fields_that_scripts_rely_on() {
    let bench = Bench::new();
    bench.run(&["enqueue", "--kind", "a", "--key", "K", "--timeout", "1.5s"]).ok();
    let task = bench.json(&["tasks"])["tasks"][0].clone();
    let Value::Object(fields) = &task else { panic!("an object") };
    for field in [
        "id",
        "kind",
        "biz_key",
        "state",
        "priority",
        "run_at",
        "attempts",
        "max_attempts",
        "claim_no",
        "consumer",
    ] {
        assert!(fields.contains_key(field), "{field}");
    }
    assert_eq!(task["timeout"], 1.5);
    assert_eq!(task["created_at"].as_str().unwrap().get(10..11), Some("T"));
}

#[test]
fn a_waiting_task_says_why_it_waits() {
    let bench = Bench::migrated();
    bench.run(&["enqueue", "--kind", "a"]).ok();
    let shown = bench.run(&["task", "show", "1"]).ok();
    shown.shows(&["note", "no consumer is alive; start one with `permitq run`"]);
    bench.run(&["permits", "set", "0"]).ok();
    let note = bench.json(&["task", "show", "1"])["note"].clone();
    assert!(note.as_str().unwrap().contains("max_permits of semaphore default is 0"), "{note}");
}

#[tokio::test]
async fn what_happened_is_told_in_order_and_late_answers_as_evidence() {
    let bench = Bench::migrated();
    bench.run(&["enqueue", "--kind", "a", "--payload", r#"{"month":"2026-11"}"#]).ok();
    let claims = bench.claim("a", 1).await;
    bench.run(&["task", "show", "1"]).ok().shows(&["running", "attempt 1 by c1 is running, until "]);

    let attempt = claims[0].attempt;
    let outcome = Outcome::unclear(Why::Timeout, "no answer within 8 min").with_status(504);
    let ended: Vec<_> =
        claims.into_iter().map(|claim| claim.end(&outcome, None, &Retry::default(), 0.0)).collect();
    let sent = permitq::clock::Clock::default().now();
    let exchange = Exchange {
        consumer: "c1",
        semaphore: "default",
        ended: &ended,
        want: 0,
        policies: &[],
        sent,
        probe: None,
    };
    let mut store = bench.store();
    store.exchange(&exchange).await.unwrap();
    assert!(store.late("c1", &late(attempt, "done \u{1b}[2Jafter all", false)).await.unwrap());
    bench.run(&["task", "cancel", "1"]).ok();

    let shown = bench.run(&["task", "show", "1"]).ok().shows(&[
        "\"month\": \"2026-11\"",
        "enqueued by cli",
        "attempt 1 by c1: failed after",
        "HTTP 504, its permit cools: no answer within 8 min",
        "late answer to attempt 1, HTTP 200, kept as evidence only: done",
        "cancel by cli:tester@",
    ]);
    assert!(!shown.out.contains('\u{1b}'), "{}", shown.out);
    let task = bench.json(&["task", "show", "1"]);
    let events: Vec<_> =
        task["history"].as_array().unwrap().iter().map(|event| event["event"].as_str().unwrap()).collect();
    assert_eq!(events, ["enqueued", "attempt", "late_answer", "action"]);
    assert_eq!(task["history"][1]["status"], 504);
    assert_eq!(task["history"][2]["answer"], "done \u{1b}[2Jafter all");
    assert_eq!(task["note"], json!(null));
}

#[test]
fn cancel_and_retry_are_recorded_with_who_did_it() {
    let bench = Bench::migrated();
    bench.run(&["enqueue", "--kind", "a"]).ok();
    bench.run(&["task", "retry", "1"]).fails(1, &["task 1 is pending: only a failed or cancelled task"]);
    let cancelled = json!({"id": 1, "state": "cancelled", "cooling": false});
    assert_eq!(bench.json(&["task", "cancel", "1"]), cancelled);
    assert_eq!(bench.json(&["task", "cancel", "1"]), cancelled, "a second time is no error");
    assert_eq!(bench.json(&["task", "retry", "1"]), json!({"id": 1, "state": "pending"}));
    let history = bench.json(&["task", "show", "1"])["history"].clone();
    let who: Vec<_> =
        history.as_array().unwrap()[1..].iter().map(|event| (&event["what"], &event["who"])).collect();
    assert_eq!(who.len(), 2, "{history}");
    for (what, (said, who)) in ["cancel", "retry"].iter().zip(who) {
        assert_eq!(said, what);
        assert!(who.as_str().unwrap().starts_with("cli:tester@"), "{who}");
    }
    for what in ["show", "retry", "cancel"] {
        bench.run(&["task", what, "99"]).fails(1, &["there is no task 99 in sqlite://permitq.db"]);
        bench.run(&["task", what, "x"]).fails(2, &["invalid value 'x' for '", "ID"]);
    }
}

#[tokio::test]
async fn a_retry_waits_for_the_call_that_was_given_up() {
    let bench = Bench::migrated();
    bench.run(&["enqueue", "--kind", "a"]).ok();
    bench.claim("a", 1).await;
    assert_eq!(bench.json(&["task", "cancel", "1"])["cooling"], true);
    let ran = bench.run(&["task", "retry", "1"]).ok();
    ran.shows(&["task 1 runs again in 9 m", "when the call that was given up must be over"]);
    assert_eq!(bench.json(&["task", "show", "1"])["state"], "scheduled");
}

#[tokio::test]
async fn a_finished_task_cannot_be_cancelled() {
    let bench = Bench::migrated();
    bench.run(&["enqueue", "--kind", "a"]).ok();
    let claims = bench.claim("a", 1).await;
    let outcome = Outcome::succeeded("{\"rows\": 7}".to_owned());
    let ended: Vec<_> =
        claims.into_iter().map(|claim| claim.end(&outcome, None, &Retry::default(), 0.0)).collect();
    let sent = permitq::clock::Clock::default().now();
    let exchange = Exchange {
        consumer: "c1",
        semaphore: "default",
        ended: &ended,
        want: 0,
        policies: &[],
        sent,
        probe: None,
    };
    bench.store().exchange(&exchange).await.unwrap();
    bench.run(&["task", "cancel", "1"]).fails(1, &["task 1 is succeeded already"]);
    bench.run(&["task", "retry", "1"]).fails(1, &["task 1 is succeeded"]);
    bench.run(&["task", "show", "1"]).ok().shows(&["result", "{\"rows\": 7}", "succeeded"]);
    assert_eq!(bench.json(&["task", "show", "1"])["result"], "{\"rows\": 7}");
}

#[tokio::test]
async fn a_late_answer_is_shown_offered_and_accepted() {
    let bench = Bench::migrated();
    bench.run(&["enqueue", "--kind", "a"]).ok();
    bench.run(&["task", "accept", "1"]).fails(1, &["task 1 has no late answer that says it is done"]);
    bench.run(&["task", "accept", "2"]).fails(1, &["there is no task 2"]);
    let attempt = bench.claim("a", 1).await[0].attempt;
    bench.run(&["task", "accept", "1"]).fails(1, &["task 1 is running"]);
    bench.sql("UPDATE permitq_consumer SET state = 'gone'").await;
    let lease = std::time::Duration::from_mins(1);
    bench.store().reclaim("r", lease, 0, 9).await.unwrap();
    bench.store().late("c1", &late(attempt, "{\"pages\": 7}", true)).await.unwrap();

    bench.run(&["task", "show", "1"]).ok().shows(&["`permitq task accept 1` takes it as the result"]);
    let accepted = bench.json(&["task", "accept", "1"]);
    assert_eq!(accepted, json!({"id": 1, "state": "succeeded", "claim_no": 1}));
    let task = bench.json(&["task", "show", "1"]);
    assert_eq!((&task["state"], &task["result"]), (&json!("succeeded"), &json!("{\"pages\": 7}")));
    bench.run(&["task", "show", "1"]).ok().shows(&["accept by cli:tester@"]);
    bench.run(&["task", "accept", "1"]).fails(1, &["task 1 is succeeded"]);
    bench.run(&["audit"]).ok();
}
