//! `permitq fleet` and `permitq demo`.

use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::support::Db;
use crate::support::site::{Site, until};

const ALIVE: &str = "SELECT count(*) FROM permitq_consumer WHERE state = 'alive'";

contract! {
    a_fleet_restarts_who_dies_and_stops_together,
    members_drain_when_their_fleet_is_killed,
    the_demo_keeps_the_cap_although_consumers_are_killed,
}

async fn a_fleet_restarts_who_dies_and_stops_together(db: Db) {
    let site = Site::new(db, 2).await;
    let mut fleet = site.start(&["fleet", "--consumers", "3"]);
    until("three alive", async || site.db.int(ALIVE).await == 3).await;
    let victim = site.db.int("SELECT min(pid) FROM permitq_consumer").await;
    let pid = Pid::from_raw(i32::try_from(victim).unwrap()).unwrap();
    kill_process(pid, Signal::KILL).unwrap();
    until("a fourth start", async || site.db.int("SELECT count(*) FROM permitq_consumer").await == 4).await;
    site.enqueue(4, Duration::from_millis(100)).await;
    site.settled().await;
    fleet.terminate();
    assert_eq!(fleet.exit_code().await, Some(0));
    let others = format!("{ALIVE} AND pid <> {victim}");
    assert_eq!(site.db.int(&others).await, 0, "only who was killed did not take leave");
}

/// No member is left behind, however the fleet ends.
async fn members_drain_when_their_fleet_is_killed(db: Db) {
    let site = Site::new(db, 2).await;
    let fleet = site.start(&["fleet", "--consumers", "2"]);
    until("two alive", async || site.db.int(ALIVE).await == 2).await;
    fleet.kill();
    until("both gone", async || site.db.int(ALIVE).await == 0).await;
}

async fn the_demo_keeps_the_cap_although_consumers_are_killed(db: Db) {
    let site = Site::new(db, 4).await;
    let args = [
        "demo",
        "--database",
        site.db.url(),
        "--tasks",
        "24",
        "--call-time",
        "500ms",
        "--kill",
        "3",
        "--json",
    ];
    let demo = site.permitq(&args).output().unwrap();
    let text = String::from_utf8_lossy(&demo.stdout);
    assert!(demo.status.success(), "{text}\n{}", String::from_utf8_lossy(&demo.stderr));
    let report: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&report["succeeded"], &report["failed"]), (&24.into(), &0.into()), "{report}");
    assert_eq!((&report["overruns"], &report["in_use"]), (&0.into(), &0.into()), "{report}");
    assert!(report["max_in_flight"].as_u64().unwrap() <= 4, "{report}");
    assert!(report["utilisation"].as_f64().unwrap() > 0.0 && report["wall_s"].as_f64().unwrap() > 0.0);
}
