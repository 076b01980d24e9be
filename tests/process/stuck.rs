//! The watchdog: a loop that does not turn must not be kept alive by its heart.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use permitq::consumer::Options;

use super::handler::{Blocks, start};
use crate::support::Db;
use crate::support::site::until;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stuck_loop_stops_beating_and_is_reported() {
    static STUCK: AtomicBool = AtomicBool::new(false);
    let db = Db::sqlite().await.migrated().await;
    db.enqueue(1).await;
    let let_go = Arc::new(AtomicBool::new(false));
    let options = Options {
        lease: Duration::from_millis(800),
        heartbeat: Duration::from_millis(100),
        on_stuck: || STUCK.store(true, Ordering::SeqCst),
        ..Options::default()
    };
    let (trigger, thread) = start(&db, Blocks(let_go.clone()), options);

    until("the watchdog", async || STUCK.load(Ordering::SeqCst)).await;
    until("the lease to pass", async || !db.store().expired().await.unwrap().is_empty()).await;
    let_go.store(true, Ordering::SeqCst);
    // Nobody took the claim meanwhile: its end is recorded after all.
    until("the end recorded", async || db.in_use().await == 0).await;
    trigger.advance();
    assert_eq!(thread.join().unwrap().code(), 0);
}
