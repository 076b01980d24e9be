//! P7: the operator's statement, felt by a running fleet.

use std::time::Duration;

use tokio::time::sleep;

use permitq::store::Peak;

use crate::support::Db;
use crate::support::site::{Site, until};

const CALL: Duration = Duration::from_millis(200);

contract! {
    a_plain_update_of_max_permits_is_felt_within_a_second,
    a_counter_edited_by_hand_is_repaired_without_opening_the_cap,
}

/// From one second after the commit nothing new starts until `in_use < max_permits`; raising acts within a second.
async fn a_plain_update_of_max_permits_is_felt_within_a_second(db: Db) {
    let site = Site::new(db, 6).await;
    site.enqueue(400, CALL).await;
    let _members: Vec<_> = (1..=4).map(|n| site.consumer(&format!("c{n}"))).collect();
    site.db.sql("UPDATE permitq_semaphore SET max_permits = 4").await;
    site.in_flight(4).await;
    for (max, what) in [(2, "lowered"), (0, "stopped"), (6, "raised")] {
        site.db.sql(&format!("UPDATE permitq_semaphore SET max_permits = {max}")).await;
        sleep(Duration::from_secs(1) + CALL).await;
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
