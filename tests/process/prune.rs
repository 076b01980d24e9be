//! Retention in processes: by itself, and killed between the archive and the deletion.

use std::collections::BTreeSet;
use std::process::Command;
use std::time::Duration;

use permitq::store::Dialect;
use serde_json::Value;
use tempfile::TempDir;

use crate::support::Db;
use crate::support::site::{Site, until};

contract! {
    a_prune_that_is_killed_after_its_archive_loses_nothing,
    a_running_fleet_prunes_by_itself,
}

const OLD: Duration = Duration::from_hours(40 * 24);
/// No wait for a lock ends before the test does.
const PATIENT: [(&str, &str); 2] =
    [("PERMITQ_DATABASE__STATEMENT_TIMEOUT", "50s"), ("PERMITQ_LEASE__DURATION", "1m")];

/// The ids in all archives of a folder, as far as they can be read.
fn archived(folder: &TempDir) -> Vec<i64> {
    let files = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
    let text =
        files.map(|file| String::from_utf8(Command::new("zcat").arg(file).output().unwrap().stdout).unwrap());
    let text: String = text.collect();
    let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    lines.map(|task| task["id"].as_i64().unwrap()).collect()
}

async fn a_prune_that_is_killed_after_its_archive_loses_nothing(db: Db) {
    let site = Site::new(db, 4).await;
    let tasks: BTreeSet<i64> = site.db.enqueue(20).await.into_iter().collect();
    for task in &tasks {
        site.db.store().cancel(*task, "me").await.unwrap();
    }
    site.db.age("permitq_task", "finished_at", OLD, "1 = 1").await;
    let left = async || site.db.int("SELECT count(*) FROM permitq_task").await;

    // Nobody can delete, and everybody can read.
    let held = match site.db.database.dialect() {
        Dialect::Sqlite => site.db.hold(&[]).await,
        Dialect::Postgres => site.db.hold(&["LOCK TABLE permitq_attempt IN SHARE MODE"]).await,
        Dialect::Mysql => site.db.hold(&["LOCK TABLES permitq_attempt READ"]).await,
    };
    let folder = TempDir::new().unwrap();
    let prune = ["prune", "--archive", folder.path().to_str().unwrap()];
    let killed = site.start_with(&prune, &PATIENT);
    until("all are archived", async || archived(&folder).len() == 20).await;
    killed.kill();
    assert_eq!(left().await, 20);
    held.commit().await;

    // What the killed one had locked is passed by until its server has noticed.
    until("all are gone", async || {
        let output = site.permitq(&prune).envs(PATIENT).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        left().await == 0
    })
    .await;
    let archived = archived(&folder);
    assert!(archived.len() >= 40, "twice, since nobody knows how far it came: {archived:?}");
    assert_eq!(archived.into_iter().collect::<BTreeSet<_>>(), tasks);
}

/// While it works: what runs is left alone, and what is old goes.
async fn a_running_fleet_prunes_by_itself(db: Db) {
    let site = Site::new(db, 4).await;
    let old = site.db.enqueue(30).await;
    for task in &old {
        site.db.store().cancel(*task, "me").await.unwrap();
    }
    site.db.age("permitq_task", "finished_at", OLD, "1 = 1").await;
    let tasks = site.enqueue(20, Duration::from_millis(50)).await;
    let _fleet = [site.consumer("a"), site.consumer("b")];
    site.nothing_lost_or_doubled(&tasks, 4).await;
    until("the old ones are gone", async || {
        site.db.int("SELECT count(*) FROM permitq_task WHERE state = 'cancelled'").await == 0
    })
    .await;
    assert_eq!(site.db.int("SELECT count(*) FROM permitq_action WHERE task IS NOT NULL").await, 0);
}
