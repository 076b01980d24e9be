//! What an audit reads: the counter against what is there, states that cannot be, and the peak from the log.

use std::ops::Range;

use futures_util::TryStreamExt;
use sqlx::Row;

use super::dependents::Stray;
use super::rows::Read;
use super::unit::{How, Tx, Unit};
use super::{Result, Store};
use crate::model::{Moved, Semaphore, Sweep};

/// So many tasks that wait in vain are named.
const STRAYS: i64 = 100;

/// What is wrong with the tables, apart from the counters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Audit {
    /// Every semaphore with its counter and what is there.
    pub semaphores: Vec<Semaphore>,
    /// States that nothing of ours can produce, each in words.
    pub impossible: Vec<String>,
}

/// The most permits of a semaphore that were held at one instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Peak {
    /// At most so many.
    pub peak: i64,
    /// Claims above the cap then in force.
    pub overruns: u64,
}

impl Peak {
    /// The period that leaves nothing out.
    pub const EVER: Range<i64> = 0..i64::MAX;
}

impl Store {
    /// Reads what an audit needs; repairs nothing.
    pub async fn audit(&mut self) -> Result<Audit> {
        let semaphores = self.semaphores().await?;
        let mut impossible = self.run(&Impossible).await?;
        impossible.extend(self.strays(STRAYS).await?.iter().map(Stray::words));
        Ok(Audit { semaphores, impossible })
    }

    /// Computes the peak of held permits in a period (microseconds since 1970) from the attempt log.
    pub async fn peak(&mut self, semaphore: &str, period: Range<i64>) -> Result<Peak> {
        self.run(&ReadPeak { semaphore, period }).await
    }
}

struct Impossible;

impl Unit for Impossible {
    type Answer = Vec<String>;
    const NAME: &'static str = "look for impossible states";
    const HOW: How = How::Reading;

    async fn run(&self, tx: &mut Tx<'_>) -> sqlx::Result<Vec<String>> {
        sqlx::query_scalar(tx.sql.impossible).fetch_all(&mut *tx.conn).await
    }
}

struct ReadPeak<'a> {
    semaphore: &'a str,
    period: Range<i64>,
}

impl Unit for ReadPeak<'_> {
    type Answer = Peak;
    const NAME: &'static str = "sweep the log";
    const HOW: How = How::Reading;

    async fn run(&self, tx: &mut Tx<'_>) -> sqlx::Result<Peak> {
        let mut sweep = Sweep::default();
        let mut rows = sqlx::query(tx.sql.sweep)
            .bind(self.semaphore)
            .bind(self.semaphore)
            .bind(self.period.start)
            .bind(self.semaphore)
            .bind(self.period.start)
            .bind(self.semaphore)
            .bind(self.period.end)
            .fetch(&mut *tx.conn);
        while let Some(row) = rows.try_next().await? {
            let moved = match row.text("what")?.as_str() {
                "limit" => Moved::Limit(row.try_get("n")?),
                "free" => Moved::Free,
                _ => Moved::Take,
            };
            sweep.push(row.int("at")?, moved);
        }
        Ok(Peak { peak: sweep.peak(), overruns: sweep.overruns() })
    }
}
