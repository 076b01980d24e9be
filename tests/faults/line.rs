//! A bad line: slow, torn, closed on one side, forgotten by a firewall.

use std::time::Duration;

use loadtest::proxy::Mode;
use loadtest::servers::Server;
use permitq::store::Dialect;
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use super::{CALL, STEADY, nothing_lost_or_doubled, registered};
use crate::support::Db;
use crate::support::site::{Site, until};

servers![
    a_slow_line_slows_and_breaks_nothing,
    a_hand_over_leaves_no_permit_idle,
    a_torn_line_is_mended,
    connections_that_a_firewall_forgot_are_replaced,
];

/// A dozen round trips make an exchange.
async fn a_slow_line_slows_and_breaks_nothing(db: Db) {
    let site = Site::new(db, 2).await;
    let tasks = site.enqueue(4, CALL).await;
    let proxy = site.proxy().await;
    let patient = [
        ("PERMITQ_DATABASE__STATEMENT_TIMEOUT", "10s"),
        ("PERMITQ_LEASE__DURATION", "30s"),
        ("PERMITQ_LEASE__HEARTBEAT", "2s"),
        // What a claim needs to reach its call counts as well.
        ("PERMITQ_DOWNSTREAM__DEFAULT__START_WINDOW", "20s"),
    ];
    let _members: Vec<_> = (1..=2).map(|n| site.behind(&proxy, &format!("c{n}"), &patient)).collect();
    registered(&site, 2).await;
    proxy.set(Mode::Delay(Duration::from_millis(300)));
    nothing_lost_or_doubled(&site, &tasks, 2).await;
}

/// The permit covers the call and the recording of its end, and nothing else: the next claim is part of that transaction,
/// so that the permit is never free, however long the line makes it.
async fn a_hand_over_leaves_no_permit_idle(db: Db) {
    let site = Site::new(db, 1).await;
    let proxy = site.proxy().await;
    let patient = [
        ("PERMITQ_DATABASE__STATEMENT_TIMEOUT", "10s"),
        ("PERMITQ_LEASE__DURATION", "30s"),
        ("PERMITQ_LEASE__HEARTBEAT", "2s"),
        ("PERMITQ_DOWNSTREAM__DEFAULT__START_WINDOW", "20s"),
    ];
    let _member = site.behind(&proxy, "c", &patient);
    registered(&site, 1).await;
    let tasks = site.enqueue(3, CALL).await;
    site.in_flight(1).await;
    proxy.set(Mode::Delay(Duration::from_millis(200)));
    let idle = "SELECT count(*) FROM permitq_semaphore
                 WHERE in_use = 0 AND (SELECT count(*) FROM permitq_attempt) < 3";
    until("three calls", async || {
        assert_eq!(site.db.int(idle).await, 0, "nobody held the permit");
        site.db.in_use().await == 0
    })
    .await;
    nothing_lost_or_doubled(&site, &tasks, 1).await;
}

async fn a_torn_line_is_mended(db: Db) {
    let site = Site::new(db, 3).await;
    let tasks = site.enqueue(30, CALL).await;
    let proxy = site.proxy().await;
    let _members: Vec<_> = (1..=3).map(|n| site.behind(&proxy, &format!("c{n}"), &STEADY)).collect();
    registered(&site, 3).await;
    for mode in [Mode::Reset, Mode::HalfClose, Mode::Throttle(2_000)].repeat(3) {
        proxy.set(mode);
        sleep(Duration::from_millis(100)).await;
        proxy.set(Mode::Pass);
        proxy.cut();
        sleep(Duration::from_millis(200)).await;
    }
    nothing_lost_or_doubled(&site, &tasks, 3).await;
}

/// Nobody is told, so every connection must find out by itself: also the one that only listens.
async fn connections_that_a_firewall_forgot_are_replaced(db: Db) {
    let site = Site::new(db, 3).await;
    let proxy = site.proxy().await;
    let _member = site.behind(&proxy, "c", &STEADY);
    // Loop, heart, upkeep and scheduler, and on PostgreSQL the two that listen.
    let connections = if site.db.database.dialect() == Dialect::Postgres { 6 } else { 4 };
    until("all connected", async || proxy.open() == connections).await;
    let before = proxy.accepted();
    proxy.forget();
    until("all connected anew", async || proxy.accepted() >= before + connections as u64).await;
    let tasks = site.enqueue(6, CALL).await;
    nothing_lost_or_doubled(&site, &tasks, 3).await;
}

/// What a firewall forgot is not missed at the other end: the server looks for its clients within a minute, and not after
/// two hours. Its kernel's keep-alive timer runs (`tr` is 2 in `proc_pid_net(5)`) and is over by then (`tm->when`, in
/// hundredths of a second).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_postgres_server_looks_for_clients_that_are_gone() {
    let server = spawn_blocking(|| Server::postgres(false)).await.unwrap();
    let db = Db::alone_on(&server).await;
    let mut store = db.store();
    store.clock().await.unwrap();
    let port = db.url().rsplit_once(':').and_then(|(_, rest)| rest.split('/').next()).unwrap();
    let port = format!(":{:04X}", port.parse::<u16>().unwrap());
    until("a timer of at most a minute", async || {
        let table = std::fs::read_to_string("/proc/self/net/tcp").unwrap();
        let rows = table.lines().map(|row| row.split_whitespace().collect::<Vec<_>>());
        let ours = rows.filter(|row| row[1].ends_with(&port));
        let mut timers = ours.filter_map(|row| row[5].split_once(':'));
        timers.any(|(timer, when)| timer == "02" && u64::from_str_radix(when, 16).unwrap() <= 6_000)
    })
    .await;
}
