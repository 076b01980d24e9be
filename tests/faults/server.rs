//! What the server does: it restarts, dies, turns read-only, ends connections and lets nobody in.

use std::fs::File;
use std::time::Duration;

use loadtest::proxy::Proxy;
use loadtest::servers::Server;
use permitq::store::{Database, Dialect};
use tempfile::TempDir;
use tokio::task::block_in_place;
use tokio::time::{Instant, sleep};

use super::{CALL, kill_connections, nothing_lost_or_doubled, registered, three};
use crate::support::Db;
use crate::support::site::{Site, until};

mod alone {
    use super::*;

    servers![alone: a_server_that_restarts_and_dies_is_waited_for, a_read_only_server_is_waited_for_and_left, a_full_server_is_waited_for, an_idle_fleet_outlives_a_restart_quietly,];
}

servers![killed_connections_are_replaced,];

async fn killed_connections_are_replaced(db: Db) {
    let site = Site::new(db, 3).await;
    let tasks = site.enqueue(30, CALL).await;
    let _members = three(&site);
    registered(&site, 3).await;
    for _ in 0..20 {
        kill_connections(&site.db).await;
        sleep(Duration::from_millis(70)).await;
    }
    nothing_lost_or_doubled(&site, &tasks, 3).await;
}

/// `Db`'s own connections go with the server, so a new one looks at what is left.
async fn a_server_that_restarts_and_dies_is_waited_for(mut server: Server) {
    let site = Site::new(Db::alone_on(&server).await, 3).await;
    let tasks = site.enqueue(40, CALL).await;
    let _members = three(&site);
    registered(&site, 3).await;
    site.in_flight(3).await;
    block_in_place(|| server.restart());
    let calls = site.stub.summary().calls;
    until("calls after the restart", async || site.stub.summary().calls > calls + 3).await;
    block_in_place(|| {
        server.kill9();
        server.restart();
    });
    let site = site.reopened().await;
    nothing_lost_or_doubled(&site, &tasks, 3).await;
}

/// Read-only is how a failover looks from a connection that was kept: each is given up, for the next may find a better
/// server.
async fn a_read_only_server_is_waited_for_and_left(mut server: Server) {
    let site = Site::new(Db::alone_on(&server).await, 3).await;
    let tasks = site.enqueue(20, CALL).await;
    let proxy: Proxy = site.proxy().await;
    let mut store = Database::new(&proxy.url(site.db.url())).unwrap().store();
    assert!(store.set_max("default", 3, "ann").await.unwrap());
    let _members = three(&site);
    registered(&site, 3).await;
    site.in_flight(3).await;

    block_in_place(|| server.set_read_only(true));
    for connections in 1..=3 {
        store.set_max("default", 3, "ann").await.unwrap_err();
        assert_eq!(proxy.accepted(), connections);
    }
    sleep(Duration::from_secs(1)).await;
    let stuck = site.stub.summary().calls;
    block_in_place(|| server.set_read_only(false));
    assert!(store.set_max("default", 3, "ann").await.unwrap());
    assert!(stuck < 20, "it was read-only while there was work");
    nothing_lost_or_doubled(&site, &tasks, 3).await;
}

async fn a_full_server_is_waited_for(server: Server) {
    let site = Site::new(Db::alone_on(&server).await, 3).await;
    let tasks = site.enqueue(30, CALL).await;
    let _members = three(&site);
    registered(&site, 3).await;
    site.in_flight(3).await;
    let limit = |n: &str| match site.db.database.dialect() {
        Dialect::Postgres => format!("ALTER ROLE permitq CONNECTION LIMIT {n}"),
        _ => format!("ALTER USER permitq@'127.0.0.1' WITH MAX_USER_CONNECTIONS {n}"),
    };
    block_in_place(|| server.execute(limit("1")));
    kill_connections(&site.db).await;
    sleep(Duration::from_secs(1)).await;
    let stuck = site.stub.summary().calls;
    assert!(stuck < 30, "nobody got in while there was work");
    let none = if site.db.database.dialect() == Dialect::Postgres { "-1" } else { "0" };
    block_in_place(|| server.execute(limit(none)));
    nothing_lost_or_doubled(&site, &tasks, 3).await;
}

