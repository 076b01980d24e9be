//! PostgreSQL with a synchronous standby: what was acknowledged is on both.

use std::sync::atomic::Ordering;

use loadtest::servers::cluster::Pair;
use permitq::store::Database;
use tokio::task::block_in_place;

use crate::load::Load;
use crate::support::Db;
use crate::support::site::{Site, until};

/// What becomes of the primary.
#[derive(Clone, Copy, PartialEq)]
enum Primary {
    Killed,
    /// It accepts connections and says nothing; later it wakes up.
    Frozen,
    /// It lives and takes writes, but the standby does not follow it any more: no COMMIT ends.
    CutOff,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_primary_is_killed() {
    fail_over(Primary::Killed).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_primary_is_frozen_and_wakes_up() {
    fail_over(Primary::Frozen).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_standby_is_promoted_although_the_primary_lives() {
    fail_over(Primary::CutOff).await;
}

async fn fail_over(fate: Primary) {
    let mut pair = block_in_place(Pair::start);
    let (primary, standby) = pair.database("load");
    let hosts = [primary.clone(), standby.clone()];
    let mut site = Site::new(Db::of_hosts(&hosts).await.migrated().await, 4).await;

    // Whoever names the standby first works on the primary all the same.
    let reversed = [standby.clone(), primary.clone()];
    let other_way = || Database::first_of(&[&standby, &primary]).unwrap().store();
    let mut store = other_way();
    store.clock().await.unwrap();
    assert_eq!(store.database().masked(), primary);
    let _members: Vec<_> =
        (0..4).map(|n| site.consumer_on(&format!("c{n}"), if n == 0 { &reversed } else { &hosts })).collect();
    let load = Load::on(&hosts);
    until("work", async || site.db.int("SELECT count(*) FROM permitq_attempt").await >= 40).await;

    match fate {
        Primary::Killed => block_in_place(|| pair.primary.kill9()),
        Primary::Frozen => block_in_place(|| pair.primary.freeze()),
        Primary::CutOff => {}
    }
    if fate == Primary::Killed {
        let nobody = other_way().clock().await.unwrap_err().to_string();
        assert!(nobody.contains(&format!("{standby}: it is a standby")), "{nobody}");
        assert!(nobody.contains(&format!("{primary}: ")) && nobody.contains("refused"), "{nobody}");
    }
    block_in_place(|| pair.promote());
    site.db.move_to(&standby).await;
    let before = load.acknowledged.load(Ordering::Relaxed);
    until("enqueued without the primary", async || load.acknowledged.load(Ordering::Relaxed) >= before + 40)
        .await;
    let alive = "SELECT count(DISTINCT name) FROM permitq_consumer
                  WHERE state = 'alive' AND lease_until > now() + interval '4 seconds'";
    until("all four alive", async || site.db.int(alive).await == 4).await;
    let listening = "SELECT count(*) FROM pg_stat_activity WHERE query ILIKE 'LISTEN%'";
    until("all four listen there", async || site.db.int(listening).await == 8).await;
    if fate == Primary::Frozen {
        block_in_place(|| pair.primary.thaw());
        let before = load.acknowledged.load(Ordering::Relaxed);
        until("enqueued beside the old primary", async || {
            load.acknowledged.load(Ordering::Relaxed) >= before + 40
        })
        .await;
    }
    load.end(&site, 4).await;
}
