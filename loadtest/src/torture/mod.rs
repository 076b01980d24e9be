//! Everything at once: claims, hand-overs, ends of every kind, forgotten tasks, beats, fences, reclaims, coolings, repairs,
//! retuning, enqueues, cancels and retries, by many clients with a connection each, of which some die at every moment.
//!
//! ```text
//!  N clients ──► one semaphore, one kind ◄── a killer (drops units halfway; on servers also kills connections)
//!                    ▲          ▲
//!         observer: one read    trigger: in_use grew beyond max_permits
//! ```
//!
//! What must hold: the counter never grows beyond the cap, no audit under the lock finds drift, and no conflict between
//! clients reaches a caller. When it is over everything is taken back, and the books must balance: no permit in use, no
//! task lost, one recorded success per success.

mod client;
mod report;
mod side;
mod tally;

use std::sync::Arc;
use std::time::Duration;

use permitq::model::Semaphore;
use permitq::store::{Database, Dialect, Left, Store};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use client::Client;
use side::Side;
use tally::Tally;

use crate::Error;

pub use report::Report;

/// A torture of this database.
#[derive(Clone, Debug)]
pub struct Torture {
    /// Where. It must hold no tasks but those of an earlier torture.
    pub url: String,
    /// For how long.
    pub time: Duration,
    /// How many clients.
    pub clients: usize,
}

const SEMAPHORE: &str = "default";
/// The kind and the source of every task.
const KIND: &str = "torture";
/// The caps go from 0 to here.
const MOST: i64 = 40;
/// How long claims hold without a beat. One in a few clients is late.
const LEASE: Duration = Duration::from_millis(300);
/// How long a permit cools at most.
const HOLD: Duration = Duration::from_millis(200);
/// What is given up must be over by then.
const PATIENCE: Duration = Duration::from_mins(1);

impl Torture {
    /// Creates the schema where there is none, tortures, and takes everything back.
    ///
    /// # Errors
    /// Where the database cannot be reached at the start or the end, or holds tasks of others.
    pub async fn run(&self) -> Result<Report, Error> {
        let database = Database::new(&self.url)?.create();
        let mut side = Side::open(&database, &self.url).await?;
        side.refuse_foreign_tasks().await?;
        let mut store = database.store();
        store.migrate().await?;
        side.refuse_foreign_tasks().await?;
        let before = semaphore(&mut store).await?.max_permits;
        let tasks_before = side.tasks().await?;
        let since = store.clock().await?;
        side.guard(true).await?;

        let tally = Arc::new(Tally::default());
        let start = Instant::now();
        let end = start + self.time;
        let mut fleet = JoinSet::new();
        for _ in 0..self.clients {
            fleet.spawn(Client::new(&database, tally.clone()).work(end));
        }
        let mut watchers = JoinSet::new();
        watchers.spawn(observe(database.clone(), tally.clone(), end));
        let killer = Side::open(&database, &self.url).await?;
        watchers.spawn(killer.kill_now_and_then(tally.clone(), end));
        let mut ids = Vec::new();
        while let Some(client) = fleet.join_next().await {
            ids.extend(client?);
        }
        while let Some(watcher) = watchers.join_next().await {
            watcher?;
        }
        let took = start.elapsed();

        // The killer may have met this connection, too.
        store = database.store();
        for id in ids {
            store.leave(&id, Left::Gone).await?;
        }
        let settled = settle(&mut store, &tally).await?;
        side.guard(false).await?;
        store.set_max(SEMAPHORE, before, KIND).await?;
        let peak = store.peak(SEMAPHORE, since..i64::MAX).await?;
        tally.overruns("log", peak.overruns);
        for what in store.audit().await?.impossible {
            tally.surprise(&what);
        }
        if let Some(what) = side.unbalanced().await? {
            tally.surprise(&what);
        }
        let (certain, uncertain) = tally.enqueued();
        let tasks = side.tasks().await? - tasks_before;
        if !(certain..=certain + uncertain).contains(&tasks) {
            tally.surprise(&format!("{tasks} tasks, but {certain} were enqueued and {uncertain} perhaps"));
        }
        Ok(tally.report(database.dialect(), self.clients, took, settled, peak.peak))
    }
}

async fn semaphore(store: &mut Store) -> Result<Semaphore, Error> {
    let all = store.semaphores().await?;
    Ok(all.into_iter().find(|semaphore| semaphore.name == SEMAPHORE).ok_or("no semaphore called default")?)
}

/// Reads counter and permits in one snapshot, again and again.
async fn observe(database: Database, tally: Arc<Tally>, end: Instant) {
    // MySQL and MariaDB: a read without the lock is only a hint there; the audits under the lock decide.
    let exact = database.dialect() != Dialect::Mysql;
    let mut store = database.store();
    while Instant::now() < end {
        match semaphore(&mut store).await {
            Ok(seen) => tally.observed(&seen, exact),
            Err(_) => tally.count("observer cut off"),
        }
        sleep(Duration::from_millis(1)).await;
    }
}

/// Takes back what is left, until no permit is in use; answers whether it came to that.
async fn settle(store: &mut Store, tally: &Tally) -> Result<bool, Error> {
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline {
        while !store.reclaim(KIND, LEASE, 0, 1000).await?.is_empty() {}
        let now = store.clock().await?;
        store.end_coolings(SEMAPHORE, now, 1000).await?;
        let repair = store.repair(SEMAPHORE, HOLD, "auditor").await?;
        tally.audited(repair.drift());
        if repair.in_use == 0 {
            return Ok(true);
        }
        sleep(Duration::from_millis(20)).await;
    }
    Ok(false)
}
