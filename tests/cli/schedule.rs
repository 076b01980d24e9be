//! `permitq schedule`: what a person or a script sees.

use serde_json::{Value, json};

use super::Bench;

impl Bench {
    fn refuses(&self, args: &[&str], words: &[&str]) {
        self.run(&[&["schedule"], args].concat()).fails(2, words);
    }
}

#[test]
fn a_preview_needs_no_database_and_knows_every_plan() {
    let bench = Bench::new();
    let from = ["--from", "2027-03-13T12:00:00Z", "--count", "3"];
    let next = |plan: &[&str]| bench.json(&[&["schedule", "preview"], plan, &from].concat())["next"].clone();
    let new_york = ["--tz", "America/New_York"];
    assert_eq!(
        next(&[&["--cron", "30 2 * * *"], &new_york[..]].concat()),
        json!(["2027-03-14T07:00:00Z", "2027-03-15T06:30:00Z", "2027-03-16T06:30:00Z"])
    );
    assert_eq!(
        next(&["--quartz", "0 0 12 L * ?"]),
        json!(["2027-03-31T12:00:00Z", "2027-04-30T12:00:00Z", "2027-05-31T12:00:00Z"])
    );
    assert_eq!(
        next(&["--every", "90m", "--start", "2027-03-13T10:00:00Z"]),
        json!(["2027-03-13T13:00:00Z", "2027-03-13T14:30:00Z", "2027-03-13T16:00:00Z"])
    );
    assert_eq!(
        next(&["--every", "1h", "--end", "2027-03-13T14:00:00Z"]),
        json!(["2027-03-13T13:00:00Z", "2027-03-13T14:00:00Z"])
    );
    assert_eq!(
        next(&["--after-end", "5m"]),
        json!(["2027-03-13T12:05:00Z"]),
        "the rest follows from its runs"
    );
    assert_eq!(next(&["--at", "2027-03-14T00:00:00+01:00"]), json!(["2027-03-13T23:00:00Z"]));
    // The same options as `add`.
    let add =
        ["report", "--kind", "call", "--cron", "@daily", "--key-template", "{date}", "--overlap", "queue"];
    assert_eq!(next(&add).as_array().unwrap().len(), 3);
    let text =
        bench.run(&[&["schedule", "preview", "--cron", "30 2 * * *"], &new_york[..], &from].concat()).ok();
    text.shows(&["Sun 2027-03-14 03:00:00 EDT  (2027-03-14 07:00:00 UTC)"]);
    assert!(!bench.path("permitq.db").exists());
    assert_eq!(
        bench.json(&["schedule", "preview", "--cron", "* * * * *"])["next"].as_array().unwrap().len(),
        5
    );
}

