//! What the stub and the database have to say when all is over, and what was done to them.

use sqlx::Row;
use sqlx::any::AnyRow;

use permitq::downstream::stub::Entry;

use super::hand::Hand;
use super::journal::Journal;
use super::scale::SEMAPHORE;
use super::watch::Sample;
use crate::Error;

/// A call as the stub saw it. Milliseconds since the start.
#[derive(Clone, Debug, Default)]
pub(super) struct Call {
    /// From its `Idempotency-Key`.
    pub(super) task: i64,
    /// From its fencing token.
    pub(super) claim_no: i64,
    pub(super) start: u64,
    /// When it was over downstream, whoever still listened.
    pub(super) end: Option<u64>,
    pub(super) status: Option<u16>,
    /// The stub refused it as one too many.
    pub(super) refused: bool,
}

/// A row of the attempt log. Instants as the database stamped them, in milliseconds since 1970.
#[derive(Clone, Debug, Default)]
pub(super) struct Attempt {
    pub(super) task: i64,
    pub(super) claim_no: i64,
    pub(super) consumer: String,
    pub(super) claimed: i64,
    pub(super) ended: i64,
    pub(super) released: Option<i64>,
    pub(super) outcome: String,
}

/// A row of the task table.
#[derive(Clone, Debug, Default)]
pub(super) struct Task {
    pub(super) id: i64,
    pub(super) key: String,
    pub(super) state: String,
    pub(super) attempts: i64,
    pub(super) max_attempts: Option<i64>,
    pub(super) claim_no: i64,
}

/// A change of a task, as a trigger saw it.
#[derive(Clone, Debug, Default)]
pub(super) struct Change {
    pub(super) task: i64,
    pub(super) from: String,
    pub(super) to: String,
    pub(super) claim_no: [i64; 2],
    pub(super) attempts: [i64; 2],
}

/// All of it.
#[derive(Clone, Debug, Default)]
pub(super) struct Evidence {
    /// What was done.
    pub(super) journal: Journal,
    pub(super) calls: Vec<Call>,
    pub(super) samples: Vec<Sample>,
    pub(super) tasks: Vec<Task>,
    pub(super) attempts: Vec<Attempt>,
    pub(super) changes: Vec<Change>,
    /// Process ids of consumers that ever had a claim.
    pub(super) at_work: Vec<i64>,
    /// The database's instant of the start, its clock being right.
    pub(super) zero: i64,
    /// When the last fault had ended.
    pub(super) end: u64,
    /// When every task was final and every permit free.
    pub(super) settled: Option<u64>,
    /// Tasks that were not final when the faults ended.
    pub(super) rest: usize,
    /// Whoever is frozen in the midst of a transaction holds everybody up for no longer than this.
    pub(super) idle: u64,
    /// How the consumers ended when they were told to, at the end.
    pub(super) codes: Vec<Option<i32>>,
}

impl Evidence {
    /// Reads the database's part: everything of tasks above `first`.
    pub(super) async fn read(&mut self, hand: &mut Hand, first: i64) -> Result<(), Error> {
        let (number, text) = (|column: &str| hand.as_number(column), |column: &str| hand.as_text(column));
        let tasks = format!(
            "SELECT id, {}, {}, {}, {}, claim_no FROM permitq_task WHERE id > {first} ORDER BY id",
            text("coalesce(biz_key, '')"),
            text("state"),
            number("attempts"),
            number("max_attempts")
        );
        let attempts = format!(
            "SELECT task, claim_no, {}, {}, {}, {}, {} FROM permitq_attempt
              WHERE task > {first} AND semaphore = '{SEMAPHORE}' ORDER BY task, claim_no",
            text("consumer"),
            hand.ms("claimed_at"),
            hand.ms("ended_at"),
            hand.ms("permit_released_at"),
            text("outcome")
        );
        let changes = "SELECT task, from_state, to_state, from_claim, to_claim, from_attempts, to_attempts
                         FROM chaos_change ORDER BY id"
            .replace("from_state", &text("from_state"))
            .replace("to_state", &text("to_state"));
        let pids = format!(
            "SELECT pid FROM permitq_consumer c
              WHERE EXISTS (SELECT 1 FROM permitq_attempt a WHERE a.consumer = c.id AND a.task > {first})"
        );
        self.tasks = read(hand, &tasks, task).await?;
        self.attempts = read(hand, &attempts, attempt).await?;
        self.changes = read(hand, &changes, change).await?;
        self.at_work = read(hand, &pids, |row| row.try_get(0)).await?;
        Ok(())
    }
}

async fn read<T>(
    hand: &mut Hand,
    query: &str,
    row: fn(&AnyRow) -> Result<T, sqlx::Error>,
) -> Result<Vec<T>, Error> {
    let rows = hand.rows(query).await.map_err(|error| format!("{error} in {query}"))?;
    Ok(rows.iter().map(row).collect::<Result<_, _>>().map_err(|error| format!("{error} in {query}"))?)
}

fn task(row: &AnyRow) -> Result<Task, sqlx::Error> {
    Ok(Task {
        id: row.try_get(0)?,
        key: row.try_get(1)?,
        state: row.try_get(2)?,
        attempts: row.try_get(3)?,
        max_attempts: row.try_get(4)?,
        claim_no: row.try_get(5)?,
    })
}

fn attempt(row: &AnyRow) -> Result<Attempt, sqlx::Error> {
    Ok(Attempt {
        task: row.try_get(0)?,
        claim_no: row.try_get(1)?,
        consumer: row.try_get(2)?,
        claimed: row.try_get(3)?,
        ended: row.try_get(4)?,
        released: row.try_get(5)?,
        outcome: row.try_get(6)?,
    })
}

fn change(row: &AnyRow) -> Result<Change, sqlx::Error> {
    Ok(Change {
        task: row.try_get(0)?,
        from: row.try_get(1)?,
        to: row.try_get(2)?,
        claim_no: [row.try_get(3)?, row.try_get(4)?],
        attempts: [row.try_get(5)?, row.try_get(6)?],
    })
}

impl Call {
    /// An entry of the stub's log; `shift` is the stub's start in our milliseconds.
    pub(super) fn of(entry: &Entry, shift: u64) -> Self {
        let task = entry.key.as_deref().and_then(|key| key.rsplit('-').next()?.parse().ok());
        Self {
            task: task.unwrap_or_default(),
            claim_no: entry.token.unwrap_or_default(),
            start: entry.start_us / 1000 + shift,
            end: entry.end_us.map(|end| end / 1000 + shift),
            status: entry.status,
            refused: entry.overrun,
        }
    }
}
