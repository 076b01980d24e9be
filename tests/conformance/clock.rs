//! The database's clock steps. No cooling ends before its call must be over, as time itself has it.

use std::time::Duration;

use permitq::clock::Clock;
use permitq::model::{Outcome, Why};
use permitq::upkeep::Upkeep;

use crate::support::{Db, ended, upkeep};

contract![
    who_has_just_started_leaves_coolings_to_those_who_watched_the_clock,
    who_is_the_oldest_or_alone_waits_for_nobody,
    coolings_are_judged_by_the_instant_that_was_compared,
];

/// A permit that cools; then the clock steps forward, beyond its bound.
async fn cooling_and_a_step(db: &Db) {
    db.enqueue(1).await;
    let mut a = db.consumer("a").await;
    let claim = a.claim_one().await;
    a.finish(&[ended(claim, &Outcome::unclear(Why::Timeout, "slow"))]).await;
    db.age("permitq_cooling", "until", Duration::from_hours(1), "1 = 1").await;
}

/// It has never seen the clock before the step, and so cannot see that there was one.
async fn who_has_just_started_leaves_coolings_to_those_who_watched_the_clock(db: Db) {
    cooling_and_a_step(&db).await;
    let (clock, hold) = (Clock::held(), Duration::from_millis(100));
    let mut young = Upkeep::new(&db.database, clock.clone(), upkeep(hold));
    young.pass().await.unwrap();
    db.holds(1).await;
    // It has watched for as long as any permit can be held: whatever cools is over.
    clock.advance(hold);
    young.pass().await.unwrap();
    db.holds(0).await;
}

async fn who_is_the_oldest_or_alone_waits_for_nobody(db: Db) {
    cooling_and_a_step(&db).await;
    let (clock, hold) = (Clock::held(), Duration::from_hours(1));
    let mut young = Upkeep::new(&db.database, clock.clone(), upkeep(hold));
    young.pass().await.unwrap();
    db.holds(1).await;
    db.vanish("a").await;
    young.pass().await.unwrap();
    db.holds(0).await;

    // The only consumer is its own process, which registers when upkeep has begun: nobody was there before it.
    let mut own = Upkeep::new(&db.database, clock, upkeep(hold));
    own.begin().await.unwrap();
    db.enqueue(1).await;
    let mut b = db.consumer("b").await;
    let claim = b.claim_one().await;
    b.finish(&[ended(claim, &Outcome::unclear(Why::Timeout, "slow"))]).await;
    db.age("permitq_cooling", "until", Duration::from_hours(1), "1 = 1").await;
    own.pass().await.unwrap();
    db.holds(0).await;
}

/// The clock may step after it was compared and before the deed.
async fn coolings_are_judged_by_the_instant_that_was_compared(db: Db) {
    let before = db.store().clock().await.unwrap();
    cooling_and_a_step(&db).await;
    let mut store = db.store();
    let hours = 3_600_000_000;
    assert_eq!(store.end_coolings("default", before - 2 * hours, 9).await.unwrap(), 0);
    db.holds(1).await;
    assert_eq!(store.end_coolings("default", before, 9).await.unwrap(), 1);
    db.holds(0).await;
}