/// Nobody has anything to do when it goes, and everybody is there when it is back; in between they do not shout.
async fn an_idle_fleet_outlives_a_restart_quietly(mut server: Server) {
    let site = Site::new(Db::alone_on(&server).await, 3).await;
    let folder = TempDir::new().unwrap();
    let log = folder.path().join("log");
    // The beats and passes of the defaults: those who try again do so by them.
    let settings = [
        ("PERMITQ_LEASE__DURATION", "2m"),
        ("PERMITQ_LEASE__HEARTBEAT", "15s"),
        ("PERMITQ_LEASE__RECLAIM", "15s"),
        ("PERMITQ_CONSUMER__POLL", "1s"),
    ];
    let _member = site.start_logged(&["run"], &settings, File::create(&log).unwrap());
    // Its row is there before it hears so, and whoever does not hear it does not start.
    until("it is registered", async || std::fs::read_to_string(&log).unwrap().contains("registered")).await;
    block_in_place(|| server.kill9());
    let down = Duration::from_secs(6);
    sleep(down).await;
    block_in_place(|| server.restart());
    let site = site.reopened().await;
    let tasks = site.enqueue(3, CALL).await;
    let done = "SELECT count(*) FROM permitq_task WHERE state = 'succeeded'";
    until("all done", async || site.db.int(done).await == 3).await;
    nothing_lost_or_doubled(&site, &tasks, 3).await;
    let said = std::fs::read_to_string(&log).unwrap().lines().filter(|line| line.contains("again")).count();
    assert!(said > 0, "nobody noticed");
    // Three loops, each less than twice a second.
    assert!(said < 6 * usize::try_from(down.as_secs()).unwrap(), "{said} lines in {down:?}");
}

/// A wake-up is a hint: without it, everything is found by polling.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_cannot_listen_polls() {
    let server = tokio::task::spawn_blocking(|| Server::postgres(false)).await.unwrap();
    let site = Site::new(Db::alone_on(&server).await, 3).await;
    let _members = three(&site);
    registered(&site, 3).await;
    let listeners = "FROM pg_stat_activity WHERE query LIKE 'LISTEN%' AND datname = current_database()";
    until("all listen", async || site.db.int(&format!("SELECT count(*) {listeners}")).await == 6).await;
    // Loop, heart, upkeep, scheduler and two listeners of each, and one of the test's own.
    let all = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()";
    until("all connected", async || site.db.int(all).await == 19).await;
    // The connections they have are kept, and nobody gets another.
    block_in_place(|| server.execute("ALTER ROLE permitq CONNECTION LIMIT 1"));
    assert_eq!(site.db.int(&format!("SELECT count(pg_terminate_backend(pid)) {listeners}")).await, 6);
    let row = r#"('call', '{"ms": 200}')"#;
    let began = Instant::now();
    for all in [3, 6, 9] {
        site.db.sql(&format!("INSERT INTO permitq_task (kind, payload) VALUES {row}, {row}, {row}")).await;
        let done = "SELECT count(*) FROM permitq_task WHERE state = 'succeeded'";
        until("found by polling", async || site.db.int(done).await == all).await;
    }
    // A connected listener lets a consumer look every 40 s only.
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    let tasks: Vec<i64> = (1..=9).collect();
    assert_eq!(site.db.int(&format!("SELECT count(*) {listeners}")).await, 0, "nobody listens");
    block_in_place(|| server.execute("ALTER ROLE permitq CONNECTION LIMIT -1"));
    until("all listen again", async || site.db.int(&format!("SELECT count(*) {listeners}")).await == 6).await;
    nothing_lost_or_doubled(&site, &tasks, 3).await;
}
