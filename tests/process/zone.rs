//! Instants mean the same whatever zone the database server, its sessions and the hosts live in.

use std::time::Duration;

use jiff::Timestamp;
use loadtest::servers::Server;
use permitq::store::Dialect;
use tokio::task::{block_in_place, spawn_blocking};

use crate::support::Db;
use crate::support::site::{Site, until};

/// As POSIX (which counts westwards), as PostgreSQL and as MariaDB have it, and hours east of Greenwich.
const ZONES: [(&str, &str, &str, i64); 3] = [
    ("EST5", "America/New_York", "-05:00", -5),
    ("UTC0", "UTC", "+00:00", 0),
    ("JST-9", "Asia/Tokyo", "+09:00", 9),
];
/// A poll, on a machine that is busy; a zone is an hour at least.
const SOON: Duration = Duration::from_secs(10);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sqlite() {
    due_is_due_whatever_the_servers_zone(Db::sqlite().await.migrated().await, None).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres() {
    due_is_due_whatever_the_servers_zone(Db::postgres().await.migrated().await, None).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mariadb() {
    let server = spawn_blocking(|| Server::mariadb(false)).await.unwrap();
    due_is_due_whatever_the_servers_zone(Db::alone_on(&server).await, Some(&server)).await;
}

async fn due_is_due_whatever_the_servers_zone(db: Db, server: Option<&Server>) {
    let site = Site::new(db, 4).await;
    for (posix, postgres, mariadb, east) in ZONES {
        // What sessions get that do not ask for better, and the one of the person who inserts.
        match site.db.database.dialect() {
            Dialect::Sqlite => {}
            Dialect::Postgres => {
                let name = site.db.text("SELECT CAST(current_database() AS text)").await;
                site.db.sql(&format!("ALTER DATABASE {name} SET timezone TO '{postgres}'")).await;
                site.db.sql(&format!("SET timezone TO '{postgres}'")).await;
            }
            Dialect::Mysql => {
                let set = format!("SET GLOBAL time_zone = '{mariadb}'");
                block_in_place(|| server.unwrap().execute(set));
                site.db.sql(&format!("SET time_zone = '{mariadb}'")).await;
                let hours = "SELECT CAST(TIMESTAMPDIFF(HOUR, UTC_TIMESTAMP(), NOW()) AS SIGNED)";
                assert_eq!(site.db.int(hours).await, east);
            }
        }
        let member = site.start_with(&["run"], &[("TZ", posix)]);
        due_is_due(&site, posix).await;
        member.kill();
    }
}

/// By each way that tasks come in.
async fn due_is_due(site: &Site, zone: &str) {
    // As sql/README.md has it.
    let in_two_seconds = match site.db.database.dialect() {
        Dialect::Sqlite => "(strftime('%s', 'now') + 2) * 1000000",
        Dialect::Postgres => "now() + interval '2 seconds'",
        Dialect::Mysql => "UTC_TIMESTAMP(6) + INTERVAL 2 SECOND",
    };
    let before = site.db.int("SELECT coalesce(max(id), 0) FROM permitq_task").await;
    let calls = site.stub.summary().calls;
    let insert = |columns: &str, values: &str| {
        format!("INSERT INTO permitq_task (kind, payload{columns}) VALUES ('call', '{{\"ms\": 5}}'{values})")
    };
    site.db.sql(&insert("", "")).await;
    site.db.sql(&insert(", run_at", &format!(", {in_two_seconds}"))).await;
    let now = Timestamp::from_microsecond(site.db.store().clock().await.unwrap()).unwrap();
    let past = (now - Duration::from_secs(2)).to_string();
    for when in [&[][..], &["--delay", "2s"], &["--at", &past]] {
        let enqueue = ["enqueue", "--kind", "call", "--payload", r#"{"ms": 5}"#];
        let ran = site.permitq(&[&enqueue, when].concat()).env("TZ", zone).output().unwrap();
        assert!(ran.status.success(), "{ran:?}");
    }
    until("five calls", async || site.stub.summary().calls == calls + 5).await;
    site.settled().await;
    let mut delayed = 0;
    for id in before + 1..=before + 5 {
        let (task, attempt) = (site.db.task(id).await, site.db.store().attempts(id).await.unwrap().remove(0));
        let due = task.run_at.max(task.created_at);
        let late = attempt.claimed_at.duration_since(due);
        assert!(late.as_millis() >= -1 && late.unsigned_abs() < SOON, "{zone}: {late:?} late: {task:?}");
        let wait = task.run_at.duration_since(task.created_at).as_millis();
        assert!((-10_000..2100).contains(&wait), "{zone}: {task:?}");
        delayed += i32::from(wait > 500);
    }
    assert_eq!(delayed, 2, "{zone}");

    // By the calendar of a zone that is neither the server's nor the host's.
    let due =
        Timestamp::from_microsecond(site.db.store().clock().await.unwrap()).unwrap() + Duration::from_secs(3);
    let due = Timestamp::from_second(due.as_second()).unwrap();
    let local = due.in_tz("Asia/Kathmandu").unwrap();
    let expression = local.strftime("%-S %-M %-H %-d %-m ? %Y").to_string();
    let name = format!("in {zone}");
    let add =
        ["schedule", "add", &name, "--kind", "call", "--payload", r#"{"ms": 5}"#, "--quartz", &expression];
    let add =
        site.permitq(&[&add[..], &["--tz", "Asia/Kathmandu"]].concat()).env("TZ", zone).output().unwrap();
    assert!(add.status.success(), "{expression}: {add:?}");
    until("the scheduled call", async || site.stub.summary().calls == calls + 6).await;
    site.settled().await;
    let run = site.db.store().instants(&name, 9).await.unwrap().remove(0);
    assert_eq!(run.planned.first, due, "{zone}: {expression}");
    let attempt = site.db.store().attempts(run.task.unwrap()).await.unwrap().remove(0);
    let late = attempt.claimed_at.duration_since(due);
    assert!(late.as_millis() >= -1 && late.unsigned_abs() < SOON, "{zone}: {late:?} late");
}
