//! Everybody else who touches the database: who enqueues, who tunes and edits, who cancels and retries.
//!
//! Each works through its own orders in order, so that an outage delays one and not the plan.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use fastrand::Rng;
use sqlx::Row;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use super::hand::Hand;
use super::journal::{Book, Cap, Edit, Struck};
use super::plan::{Act, Fault};
use super::scale::{CALL_MOST, KIND, SEMAPHORE};

/// So many tasks may wait; a batch that comes then is left out, so that the end is not far when the faults are over.
const BACKLOG: i64 = 40;

/// Inserts tasks with plain SQL, under keys that tell afterwards which of them are there.
pub(super) async fn enqueue(
    mut hand: Hand,
    book: Arc<Book>,
    run: String,
    waiting: Arc<AtomicI64>,
    mut orders: UnboundedReceiver<Act>,
) {
    let mut number = 0;
    while let Some(order) = orders.recv().await {
        let Act::Enqueue(n, seed) = order else { continue };
        if waiting.load(Ordering::Relaxed) > BACKLOG {
            continue;
        }
        let mut rng = Rng::with_seed(seed);
        let mut keys = Vec::new();
        let mut rows = Vec::new();
        for _ in 0..n {
            number += 1;
            let key = format!("{run}{number}");
            rows.push(task(&key, &mut rng));
            keys.push(key);
        }
        let statement = format!(
            "INSERT INTO permitq_task (kind, biz_key, payload, priority, max_attempts, on_abandon, source) VALUES {}",
            rows.join(", ")
        );
        let done = hand.execute(&statement).await;
        let mut journal = book.write();
        if done.is_ok() { &mut journal.acked } else { &mut journal.doubtful }.extend(keys);
    }
}

/// One row. Most calls are fair, some fail first, some say nothing clear; a few tasks have policies of their own.
fn task(key: &str, rng: &mut Rng) -> String {
    const FAULTS: [&str; 7] = ["fail", "429", "504", "202", "cut", "reset", "hang"];
    let ms = rng.u64(200..=CALL_MOST);
    let fault = match rng.u32(0..12) {
        0 => format!(r#", "fault": "{}", "fault_attempts": 1"#, FAULTS[rng.usize(0..FAULTS.len())]),
        _ => String::new(),
    };
    let max_attempts = if rng.u32(0..30) == 0 { "2" } else { "NULL" };
    let on_abandon = match rng.u32(0..20) {
        0 => "'fail'",
        1 => "'retry_after_cooling'",
        _ => "NULL",
    };
    let priority = rng.i32(0..3);
    format!(
        r#"('{KIND}', '{key}', '{{"ms": {ms}{fault}}}', {priority}, {max_attempts}, {on_abandon}, '{KIND}')"#
    )
}

/// Sets the cap, until it is set; edits the counter, once.
pub(super) async fn operate(mut hand: Hand, book: Arc<Book>, mut orders: UnboundedReceiver<Act>) {
    while let Some(order) = orders.recv().await {
        match order {
            Act::Retune(max) => retune(&mut hand, &book, max).await,
            Act::Edit(by) => edit(&mut hand, &book, by).await,
            _ => {}
        }
    }
}

async fn retune(hand: &mut Hand, book: &Book, max: i64) {
    let sent = book.now();
    let at = {
        let caps = &mut book.write().caps;
        caps.push(Cap { sent, acked: u64::MAX, max });
        caps.len() - 1
    };
    let statement = format!("UPDATE permitq_semaphore SET max_permits = {max} WHERE name = '{SEMAPHORE}'");
    while hand.execute(&statement).await.is_err() {
        book.write().cut_off += 1;
        sleep(Duration::from_millis(50)).await;
    }
    let acked = book.now();
    let mut journal = book.write();
    journal.caps[at].acked = acked;
    journal.struck.push(Struck { at: sent, until: acked, what: Fault::Retune, member: None });
}

async fn edit(hand: &mut Hand, book: &Book, by: i64) {
    let sent = book.now();
    let at = {
        let edits = &mut book.write().edits;
        edits.push(Edit { sent, acked: None, by });
        edits.len() - 1
    };
    let statement = format!(
        "UPDATE permitq_semaphore SET in_use = in_use + ({by}) WHERE name = '{SEMAPHORE}' AND in_use + ({by}) >= 0"
    );
    let done = hand.execute(&statement).await;
    let acked = book.now();
    let mut journal = book.write();
    match done {
        Ok(0) => drop(journal.edits.pop()),
        Ok(_) => {
            journal.edits[at].acked = Some(acked);
            journal.struck.push(Struck { at: sent, until: acked, what: Fault::Edit, member: None });
        }
        // It may have happened.
        Err(_) => journal.cut_off += 1,
    }
}

/// Runs `permitq task cancel` and `permitq task retry`, under the same clock as the consumers.
pub(super) async fn meddle(
    mut hand: Hand,
    book: Arc<Book>,
    command: impl Fn(&[&str]) -> Command + Send + 'static,
    mut orders: UnboundedReceiver<Act>,
) {
    let run = async |what: &str, id: i64| {
        let mut command = command(&["task", what, &id.to_string()]);
        spawn_blocking(move || command.status().is_ok_and(|status| status.success())).await.unwrap_or(false)
    };
    while let Some(order) = orders.recv().await {
        let states = match order {
            Act::Cancel { running: true } => "'running'",
            Act::Cancel { running: false } => "'pending', 'scheduled'",
            _ => "'failed', 'cancelled'",
        };
        let query = format!("SELECT id FROM permitq_task WHERE state IN ({states}) ORDER BY id DESC LIMIT 1");
        let Ok(rows) = hand.rows(&query).await else { continue };
        let Some(id) = rows.first().and_then(|row| row.try_get::<i64, _>(0).ok()) else { continue };
        let failed = if order == Act::Retry {
            // Before it is sent: where no answer comes, it may have happened.
            book.write().retried.push(id);
            !run("retry", id).await
        } else {
            let done = run("cancel", id).await;
            book.write().cancels += u64::from(done);
            !done
        };
        book.write().cut_off += u64::from(failed);
    }
}
