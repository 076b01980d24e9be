//! A consumer's lease: beating, draining, going; and who may be declared gone.

use std::time::Duration;

use permitq::model::Outcome;
use permitq::store::{Error, Expired, Left};

use crate::support::{Db, LEASE, ended, registration};

contract![
    a_beat_renews_the_lease_and_tells_what_we_run,
    gone_is_final,
    a_draining_consumer_still_beats_and_finishes,
    only_a_lease_that_was_read_before_is_fenced,
    a_consumer_that_beats_in_between_is_not_fenced,
    consumers_gone_for_long_are_forgotten,
];

async fn a_beat_renews_the_lease_and_tells_what_we_run(db: Db) {
    db.enqueue(3).await;
    let (mut a, mut b) = (db.consumer("a").await, db.consumer("b").await);
    let claims = a.claim(2).await;
    let _ = b.claim(1).await;
    db.age("permitq_consumer", "lease_until", Duration::from_mins(2), "id = 'a'").await;
    assert_eq!(db.store().expired().await.unwrap().len(), 1);
    let mut held = a.store.beat("a", LEASE).await.unwrap().unwrap();
    held.sort_unstable();
    assert_eq!(held, [claims[0].attempt, claims[1].attempt]);
    assert!(db.store().expired().await.unwrap().is_empty());
    let mut orphans = a.store.running("a").await.unwrap();
    orphans.sort_by_key(|orphan| orphan.attempt);
    assert_eq!(orphans[1].attempt, claims[1].attempt);
    assert_eq!((&*orphans[1].semaphore, orphans[1].standing), ("default", claims[1].standing));
}

async fn gone_is_final(db: Db) {
    db.enqueue(2).await;
    let mut a = db.consumer("a").await;
    db.leave("a", Left::Gone).await;
    assert_eq!(a.store.beat("a", LEASE).await.unwrap(), None);
    db.leave("a", Left::Draining).await;
    assert_eq!(a.store.beat("a", LEASE).await.unwrap(), None);
    assert!(matches!(a.store.register(&registration("a")).await, Err(Error::Refused { .. })));
    assert!(a.claim(1).await.is_empty());
    assert_eq!(db.store().beat("never registered", LEASE).await.unwrap(), None);
    assert!(db.store().consumers().await.unwrap().is_empty());
}

async fn a_draining_consumer_still_beats_and_finishes(db: Db) {
    db.enqueue(2).await;
    let mut a = db.consumer("a").await;
    let claim = a.claim_one().await;
    db.leave("a", Left::Draining).await;
    assert_eq!(a.store.beat("a", LEASE).await.unwrap().unwrap(), [claim.attempt]);
    assert_eq!(db.store().consumers().await.unwrap()[0].state, "draining");
    let got = a.exchange(&[ended(claim, &Outcome::succeeded(None))], 1).await;
    assert!(got.claims.is_empty());
    db.holds(0).await;
}

async fn only_a_lease_that_was_read_before_is_fenced(db: Db) {
    let mut store = db.store();
    db.consumer("a").await;
    let lease_until = db.int("SELECT count(*) FROM permitq_consumer").await; // any number that is not the lease
    assert!(!store.fence(&Expired { consumer: "a".into(), lease_until }).await.unwrap());
    db.age("permitq_consumer", "lease_until", Duration::from_hours(1), "id = 'a'").await;
    assert!(!store.fence(&Expired { consumer: "a".into(), lease_until }).await.unwrap());
    let read = store.expired().await.unwrap().remove(0);
    assert_eq!(read.consumer, "a");
    assert!(store.fence(&read).await.unwrap());
    assert!(!store.fence(&read).await.unwrap(), "once");
    assert!(store.expired().await.unwrap().is_empty());
}

async fn a_consumer_that_beats_in_between_is_not_fenced(db: Db) {
    let mut store = db.store();
    db.consumer("a").await;
    db.age("permitq_consumer", "lease_until", Duration::from_hours(1), "id = 'a'").await;
    let read = store.expired().await.unwrap().remove(0);
    assert!(store.beat("a", LEASE).await.unwrap().is_some());
    assert!(!store.fence(&read).await.unwrap());
    // Expired again, but not with the lease that was read.
    db.age("permitq_consumer", "lease_until", Duration::from_hours(2), "id = 'a'").await;
    assert!(!store.fence(&read).await.unwrap());
    assert!(store.beat("a", LEASE).await.unwrap().is_some());
}

async fn consumers_gone_for_long_are_forgotten(db: Db) {
    for id in ["alive", "fresh", "old"] {
        db.consumer(id).await;
    }
    db.leave("fresh", Left::Gone).await;
    db.leave("old", Left::Gone).await;
    db.age("permitq_consumer", "lease_until", Duration::from_hours(48), "id <> 'fresh'").await;
    assert_eq!(db.store().retire_consumers(Duration::from_hours(24)).await.unwrap(), 1);
    assert_eq!(db.int("SELECT count(*) FROM permitq_consumer WHERE id = 'old'").await, 0);
    assert_eq!(db.int("SELECT count(*) FROM permitq_consumer").await, 2);
}
