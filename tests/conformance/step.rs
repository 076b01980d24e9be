//! The database's clock jumps, seen against our own: nothing may be taken for over that is not.

use std::time::Duration;

use permitq::clock::Clock;
use permitq::upkeep::Upkeep;
use tokio::time::sleep;

use crate::support::{Db, upkeep};

contract![nothing_cools_down_by_a_clock_that_jumped,];

const HOLD: Duration = Duration::from_millis(900);

/// A permit that must be free by the database's clock.
async fn cooled(db: &Db) {
    db.sql(
        "DELETE FROM permitq_cooling;
         INSERT INTO permitq_cooling (semaphore, until, why)
         SELECT semaphore, since, 'timeout' FROM permitq_limit WHERE max_permits = 4;
         UPDATE permitq_semaphore SET in_use = 1",
    )
    .await;
    db.age("permitq_cooling", "until", Duration::from_secs(1), "1 = 1").await;
    db.age("permitq_cooling", "since", Duration::from_secs(1), "1 = 1").await;
}

async fn nothing_cools_down_by_a_clock_that_jumped(db: Db) {
    let clock = Clock::held();
    let mut upkeep = Upkeep::new(&db.database, clock.clone(), upkeep(HOLD));
    cooled(&db).await;
    upkeep.pass().await.unwrap();
    db.holds(0).await;
    for forward in [false, true] {
        if forward {
            // Ours stands still meanwhile.
            sleep(Duration::from_millis(2300)).await;
        } else {
            // The database's stood still meanwhile, more or less.
            clock.advance(Duration::from_hours(8));
        }
        cooled(&db).await;
        // As long as any permit may be held, nothing ends.
        for passed in [0, 500] {
            clock.advance(Duration::from_millis(passed));
            upkeep.pass().await.unwrap();
            db.holds(1).await;
        }
        clock.advance(Duration::from_millis(500));
        upkeep.pass().await.unwrap();
        db.holds(0).await;
    }
}
