//! The watchdog: a loop that does not turn must not be kept alive by its heart.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use permitq::clock::Clock;
use permitq::consumer::{Consumer, Options, Service, Services};
use permitq::downstream::{Call, Handler};
use permitq::model::{Limits, Outcome};
use permitq::shutdown;

use crate::support::Db;
use crate::support::site::until;

/// Blocks the one thread of its consumer's runtime, and so its loop, until it is let go.
struct Blocks(Arc<AtomicBool>);

#[async_trait]
impl Handler for Blocks {
    async fn call(&self, _call: &Call) -> Outcome {
        while !self.0.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(10));
        }
        Outcome::succeeded(None)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stuck_loop_stops_beating_and_is_reported() {
    static STUCK: AtomicBool = AtomicBool::new(false);
    let db = Db::sqlite().await.migrated().await;
    db.enqueue(1).await;
    let let_go = Arc::new(AtomicBool::new(false));
    let mut services = Services::default();
    let handler = Arc::new(Blocks(let_go.clone()));
    services.add_rest(Service { semaphore: "default".to_owned(), limits: Limits::default(), handler });
    let options = Options {
        lease: Duration::from_millis(800),
        heartbeat: Duration::from_millis(100),
        on_stuck: || STUCK.store(true, Ordering::SeqCst),
        ..Options::default()
    };
    let consumer = Consumer { database: db.database.clone(), services, options, clock: Clock::default() };
    let (trigger, shutdown) = shutdown::channel();
    let thread = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(consumer.run(shutdown)).unwrap()
    });

    until("the watchdog", async || STUCK.load(Ordering::SeqCst)).await;
    until("the lease to pass", async || !db.store().expired().await.unwrap().is_empty()).await;
    let_go.store(true, Ordering::SeqCst);
    // Nobody took the claim meanwhile: its end is recorded after all.
    until("the end recorded", async || db.in_use().await == 0).await;
    trigger.advance();
    assert_eq!(thread.join().unwrap().code(), 0);
}
