//! Calls that last many leases: only silence is death, never age.

use std::time::Duration;

use permitq::model::NewTask;
use tokio::time::sleep;

use crate::support::Db;
use crate::support::site::Site;

contract! {
    a_call_may_last_many_leases,
    each_consumer_is_judged_by_its_own_lease,
    no_lease_comes_near_its_end,
}

const PATIENT: [(&str, &str); 3] = [
    ("PERMITQ_DOWNSTREAM__DEFAULT__CALL_TIMEOUT", "1m"),
    ("PERMITQ_LEASE__DURATION", "3s"),
    ("PERMITQ_LEASE__HEARTBEAT", "400ms"),
];

/// One of four leases among short ones of more than one.
async fn a_call_may_last_many_leases(db: Db) {
    let site = Site::new(db, 3).await;
    let mut tasks = vec![site.db.enqueue_one(NewTask::new("call", r#"{"ms": 12000}"#).key("nightly")).await];
    tasks.extend(site.enqueue(6, Duration::from_secs(4)).await);
    let _fleet: Vec<_> =
        (0..4).map(|n| site.start_with(&["run", "--name", &format!("c{n}")], &PATIENT)).collect();
    site.watched(site.nothing_lost_or_doubled(&tasks, 3)).await;
}

/// The lease is stored with the consumer, so that everybody judges it alike.
async fn each_consumer_is_judged_by_its_own_lease(db: Db) {
    let site = Site::new(db, 2).await;
    // It beats less often than the other's whole lease.
    let slow = [
        PATIENT[0],
        ("PERMITQ_LEASE__DURATION", "16s"),
        ("PERMITQ_LEASE__HEARTBEAT", "4s"),
        ("PERMITQ_LEASE__RECLAIM", "250ms"),
    ];
    let _slow = site.start_with(&["run", "--name", "slow", "--slots", "1"], &slow);
    let _quick = site.start_with(&["run", "--name", "quick", "--slots", "1"], &PATIENT);
    site.alive(2).await;
    let tasks = site.enqueue(2, Duration::from_secs(9)).await;
    site.in_flight(2).await;
    site.nothing_lost_or_doubled(&tasks, 2).await;
}

/// With eight beats a lease, as by default, the oldest beat of eight busy consumers is never a third of it old.
async fn no_lease_comes_near_its_end(db: Db) {
    let lease = Duration::from_secs(12);
    let settings = [PATIENT[0], ("PERMITQ_LEASE__DURATION", "12s"), ("PERMITQ_LEASE__HEARTBEAT", "1500ms")];
    let site = Site::new(db, 8).await;
    let tasks = site.enqueue(8, Duration::from_secs(8)).await;
    let _fleet: Vec<_> = (0..8)
        .map(|n| site.start_with(&["run", "--name", &format!("c{n}"), "--slots", "1"], &settings))
        .collect();
    site.in_flight(8).await;
    let mut store = site.db.store();
    let mut shortest = lease;
    while site.stub.summary().in_flight == 8 {
        let now = store.clock().await.unwrap();
        for consumer in store.consumers().await.unwrap() {
            let left = u64::try_from(consumer.lease_until.as_microsecond() - now).unwrap();
            shortest = shortest.min(Duration::from_micros(left));
        }
        sleep(Duration::from_millis(50)).await;
    }
    println!(
        "{:?}: the oldest beat was {:.1?} old",
        site.db.database.dialect(),
        lease.saturating_sub(shortest)
    );
    assert!(shortest > lease * 2 / 3, "only {shortest:?} left of {lease:?}");
    site.nothing_lost_or_doubled(&tasks, 8).await;
}
