//! P8: stopping in order.

use std::time::Duration;

use permitq::model::State;

use crate::support::Db;
use crate::support::site::{Site, until};

const SHORT: Duration = Duration::from_millis(700);
const LONG: Duration = Duration::from_millis(1900);

contract! {
    sigterm_lets_running_calls_end_and_claims_nothing_new,
    when_the_grace_is_over_the_rest_is_handed_back,
    a_second_signal_skips_the_wait,
    an_idle_consumer_stops_at_once,
}

async fn sigterm_lets_running_calls_end_and_claims_nothing_new(db: Db) {
    let site = Site::new(db, 1).await;
    let tasks = site.enqueue(2, SHORT).await;
    let mut member = site.consumer("c");
    site.in_flight(1).await;
    member.terminate();
    assert_eq!(member.exit_code().await, Some(0));
    assert_eq!(site.db.task(tasks[0]).await.state, State::Succeeded);
    assert_eq!(site.db.task(tasks[1]).await.state, State::Pending);
    site.db.holds(0).await;
    assert_eq!(site.db.int("SELECT count(*) FROM permitq_consumer WHERE state = 'gone'").await, 1);
}

/// The rest is handed back: its permit cools, and the attempt costs nothing.
async fn when_the_grace_is_over_the_rest_is_handed_back(db: Db) {
    let site = Site::new(db, 1).await;
    let task = site.enqueue(1, LONG).await[0];
    let mut member = site.start_with(&["run"], &[("PERMITQ_SHUTDOWN__GRACE", "100ms")]);
    site.in_flight(1).await;
    member.terminate();
    assert_eq!(member.exit_code().await, Some(3));
    let handed_back = site.db.task(task).await;
    assert_eq!((handed_back.state, handed_back.attempts, handed_back.claim_no), (State::Pending, 0, 1));
    site.db.holds(1).await;
    let log = site.db.store().attempts(task).await.unwrap();
    assert_eq!(log[0].outcome, "handed_back");
    let _other = site.consumer("other");
    site.settled().await;
    site.cap_held(1).await;
}

async fn a_second_signal_skips_the_wait(db: Db) {
    let site = Site::new(db, 1).await;
    let task = site.enqueue(1, Duration::from_mins(2)).await[0];
    let patient = [("PERMITQ_SHUTDOWN__GRACE", "5m"), ("PERMITQ_DOWNSTREAM__DEFAULT__CALL_TIMEOUT", "5m")];
    let mut member = site.start_with(&["run"], &patient);
    site.in_flight(1).await;
    member.terminate();
    until("draining", async || {
        site.db.int("SELECT count(*) FROM permitq_consumer WHERE state = 'draining'").await == 1
    })
    .await;
    member.terminate();
    assert_eq!(member.exit_code().await, Some(4));
    assert_eq!(site.db.task(task).await.state, State::Pending);
    site.db.holds(1).await;
}

async fn an_idle_consumer_stops_at_once(db: Db) {
    let site = Site::new(db, 1).await;
    let mut member = site.consumer("c");
    until("registered", async || site.db.int("SELECT count(*) FROM permitq_consumer").await == 1).await;
    member.terminate();
    assert_eq!(member.exit_code().await, Some(0));
}
