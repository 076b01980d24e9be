//! P8: stopping in order.

use std::time::Duration;

use permitq::downstream::stub::StubOptions;
use permitq::model::{NewTask, State};
use tokio::time::sleep;

use crate::support::Db;
use crate::support::site::{Member, Site, until};

const SHORT: Duration = Duration::from_millis(700);
const LONG: Duration = Duration::from_millis(1900);

contract! {
    sigterm_lets_running_calls_end_and_claims_nothing_new,
    when_the_grace_is_over_the_rest_is_handed_back,
    what_is_handed_back_is_free_at_once_where_hanging_up_ends_the_call,
    a_second_signal_skips_the_wait,
    what_a_forced_stop_interrupted_runs_again_at_once,
    a_draining_consumer_beats_until_its_last_result_is_written,
    an_answer_that_comes_with_the_signal_is_recorded,
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

async fn when_the_grace_is_over_the_rest_is_handed_back(db: Db) {
    the_rest_is_handed_back(db, false).await;
}

async fn what_is_handed_back_is_free_at_once_where_hanging_up_ends_the_call(db: Db) {
    the_rest_is_handed_back(db, true).await;
}

/// At no cost of an attempt. The permits cool, unless hanging up ends the calls.
async fn the_rest_is_handed_back(db: Db, stop_on_disconnect: bool) {
    let stub = StubOptions { limit: Some(3), stop_on_disconnect, ..StubOptions::default() };
    let site = Site::with(db, stub, &format!("stops_on_disconnect = {stop_on_disconnect}")).await;
    let tasks = site.enqueue(6, LONG).await;
    let mut member = site.start_with(&["run"], &[("PERMITQ_SHUTDOWN__GRACE", "100ms")]);
    site.in_flight(3).await;
    member.terminate();
    assert_eq!(member.exit_code().await, Some(3));
    assert_eq!(site.db.int("SELECT count(*) FROM permitq_task WHERE state = 'running'").await, 0);
    site.db.holds(if stop_on_disconnect { 0 } else { 3 }).await;
    for task in &tasks[..3] {
        let task = site.db.task(*task).await;
        assert_eq!((task.state, task.attempts, task.claim_no), (State::Pending, 0, 1));
        assert_eq!(site.db.store().attempts(task.id).await.unwrap()[0].outcome, "handed_back");
    }
    site.in_flight(if stop_on_disconnect { 0 } else { 3 }).await;
    let _other = site.consumer("other");
    site.settled().await;
    site.cap_held(3).await;
}

/// The first signal cancels no call; the second hangs up on all of them.
async fn a_second_signal_skips_the_wait(db: Db) {
    let site = Site::new(db, 6).await;
    let patient = [("PERMITQ_SHUTDOWN__GRACE", "5m"), ("PERMITQ_DOWNSTREAM__DEFAULT__CALL_TIMEOUT", "5m")];
    for (round, signal) in [Member::terminate, Member::interrupt].into_iter().enumerate() {
        let tasks = site.enqueue(3, Duration::from_mins(2)).await;
        let mut member = site.start_with(&["run"], &patient);
        let calls = u32::try_from(3 * (round + 1)).unwrap();
        site.in_flight(calls).await;
        signal(&member);
        until("draining", async || {
            site.db.int("SELECT count(*) FROM permitq_consumer WHERE state = 'draining'").await == 1
        })
        .await;
        assert_eq!(site.stub.summary().callers_gone, u64::from(calls) - 3);
        signal(&member);
        assert_eq!(member.exit_code().await, Some(4));
        until("all hung up", async || site.stub.summary().callers_gone == u64::from(calls)).await;
        site.db.holds(calls.into()).await;
        for task in tasks {
            assert_eq!(site.db.task(task).await.state, State::Pending);
            // Out of the next round's way.
            site.db.store().cancel(task, "test").await.unwrap();
        }
    }
}

/// The keys are their tasks', before and after.
async fn what_a_forced_stop_interrupted_runs_again_at_once(db: Db) {
    let site = Site::new(db, 6).await;
    let keyed: Vec<_> =
        (0..3).map(|n| NewTask::new("call", r#"{"ms": 1900}"#).key(format!("minute/{n}"))).collect();
    let mut store = site.db.store();
    let tasks = store.enqueue(&keyed).await.unwrap();
    let mut member = site.consumer("first");
    site.in_flight(3).await;
    member.terminate();
    until("draining", async || {
        site.db.int("SELECT count(*) FROM permitq_consumer WHERE state = 'draining'").await == 1
    })
    .await;
    member.terminate();
    assert_eq!(member.exit_code().await, Some(4));
    let again = store.enqueue(&keyed).await.unwrap();
    for (first, again) in tasks.iter().zip(&again) {
        assert_eq!((again.id, again.created), (first.id, false));
    }

    let _second = site.consumer("second");
    // While the three calls that were given up still run.
    site.in_flight(6).await;
    site.settled().await;
    site.cap_held(6).await;
    assert_eq!(site.stub.summary().calls, 6);
    for task in tasks {
        let task = site.db.task(task.id).await;
        assert_eq!((task.state, task.claim_no, task.attempts), (State::Succeeded, 2, 1));
    }
    assert_eq!(site.db.int("SELECT count(*) FROM permitq_task").await, 3);
}

/// Its call goes on for two leases after the signal, and others wait to take what is abandoned.
async fn a_draining_consumer_beats_until_its_last_result_is_written(db: Db) {
    let settings = [
        ("PERMITQ_DOWNSTREAM__DEFAULT__CALL_TIMEOUT", "1m"),
        ("PERMITQ_LEASE__DURATION", "3s"),
        ("PERMITQ_LEASE__HEARTBEAT", "400ms"),
    ];
    let site = Site::new(db, 2).await;
    let tasks = site.enqueue(1, Duration::from_secs(7)).await;
    let mut member = site.start_with(&["run", "--name", "c"], &settings);
    site.in_flight(1).await;
    let _others: Vec<_> =
        (0..3).map(|n| site.start_with(&["run", "--name", &format!("other{n}")], &settings)).collect();
    site.alive(4).await;
    member.terminate();
    site.watched(async {
        while site.stub.summary().in_flight == 1 {
            assert_eq!(site.db.store().expired().await.unwrap(), []);
            sleep(Duration::from_millis(50)).await;
        }
        assert_eq!(member.exit_code().await, Some(0));
    })
    .await;
    site.nothing_lost_or_doubled(&tasks, 2).await;
}

/// Around the moment of the answers, before and after.
async fn an_answer_that_comes_with_the_signal_is_recorded(db: Db) {
    let site = Site::new(db, 3).await;
    let mut tasks = Vec::new();
    for round in 0..10 {
        tasks.extend(site.enqueue(3, Duration::from_millis(300)).await);
        let mut member = site.consumer(&format!("c{round}"));
        site.in_flight(3).await;
        sleep(Duration::from_millis(270 + 6 * round)).await;
        member.terminate();
        assert_eq!(member.exit_code().await, Some(0));
        // Before anybody else could make up for it.
        site.nothing_lost_or_doubled(&tasks, 3).await;
        assert!(site.stub.summary().log.iter().all(|call| call.status == Some(200)));
    }
}

async fn an_idle_consumer_stops_at_once(db: Db) {
    let site = Site::new(db, 1).await;
    let mut member = site.consumer("c");
    until("registered", async || site.db.int("SELECT count(*) FROM permitq_consumer").await == 1).await;
    member.terminate();
    assert_eq!(member.exit_code().await, Some(0));
}
