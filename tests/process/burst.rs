//! Many small calls at once: each once, in order, and the permits are never idle.

use std::time::Duration;

use permitq::model::NewTask;
use permitq::store::Dialect;
use tokio::time::{Instant, sleep};

use crate::support::Db;
use crate::support::site::{Member, Site, until};

contract! {
    every_task_of_a_burst_is_called_once,
    a_contended_permit_is_never_idle_for_a_poll,
    waiting_for_a_permit_costs_no_attempt_and_no_place,
}

fn eight(site: &Site, settings: &[(&str, &str)]) -> Vec<Member> {
    (0..8).map(|n| site.start_with(&["run", "--name", &format!("c{n}")], settings)).collect()
}

async fn every_task_of_a_burst_is_called_once(db: Db) {
    let site = Site::new(db, 4).await;
    let _fleet = eight(&site, &[]);
    site.alive(8).await;
    let mut tasks = Vec::new();
    for _ in 0..3 {
        for _ in 0..4 {
            tasks.extend(site.enqueue(20, Duration::from_millis(5)).await);
        }
        site.nothing_lost_or_doubled(&tasks, 4).await;
    }
    // A claim that came too late for its start window goes back, and calls nobody.
    let others = "SELECT count(*) FROM permitq_attempt WHERE outcome NOT IN ('succeeded', 'handed_back')";
    assert_eq!(site.db.int(others).await, 0);
    assert_eq!(site.db.int("SELECT max(attempts) FROM permitq_task").await, 1);
}

/// Losing a race for the permit is daily business, and no reason to look less often.
async fn a_contended_permit_is_never_idle_for_a_poll(db: Db) {
    const POLL: Duration = Duration::from_secs(2);
    let site = Site::new(db, 1).await;
    let _fleet = eight(&site, &[("PERMITQ_CONSUMER__POLL", "2s")]);
    site.alive(8).await;
    let mut tasks = site.enqueue(100, Duration::from_millis(5)).await;
    site.settled().await;
    let log = site.stub.summary().log;
    let mut gaps: Vec<_> =
        log.windows(2).map(|two| (two[1].start_us - two[0].end_us.unwrap()) / 1000).collect();
    gaps.sort_unstable();
    println!(
        "{:?}: idle between two calls: median {} ms, at most {} ms",
        site.db.database.dialect(),
        gaps[49],
        gaps[98]
    );
    assert!(u128::from(gaps[97]) < POLL.as_millis(), "{gaps:?}");

    // And one task after a silence is found as soon as ever.
    sleep(POLL * 2).await;
    let began = Instant::now();
    tasks.extend(site.enqueue(1, Duration::from_millis(5)).await);
    until("its call", async || site.stub.summary().calls == 101).await;
    let most = if site.db.database.dialect() == Dialect::Mysql { POLL * 2 } else { POLL };
    assert!(began.elapsed() < most, "{:?}", began.elapsed());
    site.nothing_lost_or_doubled(&tasks, 1).await;
}

async fn waiting_for_a_permit_costs_no_attempt_and_no_place(db: Db) {
    let site = Site::new(db, 1).await;
    site.db.set_max(0).await;
    let tasks: Vec<_> = (0..50)
        .map(|n| NewTask {
            priority: n % 5,
            max_attempts: Some(1),
            ..NewTask::new("call", r#"{"ms": 10}"#).key(n.to_string())
        })
        .collect();
    let mut order: Vec<_> = (0..50).collect();
    order.sort_by_key(|n| (-(n % 5), *n));
    let mut store = site.db.store();
    let ids = crate::support::ids(&store.enqueue(&tasks).await.unwrap());
    let _fleet = eight(&site, &[]);
    site.alive(8).await;
    // Long enough that each has looked and found no permit, several times.
    sleep(Duration::from_secs(1)).await;
    assert!(store.set_max("default", 1, "ann").await.unwrap());
    site.nothing_lost_or_doubled(&ids, 1).await;
    assert_eq!(site.db.int("SELECT max(attempts) FROM permitq_task").await, 1);
    let called: Vec<i32> =
        site.stub.summary().log.iter().map(|call| call.biz_key.as_ref().unwrap().parse().unwrap()).collect();
    assert_eq!(called, order);
}
