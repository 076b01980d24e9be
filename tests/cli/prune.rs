//! `permitq prune`: what it counts, deletes and archives.

use std::process::Command;

use permitq::model::{Outcome, Retry};
use permitq::store::Exchange;
use serde_json::{Value, json};

use super::Bench;

impl Bench {
    /// Tasks 1 to 4: succeeded, cancelled by a person, failed; all 31 days ago. And one that waits.
    async fn history(&self) {
        self.run(&["migrate"]).ok();
        for key in ["a", "b", "c", "d"] {
            self.run(&["enqueue", "--kind", "a", "--key", key, "--payload", "{\"n\":\n1}"]).ok();
        }
        self.run(&["task", "cancel", "2"]).ok();
        let ends: Vec<_> = self
            .claim("a", 2)
            .await
            .into_iter()
            .map(|claim| {
                let done = Outcome::succeeded("{\"rows\": 7}".to_owned());
                let failed = Outcome::failed("no").with_status(400);
                let outcome = if claim.attempt.task == 1 { done } else { failed };
                claim.end(&outcome, None, &Retry::default(), 0.0)
            })
            .collect();
        let sent = permitq::clock::Clock::default().now();
        let exchange = Exchange {
            consumer: "c1",
            semaphore: "default",
            ended: &ends,
            want: 0,
            policies: &[],
            sent,
            probe: None,
        };
        self.store().exchange(&exchange).await.unwrap();
        self.sql("UPDATE permitq_task SET finished_at = finished_at - 31 * 86400000000").await;
    }

    fn states(&self) -> Vec<String> {
        let tasks = self.json(&["tasks"])["tasks"].clone();
        tasks.as_array().unwrap().iter().map(|task| task["state"].as_str().unwrap().to_owned()).collect()
    }
}

fn lines(file: &std::path::Path) -> Vec<Value> {
    let output = Command::new("zcat").arg(file).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test]
async fn a_dry_run_counts_and_a_prune_deletes_by_the_ages_in_force() {
    let bench = Bench::new();
    bench.history().await;
    let counted = bench.json(&["prune", "--dry-run", "--cancelled", "32d"]);
    assert_eq!(
        (&counted["dry_run"], &counted["tasks"]),
        (&json!(true), &json!({"succeeded": 1, "failed": 1, "cancelled": 0}))
    );
    assert_eq!(bench.states().len(), 4);
    let never = bench.json(&["prune", "--succeeded", "never", "--failed", "never", "--cancelled", "never"]);
    assert_eq!((&never["dry_run"], &never["tasks"]), (&json!(false), &json!({})));

    bench.write("permitq.toml", "[retention]\nfailed = \"32d\"\ncancelled = \"30d\"\n");
    let pruned = bench.run(&["prune"]).ok();
    pruned
        .shows(&["pruned\n", "succeeded", "1 (older than 7d)", "cancelled", "failed", "0 (older than 32d)"])
        .says(&["1 of 2 done, pruned"]);
    assert_eq!(bench.states(), ["pending", "failed"]);
    // What somebody did is on record, and a key is free again.
    let pruned = bench.json(&["prune", "--failed", "1h"]);
    assert_eq!(
        (&pruned["tasks"], &pruned["attempts"]),
        (&json!({"succeeded": 0, "failed": 1, "cancelled": 0}), &json!(1))
    );
    assert_eq!(bench.states(), ["pending"]);
    bench.run(&["enqueue", "--kind", "a", "--key", "a", "--json"]).ok().shows(&["\"created\":true"]);
    bench.run(&["audit"]).ok();
    bench.run(&["prune", "--failed", "soon"]).fails(2, &["retention.failed", "soon"]);
}

#[tokio::test]
async fn an_archive_has_everything_of_a_task_before_it_goes() {
    let bench = Bench::new();
    bench.history().await;
    std::fs::create_dir(bench.path("old")).unwrap();
    let pruned = bench.json(&["prune", "--archive", "old"]);
    let file = bench.path(pruned["archive"].as_str().unwrap());
    assert!(file.file_name().unwrap().to_str().unwrap().ends_with(".jsonl.gz"), "{pruned}");
    let mut tasks = lines(&file);
    tasks.sort_by_key(|task| task["id"].as_i64());
    assert_eq!(tasks.len(), 3);
    for (task, (state, key)) in tasks.iter().zip([("succeeded", "a"), ("cancelled", "b"), ("failed", "c")]) {
        assert_eq!((&task["state"], &task["biz_key"]), (&json!(state), &json!(key)));
        assert_eq!(task["payload"], json!({"n": 1}));
    }
    assert_eq!(tasks[0]["result"], "{\"rows\": 7}");
    assert_eq!(tasks[1]["actions"][0]["what"], "cancel");
    assert_eq!((&tasks[2]["attempts"][0]["status"], &tasks[2]["error"]), (&json!(400), &json!("no")));
    assert_eq!(bench.states(), ["pending"]);
    // With nothing to archive there is no file.
    assert_eq!(bench.json(&["prune", "--archive", "old"])["archive"], json!(null));
    assert_eq!(std::fs::read_dir(bench.path("old")).unwrap().count(), 1);
}

#[tokio::test]
async fn what_cannot_be_archived_is_not_deleted() {
    let bench = Bench::new();
    bench.history().await;
    bench.write("there.gz", "somebody's");
    for place in ["there.gz", "no/such/folder.gz"] {
        let words = [&format!("cannot archive in {place}"), "nothing is deleted that is not archived"];
        bench.run(&["prune", "--archive", place]).fails(1, &words);
    }
    assert_eq!(bench.states().len(), 4);
    assert_eq!(std::fs::read_to_string(bench.path("there.gz")).unwrap(), "somebody's");
    let pruned = bench.json(&["prune", "--archive", "new.gz"]);
    assert_eq!(pruned["archive"], "new.gz");
    assert_eq!(lines(&bench.path("new.gz")).len(), 3);
}
