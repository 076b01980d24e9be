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
            let lost = i64::try_from(round * FLEET as usize).unwrap();
            until("all taken back", async || site.abandoned().await == lost).await;
            assert_eq!(site.db.in_use().await, i64::from(FLEET), "their calls may still run");
            fleet.iter().for_each(Member::thaw);
            site.settled().await;
            for task in tasks {
                let task = site.db.task(task).await;
                assert_eq!((task.state, task.claim_no), (State::Succeeded, 2));
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
    let expected = ROUNDS as u64 * u64::from(FLEET) * 2;
    assert_eq!(site.stub.summary().calls, expected, "each lost call once more");
    let late = "SELECT count(*) FROM permitq_attempt WHERE outcome = 'abandoned' AND late_status = 200";
    assert_eq!(site.db.int(late).await * 2, i64::try_from(expected).unwrap(), "each answer is kept");
}
