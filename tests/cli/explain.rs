//! `permitq task explain`: why a task waits, who runs it, how it came to its end.

use permitq::model::{Outcome, Retry, Why};
use permitq::store::Exchange;
use serde_json::{Value, json};

use super::Bench;
use crate::support::late;

impl Bench {
    async fn end(&self, claims: Vec<permitq::model::Claim>, outcome: &Outcome) {
        let ended: Vec<_> =
            claims.into_iter().map(|claim| claim.end(outcome, None, &Retry::default(), 0.0)).collect();
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
        self.store().exchange(&exchange).await.unwrap();
    }

    fn explain(&self, task: &str) -> Value {
        self.json(&["task", "explain", task])
    }
}

fn reasons(explained: &Value) -> Vec<&str> {
    explained["reasons"].as_array().unwrap().iter().map(|one| one["reason"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_waiting_task_names_every_reason() {
    let bench = Bench::migrated();
    for delay in ["0s", "1h"] {
        bench.run(&["enqueue", "--kind", "a", "--delay", delay]).ok();
    }
    assert_eq!(reasons(&bench.explain("1")), ["no_consumer"]);
    assert_eq!(reasons(&bench.explain("2")), ["not_due", "no_consumer"]);
    bench.run(&["permits", "set", "0"]).ok();
    let stopped = bench.explain("1");
    assert_eq!(reasons(&stopped), ["no_consumer", "stopped"]);
    assert_eq!((&stopped["expected_start"], &stopped["estimate"]), (&json!(null), &json!(null)));
    bench.run(&["task", "explain", "1"]).ok().shows(&[
        "task 1 is pending: no consumer is alive",
        "timeline",
        "·",
    ]);
    bench.run(&["task", "explain", "9"]).fails(1, &["there is no task 9"]);
}

#[tokio::test]
async fn behind_a_full_semaphore_it_names_holders_and_those_ahead_and_guesses() {
    let bench = Bench::migrated();
    bench.run(&["permits", "set", "2"]).ok();
    for kind in ["a", "a", "a", "b", "a"] {
        bench.run(&["enqueue", "--kind", kind]).ok();
    }
    bench.run(&["enqueue", "--kind", "a", "--priority", "9"]).ok();
    bench.sql("UPDATE permitq_task SET created_at = created_at - 60000000").await;
    let claims = bench.claim("a", 1).await;
    let none = bench.explain("4");
    assert_eq!((reasons(&none), &none["expected_start"]), (vec!["behind"], &json!(null)), "{none}");
    // One ended after ten seconds; two more hold both permits since four.
    bench.sql("UPDATE permitq_task SET started_at = started_at - 10000000 WHERE state = 'running'").await;
    bench.end(claims, &Outcome::succeeded(None)).await;
    bench.sql("DELETE FROM permitq_consumer").await; // it registers again
    assert_eq!(bench.claim("a", 2).await.len(), 2);
    bench.sql("UPDATE permitq_task SET started_at = started_at - 4000000 WHERE state = 'running'").await;

    // Whatever their kinds; the one of high priority is claimed already.
    let waiting: Vec<_> = ["1", "2", "3", "4", "5", "6"]
        .into_iter()
        .map(|task| bench.explain(task))
        .filter(|explained| explained["state"] == "pending")
        .collect();
    let ahead: Vec<_> = waiting.iter().map(|one| one["ahead"]["tasks"].as_i64().unwrap()).collect();
    assert_eq!((waiting.len(), ahead), (3, vec![0, 1, 2]));
    for explained in &waiting {
        let behind = explained["ahead"]["tasks"] != 0;
        assert_eq!(reasons(explained), if behind { &["full", "behind"][..] } else { &["full"] });
        assert_eq!(explained["holders"].as_array().unwrap().len(), 2);
        let age = explained["holders"][0]["age"].as_f64().unwrap();
        assert!((4.0..30.0).contains(&age), "{explained}");
        assert_eq!(explained["estimate"]["attempts"], 1);
    }
    // In about six seconds the two next, ten later the third.
    let start = |explained: &Value| -> jiff::Timestamp {
        explained["expected_start"].as_str().unwrap().parse().unwrap()
    };
    let wait = start(&waiting[2]).duration_since(start(&waiting[0])).as_secs_f64();
    assert!((8.0..12.0).contains(&wait), "{wait}");
    let id = waiting[2]["id"].to_string();
    bench.run(&["task", "explain", &id]).ok().shows(&[
        "semaphore default is full: 2 of 2 in use",
        "behind 2 others",
        "an estimate from the last 1 attempts",
        "h1, process 7",
    ]);
}

#[tokio::test]
async fn the_many_ahead_are_counted_so_far() {
    let bench = Bench::migrated();
    let file = "{\"kind\": \"k0\"}\n{\"kind\": \"k1\"}\n".repeat(501);
    bench.write("many.jsonl", &file);
    bench.run(&["enqueue", "--batch", "many.jsonl"]).ok();
    assert_eq!(bench.explain("1001")["ahead"], json!({"tasks": 1000, "more": false}));
    assert_eq!(bench.explain("1002")["ahead"], json!({"tasks": 1000, "more": true}));
    bench.run(&["task", "explain", "1002"]).ok().shows(&["behind more than 1000 others"]);
}

#[tokio::test]
async fn a_running_task_says_who_has_it_and_until_when() {
    let bench = Bench::migrated();
    bench.run(&["enqueue", "--kind", "a"]).ok();
    let claims = bench.claim("a", 1).await;
    assert_eq!(claims.len(), 1);
    let explained = bench.explain("1");
    let holder = &explained["holders"][0];
    assert_eq!(
        (&holder["consumer"], &holder["host"], &holder["pid"]),
        (&json!("c1"), &json!("h1"), &json!(7))
    );
    assert!(holder["lease_until"].is_string() && holder["until"].is_string(), "{explained}");
    assert_eq!(reasons(&explained), [""; 0]);
    bench.run(&["task", "explain", "1"]).ok().shows(&["task 1 is running: by c1 for", "lease", "█"]);
}

#[tokio::test]
async fn a_finished_task_tells_its_whole_story() {
    let bench = Bench::migrated();
    bench.run(&["schedule", "add", "daily", "--kind", "a", "--every", "1h", "--payload", "{}"]).ok();
    let run = bench.json(&["schedule", "run", "daily"]);
    let task = run["task"].to_string();
    let claims = bench.claim("a", 1).await;
    let attempt = claims[0].attempt;
    bench.end(claims, &Outcome::unclear(Why::Timeout, "no answer").with_status(504)).await;
    bench.store().late("c1", &late(attempt, "done after all", false)).await.unwrap();
    let waits = bench.explain(&task);
    assert_eq!((&waits["attempts"][0]["outcome"], &waits["state"]), (&json!("failed"), &json!("scheduled")));
    assert_eq!(waits["holders"][0]["state"], "cooling");
    bench.run(&["task", "cancel", &task]).ok();
    let explained = bench.explain(&task);
    assert_eq!(explained["asked"]["source"], "manual:daily");
    assert_eq!((&explained["asked"]["job"], &explained["asked"]["trigger"]), (&json!("daily"), &json!(null)));
    let first = &explained["attempts"][0];
    assert_eq!((&first["status"], &first["late_answer"]), (&json!(504), &json!("done after all")));
    for span in ["waited", "ran", "cooled"] {
        assert!(first[span].is_number(), "{explained}");
    }
    assert_eq!(explained["actions"][1]["what"], "cancel");
    bench.run(&["task", "explain", &task]).ok().shows(&[
        "cancelled after one attempt",
        "by hand; fired",
        "HTTP 504; no call began; no answer; late answer at",
        "evidence only: done after all",
        "and cools",
        "cancel by cli:tester@",
        "timeline",
        "░",
    ]);
}
