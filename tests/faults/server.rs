//! What the server does: it restarts, dies, turns read-only, ends connections and lets nobody in.

use std::time::Duration;

use loadtest::proxy::Proxy;
use loadtest::servers::Server;
use permitq::store::{Database, Dialect};
use tokio::task::block_in_place;
use tokio::time::sleep;

use super::{CALL, kill_connections, nothing_lost_or_doubled, registered, three};
use crate::support::Db;
use crate::support::site::{Site, until};

mod alone {
    use super::*;

    servers![alone: a_server_that_restarts_and_dies_is_waited_for, a_read_only_server_is_waited_for_and_left, a_full_server_is_waited_for,];
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
