//! What goes on while a server dies: somebody enqueues, somebody audits, and both keep book.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use permitq::model::NewTask;
use permitq::store::{Database, Store};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::support::site::{HOLD, Site};

/// Enqueues and audits until it is told to stop.
pub(crate) struct Load {
    stop: Arc<AtomicBool>,
    pub(crate) acknowledged: Arc<AtomicUsize>,
    enqueuer: JoinHandle<Book>,
    auditor: JoinHandle<usize>,
}

/// What the enqueuer was told.
#[derive(Default)]
struct Book {
    /// Ids of tasks that are there, as the database said.
    acknowledged: BTreeSet<i64>,
    /// Calls after which a task may be there or not.
    unknown: usize,
}

impl Load {
    /// Tasks one by one, without a key, with short calls: fewer than the cap can bear, so that consumers keep running out
    /// of tasks and meet at the semaphore.
    pub(crate) fn on(hosts: &[String]) -> Self {
        let hosts: Vec<&str> = hosts.iter().map(String::as_str).collect();
        let database = Database::first_of(&hosts).unwrap().limit(Duration::from_secs(3));
        let stop = Arc::<AtomicBool>::default();
        let acknowledged = Arc::<AtomicUsize>::default();
        Self {
            enqueuer: tokio::spawn(enqueue(database.store(), stop.clone(), acknowledged.clone())),
            auditor: tokio::spawn(audit(database.store(), stop.clone())),
            stop,
            acknowledged,
        }
    }

    /// Stops, waits until the site has settled, and closes the books.
    pub(crate) async fn end(self, site: &Site, max: u32) {
        self.stop.store(true, Ordering::Relaxed);
        let book = self.enqueuer.await.unwrap();
        let audits = self.auditor.await.unwrap();
        assert!(audits > 20, "only {audits} audits");
        site.settled().await;
        site.cap_held(max).await;
        assert_eq!(site.said("the counter was wrong"), 0);
        let mut store = site.db.store();
        assert_eq!(store.repair("default", HOLD, "auditor").await.unwrap().drift(), 0);
        assert_eq!(store.audit().await.unwrap().impossible, Vec::<String>::new());

        // Whatever was acknowledged is there, and whatever was refused is not.
        let mut there = 0;
        for id in &book.acknowledged {
            there += usize::from(store.task(*id).await.unwrap().is_some());
        }
        assert_eq!(there, book.acknowledged.len(), "acknowledged tasks are lost");
        let rows = usize::try_from(site.db.int("SELECT count(*) FROM permitq_task").await).unwrap();
        assert!(rows <= there + book.unknown, "{rows} rows, {there} acknowledged, {} unknown", book.unknown);
        let done = "SELECT count(*) FROM permitq_task WHERE state = 'succeeded'";
        assert_eq!(usize::try_from(site.db.int(done).await).unwrap(), rows, "a task has not succeeded");
    }
}

async fn enqueue(mut store: Store, stop: Arc<AtomicBool>, acknowledged: Arc<AtomicUsize>) -> Book {
    let mut book = Book::default();
    let mut task = NewTask::new("call", r#"{"ms": 60}"#);
    task.max_attempts = Some(20); // a dead server costs attempts
    while !stop.load(Ordering::Relaxed) {
        match store.enqueue(std::slice::from_ref(&task)).await {
            Ok(enqueued) => {
                assert!(book.acknowledged.insert(enqueued[0].id), "an id was given twice");
                acknowledged.fetch_add(1, Ordering::Relaxed);
            }
            Err(error) => {
                book.unknown += usize::from(error.is_unknown());
                eprintln!("enqueue: {error}");
            }
        }
        sleep(Duration::from_millis(25)).await;
    }
    book
}

/// Counts under the lock. Answers how often.
async fn audit(mut store: Store, stop: Arc<AtomicBool>) -> usize {
    let mut audits = 0;
    while !stop.load(Ordering::Relaxed) {
        if let Ok(found) = store.repair("default", HOLD, "auditor").await {
            assert_eq!(found.drift(), 0, "{found:?}");
            audits += 1;
        }
        sleep(Duration::from_millis(40)).await;
    }
    audits
}
