//! Pauses, deadlines, and retrying many.

use serde_json::json;

use super::Bench;

#[test]
fn a_pause_is_seen_wherever_somebody_looks() {
    let bench = Bench::migrated();
    bench.run(&["enqueue", "--kind", "mail"]).ok();
    bench.run(&["pause", "kind", "mail", "--why", "it moves"]).ok().shows(&["kind mail: paused"]);
    bench.run(&["permits"]).ok().shows(&["kind mail", "cli:tester@", "it moves"]);
    let paused = bench.json(&["permits"])["paused"][0].clone();
    assert_eq!(
        (&paused["what"], &paused["name"], &paused["why"]),
        (&json!("kind"), &json!("mail"), &json!("it moves"))
    );
    bench.run(&["task", "show", "1"]).ok().shows(&["kind mail was paused by cli:tester@", ": it moves"]);
    let resumed = json!({"what": "kind", "name": "mail", "paused": false});
    assert_eq!(bench.json(&["resume", "kind", "mail"]), resumed);
    bench.run(&["resume", "kind", "mail"]).ok().says(&["kind mail was not paused"]);
    assert_eq!(bench.json(&["pause", "fleet"]), json!({"what": "fleet", "name": "", "paused": true}));
    bench.run(&["task", "show", "1"]).ok().shows(&["fleet was paused by"]);
    bench.run(&["pause", "semaphore", "none"]).fails(1, &["unknown semaphore \"none\"; there are: default"]);
    bench.run(&["pause", "kind", ""]).fails(2, &["a name has 1 to 100 characters"]);
    bench.run(&["completions", "bash"]).ok().shows(&["resume"]);
}

#[tokio::test]
async fn many_are_retried_after_a_look_at_them() {
    let bench = Bench::migrated();
    for kind in ["a", "a", "b", "a"] {
        bench.run(&["enqueue", "--kind", kind]).ok();
    }
    let end =
        "UPDATE permitq_task SET state = 'cancelled', finished_at = run_at, error = 'HTTP ' || (500 + id)";
    bench.sql(&format!("{end} WHERE id < 4")).await;
    let looked = bench.run(&["task", "retry", "--kind", "a", "--json"]);
    assert_eq!(looked.code, Some(2), "{looked:?}");
    let looked = looked.says(&["add --yes to retry these 2"]).value();
    assert_eq!(
        (&looked["matching"], &looked["retried"], &looked["tasks"][1]["id"]),
        (&json!(2), &json!(0), &json!(2))
    );
    let none = json!({"matching": 0, "retried": 0});
    for filter in [["--state", "failed"], ["--error", "http"], ["--until", "2020-01-01T00:00:00Z"]] {
        assert_eq!(bench.json(&[&["task", "retry", "--yes"], &filter[..]].concat()), none);
    }
    assert_eq!(
        bench.json(&["task", "retry", "--error", "HTTP 502", "--since", "2020-01-01T00:00:00Z", "--yes"]),
        json!({"matching": 1, "retried": 1})
    );
    let ran = bench.run(&["task", "retry", "--state", "cancelled", "--limit", "1", "--yes"]).ok();
    ran.shows(&["1 tasks run again"]).says(&["there may be more"]);
    let states: Vec<_> =
        (1..=4).map(|id| bench.json(&["task", "show", &id.to_string()])["state"].clone()).collect();
    assert_eq!(states, ["pending", "pending", "cancelled", "pending"]);
    bench.run(&["task", "retry"]).fails(2, &["required"]);
    bench.run(&["task", "retry", "1", "--kind", "a"]).fails(2, &["cannot be used with"]);
    bench.run(&["task", "retry", "--kind", "a", "--state", "running"]).fails(2, &["failed, cancelled"]);
}

#[test]
fn a_deadline_is_an_instant_or_a_span() {
    let bench = Bench::new();
    bench.run(&["enqueue", "--kind", "a", "--expires", "2027-01-01T00:00:00Z"]).ok();
    bench.run(&["enqueue", "--kind", "a", "--expires", "30m"]).ok();
    assert_eq!(bench.json(&["task", "show", "1"])["expires_at"], "2027-01-01T00:00:00Z");
    bench.run(&["task", "show", "2"]).ok().shows(&["expires", "in 29 m"]);
    bench.run(&["enqueue", "--kind", "a", "--expires", "soon"]).fails(2, &["neither an instant"]);
    bench.write("tasks", "{\"kind\": \"a\", \"expires\": 60}\n{\"kind\": \"a\", \"expires\": \"1h\"}\n");
    assert_eq!(bench.json(&["enqueue", "--batch", "tasks"])["created"], 2);
    bench.run(&["task", "show", "4"]).ok().shows(&["in 59 m"]);
    bench.write("bad", "{\"kind\": \"a\", \"expires\": \"x\"}\n");
    bench.run(&["enqueue", "--batch", "bad"]).fails(2, &["expires: ", "neither an instant"]);
}
