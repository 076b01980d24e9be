//! Frozen past their leases, and thawed when others have been given their tasks.

use std::time::Duration;

use permitq::model::State;

use crate::support::Db;
use crate::support::site::{Member, Site, until};

contract! {
    whoever_wakes_up_frees_nothing_twice,
}

const ROUNDS: usize = 3;
const FLEET: u32 = 4;

/// P4: each late finisher ends its own cooling at most, and the tasks run again once.
async fn whoever_wakes_up_frees_nothing_twice(db: Db) {
    let site = Site::new(db, FLEET).await;
    let mut lost = 0;
    let _reclaimer = site.start(&["run", "--roles", "reclaim"]);
    site.watched(async {
        for round in 1..=ROUNDS {
            let name = |n| format!("r{round}c{n}");
            let fleet: Vec<_> = (0..FLEET)
                .map(|n| site.start(&["run", "--roles", "consume", "--slots", "1", "--name", &name(n)]))
                .collect();
            site.alive(FLEET.into()).await;
            let tasks = site.enqueue(FLEET as usize, Duration::from_millis(900)).await;
            site.in_flight(FLEET).await;
            site.freeze(&fleet.iter().collect::<Vec<_>>()).await;
            // All of them, unless they had to be let go once more.
            let held = site.db.in_use().await;
            lost += held;
            until("all taken back", async || site.abandoned().await == lost).await;
            assert_eq!(site.db.in_use().await, held, "their calls may still run");
            fleet.iter().for_each(Member::thaw);
            site.settled().await;
            for task in tasks {
                let task = site.db.task(task).await;
                assert_eq!(task.state, State::Succeeded);
            }
            // They went on under new ids.
            site.alive(FLEET.into()).await;
            for member in fleet {
                member.kill();
            }
            site.db.sql("DELETE FROM permitq_consumer").await;
        }
    })
    .await;
    site.cap_held(FLEET).await;
    assert!(lost > 0, "nobody was frozen while it held a call");
    let calls = i64::try_from(site.stub.summary().calls).unwrap();
    assert_eq!(
        calls,
        site.db.int("SELECT count(*) FROM permitq_task").await + lost,
        "each lost call once more"
    );
    let late = "SELECT count(*) FROM permitq_attempt WHERE outcome = 'abandoned' AND late_status = 200";
    assert_eq!(site.db.int(late).await, lost, "each answer is kept");
}
