//! P7: the operator's statement, felt by a running fleet.

use std::time::Duration;

use tokio::time::sleep;

use permitq::store::Peak;

use crate::support::Db;
use crate::support::site::{Site, until};

contract! {
    a_plain_update_of_max_permits_is_felt_within_a_second,
    a_counter_edited_by_hand_is_repaired_without_opening_the_cap,
    nothing_that_starts_touches_the_semaphore,
}

/// From one second after the commit nothing new starts until `in_use < max_permits`; raising acts within a second.
async fn a_plain_update_of_max_permits_is_felt_within_a_second(db: Db) {
    let site = Site::new(db, 6).await;
    // So long that between two of them a permit idles next to never, on a busy machine too.
    let call = Duration::from_millis(600);
    site.enqueue(200, call).await;
    let _members: Vec<_> = (1..=4).map(|n| site.consumer(&format!("c{n}"))).collect();
    site.db.sql("UPDATE permitq_semaphore SET max_permits = 4").await;
    site.in_flight(4).await;
    for (max, what) in [(2, "lowered"), (0, "stopped"), (6, "raised")] {
        site.db.sql(&format!("UPDATE permitq_semaphore SET max_permits = {max}")).await;
        sleep(Duration::from_secs(1) + call).await;
        let mut seen = 0;
        for _ in 0..40 {
            seen = seen.max(site.stub.summary().in_flight);
            sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(seen, max, "{what}");
    }
    let peak = site.db.store().peak("default", Peak::EVER).await.unwrap();
    assert_eq!(peak.overruns, 0, "{peak:?}");
}

/// P6: edited by hand, repaired within a pass, and the cap never opens.
async fn a_counter_edited_by_hand_is_repaired_without_opening_the_cap(db: Db) {
    let site = Site::new(db, 2).await;
    let _members: Vec<_> = (1..=2).map(|n| site.consumer(&format!("c{n}"))).collect();
    site.enqueue(2, Duration::from_millis(1500)).await;
    site.in_flight(2).await;
    site.db.sql("UPDATE permitq_semaphore SET in_use = 0").await;
    until("the deficit raised", async || site.db.in_use().await == 2).await;
    site.db.sql("UPDATE permitq_semaphore SET in_use = 4").await;
    until("the surplus cooling", async || {
        site.db.int("SELECT count(*) FROM permitq_cooling WHERE why = 'drift'").await == 2
    })
    .await;
    site.settled().await;
    site.cap_held(2).await;
}

/// A semaphore that is full must not look like one that was never filled.
async fn nothing_that_starts_touches_the_semaphore(db: Db) {
    let patient = [("PERMITQ_DOWNSTREAM__DEFAULT__CALL_TIMEOUT", "1m")];
    let site = Site::new(db, 3).await;
    let tasks = site.enqueue(3, Duration::from_secs(4)).await;
    let _first = site.start_with(&["run", "--name", "first"], &patient);
    site.in_flight(3).await;
    let row = async || site.db.store().semaphores().await.unwrap();
    let caps = async || site.db.int("SELECT count(*) FROM permitq_limit").await;
    let before = (row().await, caps().await);
    assert_eq!(
        (before.0[0].max_permits, before.0[0].in_use),
        (3, 3),
        "what the operator said, and what runs"
    );
    let _others: Vec<_> =
        (0..5).map(|n| site.start_with(&["run", "--name", &format!("other{n}")], &patient)).collect();
    for args in [&["migrate"][..], &["doctor"], &["audit"]] {
        site.permitq(args).output().unwrap();
    }
    site.alive(6).await;
    assert_eq!(site.stub.summary().in_flight, 3, "the calls that were running still are");
    assert_eq!((row().await, caps().await), before);
    site.nothing_lost_or_doubled(&tasks, 3).await;
}
