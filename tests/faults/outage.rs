//! The line to the database is gone for a while, for one consumer or for all, shorter than the lease and longer.

use std::time::Duration;

use loadtest::proxy::Mode;
use permitq::clock::Clock;
use permitq::downstream::stub::StubOptions;
use permitq::model::{NewTask, State};
use permitq::upkeep::{Options, Upkeep};
use tokio::time::sleep;

use super::{CALL, STEADY, nothing_lost_or_doubled, registered};
use crate::support::site::{Site, until};
use crate::support::{Db, upkeep};

servers![
    silence_shorter_than_the_lease_costs_nothing,
    silence_longer_than_the_lease_costs_the_one_who_was_cut_off_its_claims,
    who_is_cut_off_hangs_up_first_where_that_stops_the_downstream,
    who_comes_back_from_an_outage_of_all_is_not_gone,
    failures_that_cannot_be_recorded_are_kept,
    refused_connections_are_waited_for,
    a_heart_may_hang_in_a_dead_connection_and_still_beats_the_reclaimer,
];

/// Longer than the lease of [`STEADY`].
const OUTAGE: Duration = Duration::from_millis(5500);

async fn silence_shorter_than_the_lease_costs_nothing(db: Db) {
    let site = Site::new(db, 3).await;
    let tasks = site.enqueue(20, CALL).await;
    let proxy = site.proxy().await;
    let _cut_off = site.behind(&proxy, "cut-off", &STEADY);
    let _other = site.start_with(&["run", "--name", "other"], &STEADY);
    registered(&site, 2).await;
    site.in_flight(3).await;
    proxy.set(Mode::Blackhole);
    sleep(Duration::from_millis(1500)).await;
    proxy.set(Mode::Pass);
    nothing_lost_or_doubled(&site, &tasks, 3).await;
}

/// P4: the survivor runs its tasks again; whoever was cut off frees nobody's permit and goes on under a new id.
async fn silence_longer_than_the_lease_costs_the_one_who_was_cut_off_its_claims(db: Db) {
    let site = Site::new(db, 1).await;
    let task = site.enqueue(1, Duration::from_millis(700)).await[0];
    let proxy = site.proxy().await;
    let _cut_off = site.behind(&proxy, "cut-off", &[]);
    site.in_flight(1).await;
    proxy.set(Mode::Blackhole);
    let _survivor = site.consumer("survivor");
    site.state(task, State::Succeeded).await;
    proxy.set(Mode::Pass);
    registered(&site, 2).await;

    let more = site.enqueue(4, CALL).await;
    site.settled().await;
    site.cap_held(1).await;
    let attempts = site.db.store().attempts(task).await.unwrap();
    let [lost, done] = attempts.as_slice() else { panic!("{attempts:?}") };
    assert_eq!((lost.outcome.as_str(), done.outcome.as_str()), ("abandoned", "succeeded"));
    assert!(done.consumer.starts_with("survivor"), "{done:?}");
    until("the late answer kept", async || {
        site.db.store().attempts(task).await.unwrap()[0].late_status == Some(200)
    })
    .await;
    assert_eq!(site.stub.summary().calls, 2 + u64::try_from(more.len()).unwrap());
}

/// By its own clock, before anybody can take its lease: the downstream's calls of a task never overlap.
async fn who_is_cut_off_hangs_up_first_where_that_stops_the_downstream(db: Db) {
    let stub = StubOptions { limit: Some(4), stop_on_disconnect: true, ..StubOptions::default() };
    let site = Site::with(db, stub, "stops_on_disconnect = true").await;
    let patient = [&STEADY[..], &[("PERMITQ_DOWNSTREAM__DEFAULT__CALL_TIMEOUT", "1m")]].concat();
    let tasks = site.enqueue(2, Duration::from_secs(8)).await;
    let proxy = site.proxy().await;
    let _cut_off = site.behind(&proxy, "cut-off", &patient);
    site.in_flight(2).await;
    proxy.set(Mode::Blackhole);
    let _survivor = site.start_with(&["run", "--name", "survivor"], &patient);
    until("both hung up", async || {
        let gone = site.stub.summary().callers_gone == 2;
        assert!(gone || site.db.task(tasks[0]).await.claim_no == 1, "taken over before it hung up");
        gone
    })
    .await;
    proxy.set(Mode::Pass);
    until("both once more", async || site.stub.summary().calls == 4).await;
    let seen = site.stub.summary();
    assert_eq!((seen.overlaps, seen.overruns), (0, 0), "{seen:?}");
}

