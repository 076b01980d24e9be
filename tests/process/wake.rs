//! P11: idle consumers start what has become possible at once, and not at their next poll.
//!
//! They poll so rarely here that a start within [`SOON`] proves the wake-up. MariaDB has none, and polls.

use std::time::Duration;

use permitq::model::{NewTask, Outcome};
use permitq::store::Dialect;
use serde_json::json;
use sqlx::postgres::PgListener;
use tokio::time::{Instant, sleep};

use crate::support::site::{Member, Site, until};
use crate::support::{Db, LEASE, ended};

contract! {
    a_new_task_wakes_an_idle_fleet,
    a_delayed_task_starts_at_its_instant,
    a_raised_cap_wakes_who_waits,
    an_ended_cooling_wakes_who_waits,
    what_is_handed_back_wakes_the_others,
    ten_thousand_tasks_come_and_go_in_one_statement,
}

/// A jittered poll comes 15 s after the last look at the earliest.
const RARELY: &str = "20s";
const SOON: Duration = Duration::from_secs(5);
/// Long enough for a fleet to look once more and fall asleep. Nothing depends on it but what is measured.
const ASLEEP: Duration = Duration::from_millis(300);

async fn fleet(site: &Site, names: &[&str]) -> Vec<Member> {
    let poll = if site.db.database.dialect() == Dialect::Mysql { "300ms" } else { RARELY };
    let settings = [("PERMITQ_CONSUMER__POLL", poll)];
    let members = names.iter().map(|name| site.start_with(&["run", "--name", name], &settings)).collect();
    let n = i64::try_from(names.len()).unwrap();
    let alive = names.iter().map(|name| format!("'{name}'")).collect::<Vec<_>>().join(", ");
    let alive = format!("SELECT count(*) FROM permitq_consumer WHERE name IN ({alive})");
    until("the fleet has registered", async || site.db.int(&alive).await == n).await;
    sleep(ASLEEP).await;
    members
}

/// Waits for the call that follows `before` calls; answers how long that took.
async fn started(site: &Site, before: u64, what: &str) -> Duration {
    let began = Instant::now();
    while site.stub.summary().calls == before {
        assert!(began.elapsed() < SOON, "{what}: not started within {SOON:?}");
        sleep(Duration::from_millis(1)).await;
    }
    began.elapsed()
}

