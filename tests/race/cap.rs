//! Many consumers at once: the cap holds at every instant, and every task is done once.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use permitq::model::{Outcome, State};
use permitq::store::{Peak, Recorded};
use tokio::spawn;
use tokio::task::yield_now;
use tokio::time::{sleep, timeout};

use crate::support::{Consumer, Db, ended};

contract![sixteen_consumers_never_exceed_the_cap, the_cap_is_moved_under_load,];

/// What the downstream counts.
#[derive(Default)]
struct Downstream {
    in_flight: AtomicI64,
    most: AtomicI64,
    calls: AtomicI64,
}

impl Downstream {
    fn begin(&self, calls: usize) {
        let calls = i64::try_from(calls).unwrap();
        self.calls.fetch_add(calls, Ordering::SeqCst);
        let now = self.in_flight.fetch_add(calls, Ordering::SeqCst) + calls;
        self.most.fetch_max(now, Ordering::SeqCst);
    }

    fn end(&self, calls: usize) {
        self.in_flight.fetch_sub(i64::try_from(calls).unwrap(), Ordering::SeqCst);
    }
}

/// Claims, calls and ends until all of the fleet's `tasks` are done.
async fn work(mut consumer: Consumer, downstream: Arc<Downstream>, tasks: i64) {
    let mut running = Vec::new();
    while downstream.calls.load(Ordering::SeqCst) < tasks || !running.is_empty() {
        // Some end and hand over, some end and give back, some go on.
        let ends = fastrand::usize(0..=running.len());
        let done: Vec<_> =
            running.drain(..ends).map(|claim| ended(claim, &Outcome::succeeded(None))).collect();
        downstream.end(done.len());
        let got = consumer.exchange(&done, fastrand::usize(0..=3)).await;
        downstream.begin(got.claims.len());
        assert!(got.recorded.iter().all(|recorded| *recorded == Recorded::Done));
        running.extend(got.claims);
        yield_now().await;
    }
}

async fn fleet(db: &Db, tasks: usize) -> Arc<Downstream> {
    let downstream = Arc::new(Downstream::default());
    db.enqueue(tasks).await;
    let mut workers = Vec::new();
    for n in 0..16 {
        let consumer = db.consumer(&format!("c{n}")).await;
        workers.push(spawn(work(consumer, Arc::clone(&downstream), i64::try_from(tasks).unwrap())));
    }
    timeout(Duration::from_mins(2), async {
        for worker in workers {
            while !worker.is_finished() {
                db.conservation().await;
                sleep(Duration::from_millis(2)).await;
            }
            worker.await.unwrap();
        }
    })
    .await
    .expect("the fleet gets through");
    assert_eq!(downstream.calls.load(Ordering::SeqCst), i64::try_from(tasks).unwrap(), "each once");
    assert_eq!(db.store().states(None).await.unwrap(), [(State::Succeeded, i64::try_from(tasks).unwrap())]);
    db.holds(0).await;
    downstream
}

async fn sixteen_consumers_never_exceed_the_cap(db: Db) {
    let downstream = fleet(&db, 100).await;
    assert_eq!(downstream.most.load(Ordering::SeqCst), 4, "as many as allowed, never more");
    assert_eq!(db.store().peak("default", Peak::EVER).await.unwrap(), Peak { peak: 4, overruns: 0 });
}

async fn the_cap_is_moved_under_load(db: Db) {
    let tune = async {
        for max in [6, 1, 3, 5, 2, 4].repeat(5) {
            db.sql(&format!("UPDATE permitq_semaphore SET max_permits = {max}")).await;
            yield_now().await;
        }
    };
    let (downstream, ()) = tokio::join!(fleet(&db, 80), tune);
    assert!(downstream.most.load(Ordering::SeqCst) <= 6);
    assert_eq!(db.store().peak("default", Peak::EVER).await.unwrap().overruns, 0);
}