/// Every slot of a process has a failure to record, and nobody to record it with.
async fn failures_that_cannot_be_recorded_are_kept(db: Db) {
    let site = Site::new(db, 8).await;
    let payload = r#"{"ms": 300, "fault": "fail", "fault_attempts": 1}"#;
    let tasks = vec![NewTask::new("call", payload); 8];
    let tasks = crate::support::ids(&site.db.store().enqueue(&tasks).await.unwrap());
    let proxy = site.proxy().await;
    let slots = [&STEADY[..], &[("PERMITQ_CONSUMER__SLOTS", "8")]].concat();
    let mut member = site.behind(&proxy, "c", &slots);
    site.in_flight(8).await;
    proxy.set(Mode::Refuse);
    proxy.cut();
    site.in_flight(0).await;
    sleep(Duration::from_millis(1500)).await;
    proxy.set(Mode::Pass);
    site.settled().await;
    site.cap_held(8).await;
    for task in tasks {
        let task = site.db.task(task).await;
        assert_eq!((task.state, task.claim_no), (State::Succeeded, 2));
    }
    assert_eq!(site.stub.summary().calls, 16);
    assert_eq!(site.abandoned().await, 0);
    member.terminate();
    assert_eq!(member.exit_code().await, Some(0), "it is the same process");
}

/// The survivors of an outage beat first, although every lease has passed and every connection is dead for good.
async fn who_comes_back_from_an_outage_of_all_is_not_gone(db: Db) {
    let site = Site::new(db, 3).await;
    let tasks = site.enqueue(20, CALL).await;
    let proxy = site.proxy().await;
    let _members: Vec<_> = (1..=3).map(|n| site.behind(&proxy, &format!("c{n}"), &STEADY)).collect();
    registered(&site, 3).await;
    site.in_flight(3).await;
    proxy.set(Mode::Blackhole);
    sleep(OUTAGE).await;
    proxy.forget();
    proxy.set(Mode::Pass);
    nothing_lost_or_doubled(&site, &tasks, 3).await;
}

async fn refused_connections_are_waited_for(db: Db) {
    let site = Site::new(db, 3).await;
    let tasks = site.enqueue(20, CALL).await;
    let proxy = site.proxy().await;
    let _members: Vec<_> = (1..=3).map(|n| site.behind(&proxy, &format!("c{n}"), &STEADY)).collect();
    registered(&site, 3).await;
    site.in_flight(3).await;
    proxy.set(Mode::Refuse);
    proxy.cut();
    sleep(Duration::from_millis(1500)).await;
    proxy.set(Mode::Pass);
    nothing_lost_or_doubled(&site, &tasks, 3).await;
}

/// A lease of many beats: two of them are over before a heart has given its dead connection up.
async fn a_heart_may_hang_in_a_dead_connection_and_still_beats_the_reclaimer(db: Db) {
    let (lease, heartbeat) = (Duration::from_secs(4), Duration::from_millis(100));
    db.consumer("a").await;
    db.age("permitq_consumer", "lease_until", Duration::from_hours(1), "id = 'a'").await;
    let clock = Clock::held();
    let options = Options { lease, heartbeat, ..upkeep(Duration::from_secs(1)) };
    let mut upkeep = Upkeep::new(&db.database, clock.clone(), options);
    for (passed, gone) in [(0, 0), (1_000, 0), (100, 1)] {
        clock.advance(Duration::from_millis(passed));
        upkeep.pass().await.unwrap();
        let count = "SELECT count(*) FROM permitq_consumer WHERE state = 'gone'";
        assert_eq!(db.int(count).await, gone, "{passed} ms later");
    }
}
