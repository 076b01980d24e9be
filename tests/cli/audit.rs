//! Counters, impossible states, and the peak from the log.

use serde_json::json;

use super::Bench;

#[tokio::test]
async fn a_sound_database_is_ok() {
    let bench = Bench::migrated();
    for _ in 0..6 {
        bench.run(&["enqueue", "--kind", "a"]).ok();
    }
    bench.claim("a", 6).await;
    let ran = bench.run(&["audit"]).ok();
    assert_eq!(ran.out, "default: peak 4 of 4, overruns 0, drift 0\n");
    let audit = bench.json(&["audit"]);
    for (field, value) in [
        ("ok", json!(true)),
        ("drift", json!(0)),
        ("peak", json!(4)),
        ("max_permits", json!(4)),
        ("overruns", json!(0)),
        ("impossible", json!([])),
    ] {
        assert_eq!(audit[field], value, "{field}");
    }
    assert_eq!(audit["semaphores"][0]["name"], "default");
    bench.run(&["audit", "--repair"]).ok();
}

#[tokio::test]
async fn drift_is_told_and_repaired_without_opening_the_cap() {
    let bench = Bench::migrated();
    bench.sql("UPDATE permitq_semaphore SET in_use = 3").await;
    let ran = bench.run(&["audit"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    ran.shows(&["drift 3 (in_use says 3, 0 are held or cooling)"]).says(&["permitq audit --repair"]);
    bench.run(&["permits"]).ok().says(&["default: in_use says 3, but 0 are held or cooling"]);
    let audit = bench.run(&["audit", "--json"]);
    assert_eq!(audit.code, Some(1));
    assert_eq!((&audit.value()["ok"], &audit.value()["drift"]), (&json!(false), &json!(3)));

    bench
        .run(&["audit", "--repair"])
        .ok()
        .shows(&["default: repaired: in_use was 3, 0 are there; it is 3 now, 3 of them cooling", "drift 0"]);
    let permits = bench.json(&["permits"]);
    assert_eq!(permits["semaphores"][0]["cooling"], 3);
    assert_eq!(permits["holders"][0]["why"], "drift");
    bench.run(&["permits"]).ok().shows(&["unknown", "cooling (drift)"]);
}

#[tokio::test]
async fn a_deficit_is_raised_at_once() {
    let bench = Bench::migrated();
    bench.run(&["enqueue", "--kind", "a"]).ok();
    bench.claim("a", 1).await;
    bench.sql("UPDATE permitq_semaphore SET in_use = 0").await;
    let repaired = bench.json(&["audit", "--repair"]);
    assert_eq!(repaired["ok"], true);
    assert_eq!(repaired["repaired"], json!([{"name": "default", "in_use": 0, "counted": 1, "cooling": 0}]));
    assert_eq!(bench.store().semaphores().await.unwrap()[0].in_use, 1);
}

#[tokio::test]
async fn impossible_states_are_named_and_not_ok() {
    let bench = Bench::migrated();
    bench.run(&["permits", "add", "mail", "2"]).ok();
    bench.run(&["enqueue", "--kind", "a", "--semaphore", "mail"]).ok();
    bench.sql("DELETE FROM permitq_semaphore WHERE name = 'mail'").await;
    let ran = bench.run(&["audit"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    ran.shows(&["impossible: task 1 needs semaphore mail, which does not exist"]);
    let note = bench.json(&["task", "show", "1"])["note"].clone();
    assert!(note.as_str().unwrap().contains("semaphore mail does not exist"), "{note}");
}

#[tokio::test]
async fn the_peak_can_be_computed_for_a_period() {
    let bench = Bench::migrated();
    for _ in 0..2 {
        bench.run(&["enqueue", "--kind", "a"]).ok();
    }
    bench.claim("a", 2).await;
    bench.run(&["permits", "set", "1"]).ok();
    bench.run(&["audit"]).ok().shows(&["peak 2 of 1 (the cap was higher then), overruns 0"]);
    bench.run(&["audit", "--since", "2020-01-01T00:00:00Z"]).ok().shows(&["peak 2"]);
    let past = ["--since", "2020-01-01T00:00:00Z", "--until", "2020-02-01T00:00:00Z"];
    bench.run(&[&["audit"], &past[..]].concat()).ok().shows(&["peak 0 of 1"]);
    bench
        .run(&["audit", "--since", "2020-02-01T00:00:00Z", "--until", "2020-02-01T00:00:00Z"])
        .fails(2, &["the period is empty"]);
    bench.run(&["audit", "--since", "yesterday"]).fails(2, &["--since", "with its offset"]);
}