async fn a_new_task_wakes_an_idle_fleet(db: Db) {
    let site = Site::new(db, 4).await;
    let _fleet = fleet(&site, &["a", "b", "c"]).await;
    let mut store = site.db.store();
    for by_hand in [false, true] {
        let mut took = Vec::new();
        for round in 0..20 {
            let before = site.stub.summary().calls;
            if by_hand {
                site.db.sql(r#"INSERT INTO permitq_task (kind, payload) VALUES ('call', '{"ms": 1}')"#).await;
            } else {
                store.enqueue(&[NewTask::new("call", json!({"ms": 1}).to_string())]).await.unwrap();
            }
            took.push(started(&site, before, &format!("round {round}, by hand: {by_hand}")).await);
            site.settled().await;
            sleep(ASLEEP).await;
        }
        took.sort();
        let (best, median, worst) = (took[0], took[took.len() / 2], took[took.len() - 1]);
        let dialect = site.db.database.dialect();
        println!(
            "{dialect:?}, by hand: {by_hand}: starts after its commit: median {median:.1?}, {best:.1?} to {worst:.1?}"
        );
    }
}

async fn a_delayed_task_starts_at_its_instant(db: Db) {
    let site = Site::new(db, 4).await;
    let _fleet = fleet(&site, &["a", "b"]).await;
    let run_at = instant(&site, 1);
    let began = Instant::now();
    site.db.sql(&format!("INSERT INTO permitq_task (kind, run_at) VALUES ('call', {run_at})")).await;
    started(&site, 0, "delayed").await;
    // SQLite's stamps are of whole milliseconds.
    assert!(began.elapsed() >= Duration::from_millis(990), "{:?}", began.elapsed());
}

async fn a_raised_cap_wakes_who_waits(db: Db) {
    let site = Site::new(db, 4).await;
    site.db.sql("UPDATE permitq_semaphore SET max_permits = 0").await;
    site.enqueue(1, Duration::from_millis(10)).await;
    let _fleet = fleet(&site, &["a", "b"]).await;
    assert_eq!(site.stub.summary().calls, 0);
    site.db.sql("UPDATE permitq_semaphore SET max_permits = 1").await;
    started(&site, 0, "raised").await;
}

async fn an_ended_cooling_wakes_who_waits(db: Db) {
    let site = Site::new(db, 1).await;
    let until = instant(&site, 3600);
    site.db
        .sql(&format!(
            "INSERT INTO permitq_cooling (semaphore, until, why) VALUES ('default', {until}, 'timeout');
             UPDATE permitq_semaphore SET in_use = 1"
        ))
        .await;
    site.enqueue(1, Duration::from_millis(10)).await;
    let _fleet = fleet(&site, &["a", "b"]).await;
    assert_eq!(site.stub.summary().calls, 0);
    site.db.age("permitq_cooling", "until", Duration::from_hours(2), "1 = 1").await;
    started(&site, 0, "cooled").await;
}

async fn what_is_handed_back_wakes_the_others(db: Db) {
    let site = Site::new(db, 2).await;
    site.enqueue(1, Duration::from_secs(30)).await;
    let leaver = fleet(&site, &["leaver"]).await.remove(0);
    site.in_flight(1).await;
    let _others = fleet(&site, &["a", "b"]).await;
    // Twice: give up, and hand back.
    leaver.terminate();
    until("draining", async || {
        site.db.int("SELECT count(*) FROM permitq_consumer WHERE state = 'draining'").await == 1
    })
    .await;
    leaver.terminate();
    started(&site, 1, "handed back").await;
}

/// A hint carries no list, so it cannot be too long.
async fn ten_thousand_tasks_come_and_go_in_one_statement(db: Db) {
    let site = Site::new(db, 1).await;
    let _fleet = fleet(&site, &["a", "b"]).await;
    let rows = vec![r#"('call', '{"ms": 600}')"#; 10_000].join(", ");
    site.db.sql(&format!("INSERT INTO permitq_task (kind, payload) VALUES {rows}")).await;
    started(&site, 0, "ten thousand").await;
    let cancel =
        "UPDATE permitq_task SET state = 'cancelled', finished_at = created_at WHERE state = 'pending'";
    let cancelled = site.db.sql(cancel).await;
    site.settled().await;
    let seen = site.stub.summary().calls;
    assert_eq!((cancelled + seen, site.db.int("SELECT count(*) FROM permitq_task").await), (10_000, 10_000));
}

/// A notification in every transaction costs PostgreSQL most of its throughput.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hand_overs_and_beats_notify_nobody() {
    let db = Db::postgres().await.migrated().await;
    let mut a = db.consumer("a").await;
    let mut listener = PgListener::connect(db.url()).await.unwrap();
    listener.listen("permitq").await.unwrap();
    // One for a whole batch.
    db.enqueue(80).await;
    let mut done = Vec::new();
    for _ in 0..20 {
        let claims = a.exchange(&done, 4).await.claims;
        assert_eq!(claims.len(), 4);
        done = claims.into_iter().map(|claim| ended(claim, &Outcome::succeeded(None))).collect();
        a.store.beat("a", LEASE).await.unwrap();
    }
    db.sql("NOTIFY permitq, 'the end'").await;
    let mut heard = 0;
    while listener.recv().await.unwrap().payload() != "the end" {
        heard += 1;
    }
    assert_eq!(heard, 1);
}

/// Whoever was cut off hears again, and looks once for what it missed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_listener_that_was_cut_off_listens_again() {
    let site = Site::new(Db::postgres().await.migrated().await, 4).await;
    let _fleet = fleet(&site, &["a", "b"]).await;
    let listeners = "FROM pg_stat_activity WHERE query LIKE 'LISTEN%' AND datname = current_database()";
    let count = format!("SELECT count(*) {listeners}");
    until("both listen", async || site.db.int(&count).await == 4).await;
    let cut = site.db.int(&format!("SELECT count(pg_terminate_backend(pid)) {listeners}")).await;
    assert_eq!(cut, 4);
    site.enqueue(1, Duration::from_millis(10)).await;
    started(&site, 0, "enqueued while nobody listened").await;
    until("both listen again", async || site.db.int(&count).await == 4).await;
    sleep(ASLEEP).await;
    site.enqueue(1, Duration::from_millis(10)).await;
    started(&site, 1, "enqueued when they listened again").await;
}

/// So many seconds from now, in the database's words.
fn instant(site: &Site, seconds: u32) -> String {
    match site.db.database.dialect() {
        Dialect::Sqlite => {
            format!("CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER) + {seconds}000000")
        }
        Dialect::Postgres => format!("now() + interval '{seconds} seconds'"),
        Dialect::Mysql => format!("UTC_TIMESTAMP(6) + INTERVAL {seconds} SECOND"),
    }
}
