//! Real schedulers: killed, frozen, started again; triggers that are added while they work.

use std::time::Duration;

use permitq::model::schedule::MisfirePolicy;
use permitq::store::Dialect;
use serde_json::Value;
use tokio::time::sleep;

use super::*;
use crate::support::site::{Member, Site, until};

contract![
    each_second_has_one_task_however_many_schedulers_die,
    schedulers_that_were_frozen_follow_the_policy,
    runs_longer_than_their_interval_do_not_overlap,
    a_schedule_is_on_time_though_nobody_polls,
];

const SECOND: &str = "* * * * * ?";

impl Site {
    fn schedule(&self, args: &[&str]) -> Value {
        let ran = self.permitq(&[&["schedule"], args, &["--json"]].concat()).output().unwrap();
        assert!(ran.status.success(), "{args:?}: {ran:?}");
        serde_json::from_slice(&ran.stdout).unwrap()
    }

    fn scheduler(&self) -> Member {
        self.start(&["run", "--roles", "schedule"])
    }
}

/// Every instant from the first on has one fate, and each that fired one task; answers how many did.
async fn each_once(db: &Db, job: &str, every: Duration) -> usize {
    let all = instants(db, job).await;
    // A row of instants that came during one run may have others between its first and its last.
    let (first, last) =
        (all.iter().map(|one| one.planned.first).min(), all.iter().map(|one| one.planned.last).max());
    let span = last.unwrap().duration_since(first.unwrap()).unsigned_abs();
    let count: u32 = all.iter().map(|one| one.planned.count).sum();
    assert_eq!(every * (count - 1), span, "{all:?}");
    let fired: Vec<_> = all.iter().filter(|one| one.fate == Fate::Fired).collect();
    assert_eq!(runs(db, job).await, fired.iter().map(|one| one.task.unwrap()).collect::<Vec<_>>());
    fired.len()
}

async fn each_second_has_one_task_however_many_schedulers_die(db: Db) {
    let site = Site::new(db, 4).await;
    let mut stays = site.scheduler();
    let add =
        ["add", "each", "--kind", "call", "--quartz", SECOND, "--overlap", "allow", "--misfire-after", "60s"];
    assert_eq!(site.schedule(&add)["next"].as_array().unwrap().len(), 5);
    until("it fires", async || !fates(&site.db, "each").await.is_empty()).await;
    let mut others = vec![site.scheduler(), site.scheduler()];
    for n in 1..=5 {
        until("two more", async || fates(&site.db, "each").await.len() >= 2 * n).await;
        others.remove(0).kill();
        others.push(site.scheduler());
    }
    drop(others);
    stays.terminate();
    assert_eq!(stays.exit_code().await, Some(0));
    let fired = each_once(&site.db, "each", seconds(1)).await;
    assert_eq!(fired, fates(&site.db, "each").await.len(), "nothing was passed by");
}

/// Frozen for longer than `misfire_after`: by policy none, one, or up to three late runs, and the rest on record.
async fn schedulers_that_were_frozen_follow_the_policy(db: Db) {
    let site = Site::new(db, 4).await;
    let members = [site.scheduler(), site.scheduler()];
    for policy in MisfirePolicy::ALL.map(MisfirePolicy::as_str) {
        let add = ["add", policy, "--kind", "call", "--quartz", SECOND, "--overlap", "allow"];
        site.schedule(
            &[&add[..], &["--misfire", policy, "--misfire-after", "2s", "--misfire-max", "3"]].concat(),
        );
    }
    until("each has fired", async || {
        let mut all = true;
        for policy in MisfirePolicy::ALL {
            all &= fates(&site.db, policy.as_str()).await.iter().any(|(fate, _)| *fate == Fate::Fired);
        }
        all
    })
    .await;
    site.freeze(&[&members[0], &members[1]]).await;
    let frozen = now(&site.db).await;
    sleep(seconds(7)).await;
    let thawed = now(&site.db).await;
    for member in &members {
        member.thaw();
    }
    for (policy, most) in [("skip", 0), ("fire_once", 1), ("fire_all", 3)] {
        until("it goes on", async || {
            let all = instants(&site.db, policy).await;
            all.iter().any(|one| one.fate == Fate::Fired && one.planned.first > thawed)
        })
        .await;
        // Its tasks and its instants are read one after the other.
        site.schedule(&["pause", policy]);
        each_once(&site.db, policy, seconds(1)).await;
        let all = instants(&site.db, policy).await;
        // Surely late when they thawed, and not under way when they froze.
        let late =
            |one: &&PlannedInstant| one.planned.last < thawed - seconds(2) && one.planned.first > frozen;
        let fired = all.iter().filter(|one| one.fate == Fate::Fired).filter(late).count();
        let missed =
            all.iter().filter(|one| one.fate == Fate::Misfired).map(|one| one.planned.count).sum::<u32>();
        assert!(fired <= most && missed >= 2, "{policy}: {all:?}");
    }
}

async fn runs_longer_than_their_interval_do_not_overlap(db: Db) {
    let site = Site::new(db, 4).await;
    let _members: Vec<_> = (0..3).map(|n| site.consumer(&format!("c{n}"))).collect();
    for overlap in ["skip", "queue"] {
        let payload = r#"{"ms": 1200}"#;
        let add = ["add", overlap, "--kind", "call", "--every", "300ms", "--payload", payload];
        site.schedule(&[&add[..], &["--overlap", overlap, "--misfire-after", "1s"]].concat());
    }
    until("four runs each", async || {
        runs(&site.db, "skip").await.len() >= 4 && runs(&site.db, "queue").await.len() >= 4
    })
    .await;
    for name in ["skip", "queue"] {
        site.schedule(&["pause", name]);
    }
    site.settled().await;
    for name in ["skip", "queue"] {
        let mut times = Vec::new();
        for id in runs(&site.db, name).await {
            let task = site.db.task(id).await;
            times.push((task.created_at, task.finished_at.unwrap()));
        }
        for (one, next) in times.iter().zip(&times[1..]) {
            assert!(one.1 <= next.0, "{name}: {times:?}");
        }
        each_once(&site.db, name, Duration::from_millis(300)).await;
    }
}

/// The next look by itself is more than a minute away, and no commit is near that could wake; MariaDB, which wakes nobody,
/// looks every second for what is new.
async fn a_schedule_is_on_time_though_nobody_polls(db: Db) {
    let site = Site::new(db, 4).await;
    let poll = if site.db.database.dialect() == Dialect::Mysql { "200ms" } else { "20s" };
    let settings = [("PERMITQ_CONSUMER__POLL", poll)];
    let _member = site.start_with(&["run"], &settings);
    site.alive(1).await;
    sleep(seconds(1)).await;
    site.schedule(&[
        "add",
        "each",
        "--kind",
        "call",
        "--every",
        "6s",
        "--overlap",
        "allow",
        "--payload",
        r#"{"ms": 1}"#,
    ]);
    until("two runs", async || site.stub.summary().calls >= 2).await;
    for one in instants(&site.db, "each").await {
        let late = one.at.duration_since(one.planned.first).as_millis();
        assert!((0..10_000).contains(&late) && one.fate == Fate::Fired, "{one:?}");
    }
}
