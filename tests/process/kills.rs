//! Killed, again and again: nothing shrinks, nothing is lost, and whoever kills its consumers is stopped.

use std::collections::VecDeque;
use std::time::Duration;

use permitq::model::{NewTask, State};
use serde_json::Value;
use tokio::time::sleep;

use crate::support::Db;
use crate::support::site::{BRIEF, HOLD, Member, Site, until};

contract! {
    the_next_call_starts_when_the_given_up_one_must_be_over,
    kill_after_kill_shrinks_nothing,
    a_rolling_deploy_loses_nothing,
    a_killed_consumer_without_its_row_is_an_orphan_too,
    a_task_that_kills_its_consumers_ends_failed,
}

const CALL: Duration = Duration::from_millis(700);
/// A pass and a poll, on a machine that is busy.
const SOON: Duration = Duration::from_secs(5);
const RUNNING: &str = "SELECT count(*) FROM permitq_task WHERE state = 'running'";

/// One consumer of one slot, whose calls are brief, and who may lose a task often.
fn brief(site: &Site, name: &str) -> Member {
    let settings = [&BRIEF[..], &[("PERMITQ_RETRY__MAX_ATTEMPTS", "50")]].concat();
    site.start_with(&["run", "--name", name, "--slots", "1"], &settings)
}

/// Takes the one who holds a permit of this task, or of any, out of the fleet.
async fn holder(site: &Site, fleet: &mut VecDeque<Member>, task: Option<i64>) -> Member {
    loop {
        let holders = site.db.store().holders().await.unwrap();
        let mut pids = holders.iter().filter(|h| h.why.is_none() && (task.is_none() || h.task == task));
        if let Some(pid) = pids.find_map(|holder| holder.pid)
            && let Some(at) = fleet.iter().position(|member| i64::from(member.pid()) == pid)
        {
            return fleet.remove(at).unwrap();
        }
        sleep(Duration::from_millis(10)).await;
    }
}

async fn the_next_call_starts_when_the_given_up_one_must_be_over(db: Db) {
    let site = Site::new(db, 1).await;
    let tasks = site.enqueue(3, CALL).await;
    let first = site.consumer("first");
    site.in_flight(1).await;
    let _others = [site.consumer("a"), site.consumer("b")];
    first.kill();
    site.watched(site.settled()).await;
    site.cap_held(1).await;

    let mut attempts = Vec::new();
    for task in tasks {
        attempts.extend(site.db.store().attempts(task).await.unwrap());
    }
    attempts.sort_by_key(|attempt| attempt.claimed_at);
    assert_eq!((attempts.len(), &*attempts[0].outcome), (4, "abandoned"));
    let waited = attempts[1].claimed_at.duration_since(attempts[0].claimed_at).unsigned_abs();
    assert!((HOLD..HOLD + SOON).contains(&waited), "the next call after {waited:?}");
}

async fn kill_after_kill_shrinks_nothing(db: Db) {
    let site = Site::new(db, 3).await;
    let call = Duration::from_millis(900);
    let mut fleet: VecDeque<_> = (0..3).map(|n| brief(&site, &format!("c{n}"))).collect();
    site.watched(async {
        for round in 0..12 {
            site.enqueue(1, call).await;
            holder(&site, &mut fleet, None).await.kill();
            fleet.push_back(brief(&site, &format!("r{round}")));
        }
        site.settled().await;
        site.enqueue(3, call).await;
        site.in_flight(3).await;
    })
    .await;
    site.cap_held(3).await;
    assert!(site.abandoned().await > 0, "nobody was killed while it held a call");

    // Nobody is left who could change anything: each permit can be traced.
    fleet.into_iter().for_each(Member::kill);
    let permits = site.permitq(&["permits", "--json"]).output().unwrap();
    let permits: Value = serde_json::from_slice(&permits.stdout).unwrap();
    assert_eq!(permits["semaphores"][0]["in_use"], 3, "{permits}");
    assert_eq!(site.db.int("SELECT count(*) FROM permitq_permit").await, 3);
    let holders = permits["holders"].as_array().unwrap();
    assert_eq!(holders.len(), 3, "{permits}");
    for holder in holders {
        for field in ["task", "claim_no", "consumer", "host", "pid", "since", "until"] {
            assert!(!holder[field].is_null(), "no {field} in {holder}");
        }
    }
}

/// SIGTERM, and SIGKILL before the grace is over, one after the other.
async fn a_rolling_deploy_loses_nothing(db: Db) {
    let site = Site::new(db, 3).await;
    let tasks = site.enqueue(12, CALL).await;
    let mut fleet: VecDeque<_> = (0..4).map(|n| brief(&site, &format!("old{n}"))).collect();
    site.in_flight(3).await;
    site.watched(async {
        for round in 0..8 {
            let old = fleet.pop_front().unwrap();
            old.terminate();
            sleep(Duration::from_millis(200)).await;
            old.kill();
            fleet.push_back(brief(&site, &format!("new{round}")));
        }
        site.settled().await;
    })
    .await;
    site.cap_held(3).await;
    for task in tasks {
        assert_eq!(site.db.task(task).await.state, State::Succeeded);
    }
    assert!(site.abandoned().await > 0, "all ended in time");
}

async fn a_killed_consumer_without_its_row_is_an_orphan_too(db: Db) {
    let site = Site::new(db, 1).await;
    let task = site.enqueue(1, CALL).await[0];
    let member = site.consumer("c");
    site.in_flight(1).await;
    member.kill();
    assert_eq!(site.db.sql("DELETE FROM permitq_consumer").await, 1);
    let _reclaimer = site.start(&["run", "--roles", "reclaim"]);
    site.watched(async {
        site.state(task, State::Pending).await;
        until("its permit is back", async || site.db.in_use().await == 0).await;
    })
    .await;
    let _other = site.consumer("other");
    site.settled().await;
    site.cap_held(1).await;
}

async fn a_task_that_kills_its_consumers_ends_failed(db: Db) {
    let site = Site::new(db, 3).await;
    let poison = NewTask { max_attempts: Some(3), priority: 9, ..NewTask::new("call", r#"{"ms": 900}"#) };
    let poison = site.db.enqueue_one(poison.key("poison")).await;
    let others = site.enqueue(6, Duration::from_millis(50)).await;
    let mut fleet: VecDeque<_> = (0..2).map(|n| brief(&site, &format!("c{n}"))).collect();
    for round in 1..=3 {
        let victim = holder(&site, &mut fleet, Some(poison)).await;
        let calls = async || site.stub.summary().log.iter().filter(|call| call.biz_key.is_some()).count();
        until("its call", async || calls().await == round).await;
        victim.kill();
        fleet.push_back(brief(&site, &format!("r{round}")));
    }
    site.settled().await;
    site.cap_held(3).await;
    let poison = site.db.task(poison).await;
    assert_eq!((poison.state, poison.attempts, poison.claim_no), (State::Failed, 3, 3));
    assert!(poison.error.unwrap().contains("attempt 3 of 3"));
    for task in others {
        assert_eq!(site.db.task(task).await.state, State::Succeeded);
    }
    assert_eq!(site.db.int(RUNNING).await, 0);
}
