//! Looks at the ledger ten times a second.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use permitq::store::Dialect;
use tokio::time::{MissedTickBehavior, interval};

use super::hand::Hand;
use super::journal::Book;
use super::scale::SEMAPHORE;

/// What one snapshot showed. It was taken between `at` and `until`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    pub(super) at: u64,
    pub(super) until: u64,
    pub(super) in_use: i64,
    pub(super) running: i64,
    pub(super) cooling: i64,
    /// Tasks that are not final.
    pub(super) open: i64,
}

impl Sample {
    pub(super) fn balances(&self) -> bool {
        self.in_use == self.running + self.cooling
    }
}

/// Shared with who wants to know how it stands.
#[derive(Debug, Default)]
pub(super) struct Watch {
    pub(super) open: Arc<AtomicI64>,
    pub(super) in_use: AtomicI64,
    pub(super) stop: AtomicBool,
}

/// Until it is told to stop.
pub(super) async fn watch(mut hand: Hand, book: Arc<Book>, watch: Arc<Watch>) -> Vec<Sample> {
    let query = hand.ledger();
    let mut samples: Vec<Sample> = Vec::new();
    let mut ticks = interval(Duration::from_millis(100));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while !watch.stop.load(Ordering::Relaxed) {
        ticks.tick().await;
        let mut seen = look(&mut hand, &book, &query).await;
        // MySQL and MariaDB make the rows of one commit visible one after the other: only a look under the lock decides.
        if hand.dialect == Dialect::Mysql && seen.is_some_and(|seen| !seen.balances()) {
            seen = look_under_lock(&mut hand, &book, &query).await;
        }
        let Some(seen) = seen else {
            book.write().cut_off += 1;
            continue;
        };
        watch.open.store(seen.open, Ordering::Relaxed);
        watch.in_use.store(seen.in_use, Ordering::Relaxed);
        samples.push(seen);
    }
    samples
}

async fn look(hand: &mut Hand, book: &Book, query: &str) -> Option<Sample> {
    let at = book.now();
    let [in_use, _max, running, cooling, open] = hand.numbers(query).await.ok()?;
    Some(Sample { at, until: book.now(), in_use, running, cooling, open })
}

async fn look_under_lock(hand: &mut Hand, book: &Book, query: &str) -> Option<Sample> {
    hand.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED").await.ok()?;
    hand.execute("START TRANSACTION").await.ok()?;
    let lock = format!("SELECT in_use FROM permitq_semaphore WHERE name = '{SEMAPHORE}' FOR UPDATE");
    let locked = hand.rows(&lock).await.ok();
    let seen = look(hand, book, query).await;
    hand.execute("ROLLBACK").await.ok()?;
    locked.and(seen)
}
