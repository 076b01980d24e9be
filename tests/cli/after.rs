//! Tasks that wait for others, on the command line.

use std::fmt::Write;

use serde_json::json;

use super::Bench;

#[test]
fn a_task_waits_for_an_id_or_a_key() {
    let bench = Bench::migrated();
    bench.run(&["enqueue", "--kind", "a", "--key", "first"]).ok();
    bench.run(&["enqueue", "--kind", "a", "--after", "first", "--after-any", "1"]).ok();
    bench.run(&["enqueue", "--kind", "a", "--key", "last", "--after", "2"]).ok();
    let blocked = bench.json(&["tasks", "--state", "blocked"])["tasks"].clone();
    assert_eq!(blocked.as_array().unwrap().len(), 2);
    let second = bench.json(&["task", "show", "2"]);
    assert_eq!(
        second["parents"],
        json!([{"id": 1, "kind": "a", "biz_key": "first", "state": "pending", "any_end": false, "open": true}])
    );
    assert_eq!(second["children"][0]["id"], 3);
    bench.run(&["task", "show", "2"]).ok().shows(&["task 1 (pending)", "task 3 (blocked)"]);

    bench.run(&["task", "cancel", "1"]).ok();
    assert_eq!(bench.json(&["task", "show", "2"])["error"], "upstream failed: task 1 was cancelled");
    assert_eq!(bench.json(&["task", "show", "3"])["state"], "failed");
    let ran = bench.run(&["task", "retry", "1"]).ok();
    ran.says(&["1 tasks that waited for it stay failed", "task retry 1 --with-dependents"]);
    let again = bench.json(&["task", "retry", "1", "--with-dependents"]);
    assert_eq!(again, json!({"id": 1, "state": "pending", "dependents": 2}));
    assert_eq!(bench.json(&["task", "show", "3"])["state"], "blocked");
    bench.run(&["task", "cancel", "3"]).ok();
    for unknown in ["99", "nowhere"] {
        bench.run(&["enqueue", "--kind", "a", "--after", unknown]).fails(1, &["there is no task", unknown]);
    }
    assert_eq!(bench.json(&["tasks"])["tasks"].as_array().unwrap().len(), 3);
}

#[test]
fn a_file_describes_a_graph_in_any_order() {
    let bench = Bench::migrated();
    bench.run(&["enqueue", "--kind", "a", "--key", "there"]).ok();
    let lines = r#"{"kind": "d", "name": "d", "biz_key": "d", "after": ["b", {"any_end": "c"}, 1, "there"]}
{"kind": "b", "name": "b", "biz_key": "b", "after": ["a"]}
{"kind": "c", "biz_key": "c", "after": [{"any_end": "a"}]}
{"kind": "a", "name": "a", "biz_key": "a"}
"#;
    assert_eq!(bench.feed(&["enqueue", "--batch", "-"], lines).ok().out, "4 created, 0 already there\n");
    let of = |key: &str| bench.json(&["tasks", "--key", key])["tasks"][0].clone();
    let d = bench.json(&["task", "show", &of("d")["id"].to_string()]);
    let parents: Vec<_> = d["parents"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["biz_key"].clone(), one["any_end"].clone()))
        .collect();
    assert_eq!(
        parents,
        [(json!("there"), json!(false)), (json!("b"), json!(false)), (json!("c"), json!(true))]
    );
    assert_eq!((of("a")["state"].clone(), of("b")["state"].clone()), (json!("pending"), json!("blocked")));
    let again = bench.feed(&["enqueue", "--batch", "-"], lines).ok();
    assert_eq!(again.out, "0 created, 4 already there\n");
}

#[test]
fn more_than_one_transaction_keeps_its_names() {
    let bench = Bench::migrated();
    let mut lines = String::new();
    for n in 0..1_300 {
        let after = if n == 0 { String::new() } else { format!(r#", "after": ["n{}"]"#, (n - 1) / 2) };
        writeln!(lines, r#"{{"kind": "a", "name": "n{n}"{after}}}"#).unwrap();
    }
    bench.feed(&["enqueue", "--batch", "-"], &lines).ok();
    let last = bench.json(&["task", "show", "1300"]);
    assert_eq!((last["parents"][0]["id"].clone(), last["state"].clone()), (json!(650), json!("blocked")));
}

#[test]
fn cycles_and_unknown_names_are_refused_with_their_lines() {
    let bench = Bench::migrated();
    let cycle = r#"{"kind": "x"}
{"kind": "a", "name": "a", "after": ["b"]}
{"kind": "b", "name": "b", "after": ["c"]}
{"kind": "c", "name": "c", "after": ["a"]}
"#;
    bench.feed(&["enqueue", "--batch", "-"], cycle).fails(
        2,
        &[
            "nothing was enqueued",
            "<stdin>:2: a cycle: \"a\" (line 2) waits for \"b\" (line 3) waits for \"c\" (line 4) waits for \"a\" (line 2)",
        ],
    );
    let unknown = "{\"kind\": \"a\", \"after\": [\"nobody\"]}\n\n{\"kind\": \"a\", \"after\": [77]}\n";
    bench.feed(&["enqueue", "--batch", "-"], unknown).fails(
        2,
        &[
            "2 bad lines, nothing was enqueued",
            "<stdin>:1: after: \"nobody\" is no name",
            "<stdin>:3: after: there is no task 77",
        ],
    );
    let twice = "{\"kind\": \"a\", \"name\": \"n\"}\n{\"kind\": \"a\", \"name\": \"n\"}\n";
    bench
        .feed(&["enqueue", "--batch", "-"], twice)
        .fails(2, &["<stdin>:2: the name \"n\" is line 1's already"]);
    let itself = "{\"kind\": \"a\", \"biz_key\": \"k\", \"after\": [\"k\"]}\n";
    bench
        .feed(&["enqueue", "--batch", "-"], itself)
        .fails(2, &["a cycle: \"k\" (line 1) waits for \"k\" (line 1)"]);
    assert_eq!(bench.json(&["tasks"])["tasks"], json!([]));
}
