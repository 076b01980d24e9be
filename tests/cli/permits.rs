//! Who holds the permits, and how many there are.

use serde_json::json;

use super::Bench;

#[test]
fn without_holders_there_is_one_table() {
    let bench = Bench::migrated();
    let ran = bench.run(&["permits"]).ok();
    let lines: Vec<_> = ran.out.lines().collect();
    assert_eq!(
        lines,
        [
            "semaphore  max  in use  held  cooling  free  waiting",
            "default    4    0       0     0        4     0"
        ]
    );
    assert_eq!(
        bench.json(&["permits"]),
        json!({
            "semaphores": [{"name": "default", "max_permits": 4, "in_use": 0, "held": 0, "cooling": 0,
                            "free": 4, "waiting": 0}],
            "holders": [],
            "paused": [],
        })
    );
}

#[tokio::test]
async fn each_holder_is_shown_with_its_lease() {
    let bench = Bench::migrated();
    for _ in 0..3 {
        bench.run(&["enqueue", "--kind", "a"]).ok();
    }
    assert_eq!(bench.claim("a", 2).await.len(), 2);
    bench.run(&["task", "cancel", "2"]).ok().shows(&["its permit cools"]);

    bench.run(&["permits"]).ok().shows(&[
        "default    4    2       1     1        2     1",
        "held",
        "cooling (cancelled)",
        "in 9 m",
        "c1",
        "h1",
        "in 1 m",
    ]);
    let permits = bench.json(&["permits"]);
    assert_eq!(permits["semaphores"][0]["in_use"], 2);
    let holders = permits["holders"].as_array().unwrap();
    let held = holders.iter().find(|holder| holder["state"] == "held").unwrap();
    for (field, value) in [
        ("semaphore", json!("default")),
        ("task", json!(1)),
        ("claim_no", json!(1)),
        ("consumer", json!("c1")),
        ("host", json!("h1")),
        ("pid", json!(7)),
        ("why", json!(null)),
    ] {
        assert_eq!(held[field], value, "{field}");
    }
    for field in ["since", "until", "lease_until"] {
        assert!(held[field].as_str().unwrap().ends_with('Z'), "{field}");
    }
    let cooling = holders.iter().find(|holder| holder["state"] == "cooling").unwrap();
    assert_eq!((&cooling["task"], &cooling["why"]), (&json!(2), &json!("cancelled")));
}

#[tokio::test]
async fn set_says_what_was_what_is_and_what_will_happen() {
    let bench = Bench::migrated();
    for _ in 0..4 {
        bench.run(&["enqueue", "--kind", "a"]).ok();
    }
    bench.claim("a", 4).await;
    bench.run(&["permits", "set", "2"]).ok().shows(&[
        "default: max_permits was 4, is 2",
        "2 running or cooling calls will end by themselves; nothing new starts until fewer than 2 are in use",
    ]);
    bench.run(&["permits", "set", "0"]).ok().shows(&["was 2, is 0", "nothing new starts"]);
    let set = bench.json(&["permits", "set", "6", "--semaphore", "default"]);
    assert_eq!(set["old"], 0);
    assert_eq!(set["max_permits"], 6);
    assert_eq!(set["in_use"], 4);
    assert_eq!(set["note"], "4 in use, 2 more may start now");
    assert_eq!(bench.store().semaphores().await.unwrap()[0].max_permits, 6);
}

#[test]
fn a_bad_cap_or_name_changes_nothing() {
    let bench = Bench::migrated();
    for bad in ["-1", "1000001", "four", "2.5", ""] {
        bench.run(&["permits", "set", bad]).fails(2, &["<N>"]);
    }
    bench
        .run(&["permits", "set", "3", "--semaphore", "mail"])
        .fails(1, &["unknown semaphore \"mail\"; there are: default"]);
    bench.run(&["permits", "add", "", "3"]).fails(2, &["1 to 100 characters"]);
    bench.run(&["permits", "add", &"x".repeat(101), "3"]).fails(2, &["1 to 100 characters"]);
    bench
        .run(&["permits", "add", "default", "3"])
        .fails(1, &["\"default\" is already there", "permitq permits set 3 --semaphore default"]);
    let permits = bench.json(&["permits"]);
    assert_eq!(permits["semaphores"].as_array().unwrap().len(), 1);
    assert_eq!(permits["semaphores"][0]["max_permits"], 4);
}

#[test]
fn a_semaphore_can_be_added() {
    let bench = Bench::migrated();
    bench.run(&["permits", "add", "mail", "3"]).ok().shows(&["mail: max_permits is 3"]);
    assert_eq!(bench.json(&["permits", "add", "fax", "0"]), json!({"name": "fax", "max_permits": 0}));
    bench.run(&["permits"]).ok().shows(&["mail       3", "fax        0"]);
}