#[test]
fn what_would_never_run_is_refused_with_what_to_write() {
    let bench = Bench::new();
    let add = |more: &[&'static str]| [&["add", "report", "--kind", "call"], more].concat();
    bench.refuses(
        &add(&["--cron", "0 0 31 2 *"]),
        &["--cron", "0 0 31 2 *", "never due", "look at day and month"],
    );
    bench.refuses(&add(&["--cron", "0 0 12 * * ?"]), &["--cron", "6 fields", "--quartz"]);
    bench.refuses(&add(&["--quartz", "0 0 0 L-3 * ?"]), &["--quartz", "L-3", "L, LW and 15W are"]);
    bench.refuses(&add(&["--quartz", "0 0 0 1 1 ? 2020"]), &["never due", "year"]);
    bench.refuses(&add(&["--cron", "@daily", "--tz", "Berlin"]), &["--tz", "\"Berlin\"", "Europe/Berlin"]);
    bench.refuses(&add(&["--at", "2020-01-01T00:00:00Z"]), &["--at", "never due", "yet to come"]);
    bench.refuses(&add(&["--every", "0s"]), &["--every", "1 ms to 366 days"]);
    bench.refuses(
        &add(&["--cron", "@daily", "--end", "2020-01-01T00:00:00Z"]),
        &["--end", "before it starts"],
    );
    bench.refuses(
        &add(&["--cron", "@daily", "--key-template", "DAILY"]),
        &["--key-template", "same key", "{date}"],
    );
    bench.refuses(
        &add(&["--cron", "@daily", "--key-template", "{day}"]),
        &["unknown placeholder", "{instant}"],
    );
    bench.refuses(&add(&["--cron", "@daily", "--misfire-max", "0"]), &["--misfire-max", "1 to 1000"]);
    bench.refuses(&add(&["--cron", "@daily", "--max-attempts", "0"]), &["--max-attempts"]);
    bench.refuses(&add(&["--cron", "@daily", "--payload", "{"]), &["--payload", "not JSON"]);
    bench.refuses(&add(&[]), &["--cron", "--at"]);
    bench.refuses(&add(&["--cron", "@daily", "--every", "5m"]), &["cannot be used with"]);
    bench.refuses(&["add", "report", "--cron", "@daily"], &["\"report\" is new", "--kind"]);
    bench.refuses(&["add", "report", "--cron", "@daily", "--overlap", "queue"], &["--kind"]);
    let nowhere =
        ["schedule", "add", "report", "--kind", "call", "--cron", "@daily", "--semaphore", "nowhere"];
    bench.run(&nowhere).fails(1, &["nowhere", "permitq permits add"]);
    assert_eq!(bench.json(&["schedule", "list"]), json!({"jobs": []}));
}

#[test]
fn the_life_of_a_schedule() {
    let bench = Bench::new();
    let daily =
        ["schedule", "add", "daily", "--kind", "report", "--cron", "30 2 * * *", "--tz", "Europe/Berlin"];
    let daily = [&daily[..], &["--key-template", "DAILY_REPORT:{date}", "--payload", r#"{"a": 1}"#]].concat();
    let added = bench.json(&daily);
    assert_eq!((&added["trigger"], &added["created"]), (&1.into(), &true.into()));
    assert_eq!(added["next"].as_array().unwrap().len(), 5);
    // The same again finds it; another for the same job adds one; another job of this name is refused.
    let again = bench.run(&daily).ok().says(&["daily has this trigger already: trigger 1"]);
    again.shows(&["daily: trigger 1, 30 2 * * * (Europe/Berlin); next:"]);
    assert_eq!(bench.json(&["schedule", "add", "daily", "--every", "6h"])["trigger"], 2);
    bench
        .run(&["schedule", "add", "daily", "--kind", "mail", "--every", "6h"])
        .fails(1, &["--kind is report, not mail", "permitq schedule remove daily"]);

    let list = bench.json(&["schedule", "list"]);
    let job = &list["jobs"][0];
    assert_eq!(
        (&job["name"], &job["kind"], &job["running"]),
        (&"daily".into(), &"report".into(), &Value::Null)
    );
    let cron = &job["triggers"][0];
    assert_eq!(
        (&cron["type"], &cron["expression"], &cron["dialect"], &cron["zone"]),
        (&"cron".into(), &"30 2 * * *".into(), &"unix".into(), &"Europe/Berlin".into())
    );
    assert_eq!((&cron["next_fire_at"], &cron["paused"]), (&added["next"][0], &false.into()));
    assert_eq!(
        (&job["triggers"][1]["type"], &job["triggers"][1]["every"]),
        (&"interval".into(), &21_600.0.into())
    );
    bench
        .run(&["schedule", "list"])
        .ok()
        .shows(&["daily  report  1        30 2 * * * (Europe/Berlin)", "every 6h"]);
    assert_eq!(
        bench.json(&["schedule", "preview", "daily", "--count", "1"])["next"].as_array().unwrap().len(),
        1
    );

    // By hand: once, refused while it runs, forced.
    let ran = bench.json(&["schedule", "run", "daily"]);
    assert_eq!(ran, json!({"job": "daily", "task": 1, "created": true}));
    bench.run(&["schedule", "run", "daily"]).fails(1, &["already running: task 1", "--force"]);
    let forced = bench.run(&["schedule", "run", "daily", "--force"]).ok();
    assert_eq!(forced.says(&["DAILY_REPORT:{date}", "already there: task 1"]).out, "1\n");
    let task = bench.json(&["task", "show", "1"]);
    assert_eq!((&task["source"], &task["payload"]), (&"manual:daily".into(), &json!({"a": 1})));

    let shown = bench.json(&["schedule", "show", "daily"]);
    assert_eq!(
        (&shown["running"], &shown["payload"], &shown["misfire_after"]),
        (&1.into(), &json!({"a": 1}), &60.0.into())
    );
    let fates: Vec<_> = shown["instants"].as_array().unwrap().iter().map(|one| &one["fate"]).collect();
    assert_eq!(fates, ["exists", "fired"]);
    let text = bench.run(&["schedule", "show", "daily"]).ok();
    text.shows(&[
        "next of trigger 1",
        "by hand  task 1\n",
        "task 1 had its key already",
        "running    task 1",
    ]);

    assert_eq!(bench.json(&["schedule", "pause", "daily", "--trigger", "2"])["triggers"], json!([2]));
    assert_eq!(bench.json(&["schedule", "pause", "daily"])["triggers"], json!([1]));
    bench.run(&["schedule", "pause", "daily"]).ok().shows(&["daily: there was nothing to be paused"]);
    bench.run(&["schedule", "list"]).ok().shows(&["paused"]);
    bench.run(&["schedule", "resume", "daily"]).ok().shows(&["daily: resumed trigger 1, 2"]);
    for command in ["show", "pause", "resume", "run", "remove", "preview"] {
        bench.run(&["schedule", command, "nobody"]).fails(1, &["no job \"nobody\"", "permitq schedule list"]);
    }
    bench
        .run(&["schedule", "remove", "daily", "--trigger", "9"])
        .fails(1, &["no trigger 9", "permitq schedule show daily"]);
    assert_eq!(bench.json(&["schedule", "remove", "daily", "--trigger", "2"])["removed"], true);
    bench.run(&["schedule", "remove", "daily"]).ok().shows(&["removed daily"]);
    assert_eq!(bench.json(&["schedule", "list"]), json!({"jobs": []}));
    assert_eq!(bench.json(&["task", "show", "1"])["state"], "pending");
}
