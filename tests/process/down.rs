//! A downstream that goes down under a fleet, and what a person pauses.

use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use permitq::downstream::stub::{self, Fault, Stub, StubOptions};
use permitq::model::State;
use tokio::time::sleep;

use crate::support::Db;
use crate::support::site::{Member, Site, until};

contract! {
    a_downstream_that_goes_down_burns_no_attempt,
    a_probe_whose_process_is_killed_is_followed_by_another,
    a_pause_is_felt_within_a_second_and_survives_restarts,
}

/// A place for a downstream that comes and goes.
struct Place(SocketAddr, String);

impl Place {
    fn new() -> Self {
        let addr = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        Self(addr, format!("http://{addr}/call"))
    }

    fn fleet(&self, site: &Site, n: usize) -> Vec<Member> {
        let settings = [("PERMITQ_DOWNSTREAM__DEFAULT__URL", &*self.1)];
        (0..n).map(|n| site.start_with(&["run", "--name", &format!("c{n}")], &settings)).collect()
    }

    async fn up(&self) -> Stub {
        self.stub(0.0).await
    }

    /// It answers 503 and nothing else.
    async fn sick(&self) -> Stub {
        self.stub(1.0).await
    }

    async fn stub(&self, fault_rate: f64) -> Stub {
        let faults = vec![Fault::Status(503)];
        let options =
            StubOptions { listen: self.0, limit: Some(4), faults, fault_rate, ..StubOptions::default() };
        until("the one before has left its place", async || TcpListener::bind(self.0).is_ok()).await;
        stub::start(options).await.unwrap()
    }
}

async fn failures(site: &Site) -> i64 {
    site.db.int("SELECT coalesce(max(failures), 0) FROM permitq_pause").await
}

async fn a_downstream_that_goes_down_burns_no_attempt(db: Db) {
    let (site, place) = (Site::new(db, 4).await, Place::new());
    let up = place.up().await;
    let _fleet = place.fleet(&site, 3);
    site.alive(3).await;
    site.enqueue(8, Duration::from_millis(20)).await;
    site.settled().await;
    drop(up);
    let sick = place.sick().await;
    let tasks = site.enqueue(40, Duration::from_millis(20)).await;
    until("a probe failed", async || failures(&site).await >= 2).await;
    // One for each permit, one for each that was on its way, and the probes.
    let calls = sick.summary().calls;
    assert!(calls <= 12, "{calls} calls");
    drop(sick);
    until("and one that was refused", async || failures(&site).await >= 3).await;
    let shown = site.permitq(&["permits"]).output().unwrap();
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("downstream default"), "{shown}");
    let waiting = tasks.last().unwrap().to_string();
    let shown = site.permitq(&["task", "show", &waiting]).output().unwrap();
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("downstream default was found down"), "{shown}");
    let up = place.up().await;
    site.settled().await;
    for task in tasks {
        let task = site.db.task(task).await;
        assert_eq!((task.state, task.attempts), (State::Succeeded, 1));
    }
    assert_eq!(up.summary().calls, 40, "one good call each");
    assert!(site.db.store().pauses().await.unwrap().is_empty());
    let refused = site.db.int("SELECT count(*) FROM permitq_attempt WHERE outcome = 'handed_back'").await;
    assert!(refused <= 20, "{refused} calls met a downstream that was down");
}

async fn a_probe_whose_process_is_killed_is_followed_by_another(db: Db) {
    let (site, place) = (Site::new(db, 4).await, Place::new());
    let mut fleet = place.fleet(&site, 3);
    site.alive(3).await;
    let tasks = site.enqueue(6, Duration::from_millis(1500)).await;
    until("it is found down", async || failures(&site).await >= 1).await;
    let up = place.up().await;
    until("a probe is under way", async || up.summary().in_flight == 1).await;
    let holders = site.db.store().holders().await.unwrap();
    assert_eq!(holders.len(), 1, "nobody but the probe: {holders:?}");
    let at = fleet.iter().position(|member| Some(i64::from(member.pid())) == holders[0].pid).unwrap();
    fleet.remove(at).kill();
    site.settled().await;
    for task in &tasks {
        assert_eq!(site.db.task(*task).await.state, State::Succeeded);
    }
    assert_eq!(site.abandoned().await, 1, "the probe that died");
    assert!(site.db.store().pauses().await.unwrap().is_empty());
    assert_eq!(up.summary().overruns, 0);
}

async fn a_pause_is_felt_within_a_second_and_survives_restarts(db: Db) {
    let site = Site::new(db, 4).await;
    let call = Duration::from_millis(100);
    let tasks = site.enqueue(60, call).await;
    let mut fleet = vec![site.consumer("a"), site.consumer("b")];
    site.in_flight(4).await;
    for what in [&["fleet"][..], &["kind", "call"], &["semaphore", "default"], &["downstream", "default"]] {
        let paused = site.permitq(&[&["pause"], what].concat()).output().unwrap();
        assert!(paused.status.success(), "{paused:?}");
        sleep(Duration::from_secs(1) + call).await;
        fleet.remove(0).kill();
        fleet.push(site.consumer("again"));
        let calls = site.stub.summary().calls;
        sleep(Duration::from_millis(500)).await;
        assert_eq!((site.stub.summary().calls, site.stub.summary().in_flight), (calls, 0), "{what:?}");
        let resumed = site.permitq(&[&["resume"], what].concat()).output().unwrap();
        assert!(resumed.status.success(), "{resumed:?}");
        until("it goes on", async || site.stub.summary().calls > calls).await;
    }
    site.nothing_lost_or_doubled(&tasks, 4).await;
}
