//! Three MariaDB nodes, all written to. A conflict between nodes shows at COMMIT only.

use std::sync::atomic::Ordering;
use std::time::Duration;

use loadtest::servers::Server;
use loadtest::servers::cluster::Galera;
use permitq::model::{NewTask, Outcome};
use permitq::store::{Database, Recorded};
use sqlx::{AnyConnection, AssertSqlSafe, Connection, Executor};
use tokio::task::block_in_place;
use tokio::time::timeout;

use crate::load::Load;
use crate::support::site::{Site, until};
use crate::support::{Consumer, Db, ended, registration};

/// One cluster for all of it, as starting one is what costs.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_nodes_are_one_queue() {
    let mut cluster = block_in_place(Galera::start);
    every_table_has_a_primary_key(&cluster).await;
    one_task_is_started_on_one_node(&cluster).await;
    who_moves_to_another_node_finds_its_claims(&cluster).await;
    a_node_that_becomes_read_only_is_left(&mut cluster).await;
    a_node_is_killed_under_load(cluster).await;
}

/// Galera tells rows apart by their primary key.
async fn every_table_has_a_primary_key(cluster: &Galera) {
    let db = Db::of_hosts(&cluster.database("keys")).await.migrated().await;
    let without = "SELECT count(*) FROM information_schema.tables t
                    WHERE t.table_schema = 'keys' AND t.table_type = 'BASE TABLE'
                      AND NOT EXISTS (SELECT 1 FROM information_schema.table_constraints c
                                       WHERE c.table_schema = t.table_schema AND c.table_name = t.table_name
                                         AND c.constraint_type = 'PRIMARY KEY')";
    assert_eq!(db.int(without).await, 0);
}

/// Both nodes pick the same row, each under its own lock; at COMMIT one of them is told to begin again.
async fn one_task_is_started_on_one_node(cluster: &Galera) {
    let urls = cluster.database("race");
    let db = Db::of_hosts(&urls).await.migrated().await;
    let mut racers = Vec::new();
    for url in &urls {
        let name = format!("c{}", racers.len());
        let mut store = Database::new(url).unwrap().store();
        store.register(&registration(&name)).await.unwrap();
        racers.push(Consumer::new(&name, store));
    }
    let before = conflicts(cluster).await;
    for round in 0..60 {
        // More permits than tasks, so that only the task's own row can decide; and one permit, where the semaphore's does.
        db.set_max(if round % 2 == 0 { 4 } else { 1 }).await;
        db.enqueue_one(NewTask::new("call", "{}")).await;
        let [one, two, three] = racers.as_mut_slice() else { unreachable!() };
        let (one, two, three) = tokio::join!(one.claim(1), two.claim(1), three.claim(1));
        let mut claims = Vec::new();
        for (claimed, racer) in [one, two, three].into_iter().zip(&mut racers) {
            claims.extend(claimed.into_iter().next().map(|claim| (claim, racer)));
        }
        let (claim, owner) = claims.pop().expect("a due task and a free permit");
        assert!(claims.is_empty(), "one task was started on several nodes");
        let done = Outcome::succeeded("{}".to_owned());
        assert_eq!(owner.finish(&[ended(claim, &done)]).await, [Recorded::Done]);
    }
    assert!(conflicts(cluster).await > before, "nobody met: this run has shown nothing");
    until("every node in step", async || db.in_use().await == 0).await;
    db.conservation().await;
}

/// Who claims on one node and ends on another is not taken for somebody who lost the claim, however far that node lags.
async fn who_moves_to_another_node_finds_its_claims(cluster: &Galera) {
    let urls = cluster.database("moves");
    let db = Db::of_hosts(&urls).await.migrated().await;
    let mut here = Consumer::new("mover", Database::new(&urls[0]).unwrap().store());
    let mut there = Consumer::new("mover", Database::new(&urls[1]).unwrap().store());
    here.store.register(&registration("mover")).await.unwrap();
    there.store.clock().await.unwrap();
    db.enqueue(1).await;
    there.store.clock().await.unwrap();

    // The other node stands still: it has what is committed from now on, but cannot apply it.
    let mut lock = AnyConnection::connect(&cluster.nodes[1].admin_url()).await.unwrap();
    lock.execute("FLUSH TABLES WITH READ LOCK").await.unwrap();
    let claim = here.claim_one().await;
    let mut running = tokio::spawn(async move { there.store.running("mover").await.unwrap() });
    assert!(timeout(Duration::from_millis(300), &mut running).await.is_err(), "it did not wait");
    lock.execute("UNLOCK TABLES").await.unwrap();
    let running = running.await.unwrap();
    assert_eq!(running.iter().map(|orphan| orphan.attempt).collect::<Vec<_>>(), [claim.attempt]);
}

/// The connection that is open already meets it as an error, and all stores of the process go on elsewhere.
async fn a_node_that_becomes_read_only_is_left(cluster: &mut Galera) {
    let urls = cluster.database("read_only");
    let db = Db::of_hosts(&urls).await.migrated().await;
    let (mut writer, mut other) = (db.store(), db.store());
    other.clock().await.unwrap();
    let task = || NewTask::new("call", "{}");
    writer.enqueue(&[task()]).await.unwrap();
    block_in_place(|| cluster.nodes[0].set_read_only(true));
    writer.enqueue(&[task()]).await.unwrap_err();
    writer.enqueue(&[task()]).await.unwrap();
    assert_eq!(db.database.masked(), urls[1]);
    let alone = "SELECT CAST(count(*) AS SIGNED) FROM information_schema.processlist WHERE db = 'read_only'";
    let before = number(&cluster.nodes[1], alone).await;
    other.clock().await.unwrap();
    assert_eq!(number(&cluster.nodes[1], alone).await, before + 1, "the other store did not follow");
    block_in_place(|| cluster.nodes[0].set_read_only(false));
}

async fn a_node_is_killed_under_load(mut cluster: Galera) {
    let urls = cluster.database("load");
    let site = Site::new(Db::of_hosts(&urls).await.migrated().await, 4).await;
    let others = |first: usize| -> Vec<String> { (0..3).map(|n| urls[(first + n) % 3].clone()).collect() };
    let mut members: Vec<_> = (0..3)
        .flat_map(|node| (0..2).map(move |n| (node, format!("n{node}c{n}"))))
        .map(|(node, name)| (node, site.consumer_on(&name, &others(node))))
        .collect();
    // The enqueuer and the auditor lose their node too.
    let load = Load::on(&others(2));
    for node in 0..3 {
        let done = format!("SELECT count(*) FROM permitq_attempt WHERE ended_by LIKE 'n{node}%'");
        until(&format!("work on node {node}"), async || site.db.int(&done).await >= 10).await;
    }
    assert!(conflicts(&cluster).await > 0);

    let before = load.acknowledged.load(Ordering::Relaxed);
    block_in_place(|| cluster.nodes[2].kill9());
    until("enqueued without the node", async || load.acknowledged.load(Ordering::Relaxed) >= before + 20)
        .await;
    let alive = "SELECT count(DISTINCT name) FROM permitq_consumer
                  WHERE state = 'alive' AND lease_until > UTC_TIMESTAMP(6) + INTERVAL 4 SECOND";
    until("all six alive", async || site.db.int(alive).await == 6).await;
    // Whoever had the dead node first goes on alone, over another.
    let done = "SELECT count(*) FROM permitq_attempt WHERE ended_by LIKE 'n2%'";
    let before = site.db.int(done).await;
    for (_, member) in members.iter_mut().filter(|(node, _)| *node != 2) {
        member.terminate();
        assert_eq!(member.exit_code().await, Some(0));
    }
    until("work over another node", async || site.db.int(done).await >= before + 20).await;
    load.end(&site, 4).await;
}

/// Transactions that lost against another node's, so far.
async fn conflicts(cluster: &Galera) -> i64 {
    let mut sum = 0;
    for node in &cluster.nodes {
        sum += number(
            node,
            "SELECT CAST(sum(variable_value) AS SIGNED) FROM information_schema.global_status
              WHERE variable_name IN ('wsrep_local_cert_failures', 'wsrep_local_bf_aborts')",
        )
        .await;
    }
    sum
}

async fn number(node: &Server, query: &str) -> i64 {
    let mut conn = AnyConnection::connect(&node.admin_url()).await.unwrap();
    let number = sqlx::query_scalar(AssertSqlSafe(query)).fetch_one(&mut conn).await.unwrap();
    conn.close().await.unwrap();
    number
}
