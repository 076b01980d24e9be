//! Permits that cool: who is in doubt about them, and their ends.

use std::time::Duration;

use serde_json::json;
use sqlx::Row;
use sqlx::any::AnyRow;

use crate::model::Attempt;
use crate::store::record::permits;
use crate::store::rows::{Read, one};
use crate::store::unit::{How, Tx, Unit};
use crate::store::{Result, Store};

/// A permit that cools, and whose call somebody can be asked about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cooling {
    /// Its row.
    pub id: i64,
    /// Whose call was given up.
    pub attempt: Attempt,
    /// Who made the call.
    pub consumer: String,
    /// The task's kind.
    pub kind: String,
    /// Nobody but this attempt has ever claimed the task.
    pub only: bool,
}

impl Store {
    /// Frees permits of one semaphore whose calls must have been over at this instant of the database's clock
    /// (microseconds since 1970, read before), at most `limit`; answers how many.
    pub async fn end_coolings(&mut self, semaphore: &str, as_of: i64, limit: i64) -> Result<i64> {
        self.run(&EndCoolings { semaphore, as_of, limit }).await
    }

    /// Permits that cool, ids above `after`, at most `limit`.
    pub async fn coolings(&mut self, after: i64, limit: i64) -> Result<Vec<Cooling>> {
        self.run(&ReadCoolings { after, limit }).await
    }

    /// Frees the permit of a call that is known to be over; answers whether it still cooled.
    pub async fn end_cooling(&mut self, cooling: &Cooling) -> Result<bool> {
        self.run(&EndCooling { cooling }).await
    }

    /// How long any permit now taken may be held at most.
    pub async fn longest_hold(&mut self, semaphore: &str) -> Result<Duration> {
        let (longest, _) = self.run(&Longest { semaphore }).await?;
        Ok(Duration::from_micros(u64::try_from(longest).unwrap_or_default()))
    }
}

struct EndCoolings<'a> {
    semaphore: &'a str,
    as_of: i64,
    limit: i64,
}

impl Unit for EndCoolings<'_> {
    type Answer = i64;
    const NAME: &'static str = "end coolings";

    async fn run(&self, tx: &mut Tx<'_>) -> sqlx::Result<i64> {
        let query = sqlx::query(tx.sql.cooled).bind(self.as_of).bind(self.semaphore).bind(self.limit);
        let rows = query.fetch_all(&mut *tx.conn).await?;
        let freed = free_coolings(tx, &rows).await?;
        permits(tx, self.semaphore, -freed).await?;
        Ok(freed)
    }
}

struct ReadCoolings {
    after: i64,
    limit: i64,
}

impl Unit for ReadCoolings {
    type Answer = Vec<Cooling>;
    const NAME: &'static str = "read coolings";
    const HOW: How = How::Reading;

    async fn run(&self, tx: &mut Tx<'_>) -> sqlx::Result<Vec<Cooling>> {
        let rows =
            sqlx::query(tx.sql.coolings).bind(self.after).bind(self.limit).fetch_all(&mut *tx.conn).await?;
        rows.iter()
            .map(|row| {
                let attempt = Attempt { task: row.int("task")?, claim_no: row.int("claim_no")? };
                Ok(Cooling {
                    id: row.int("id")?,
                    attempt,
                    consumer: row.text("consumer")?,
                    kind: row.text("kind")?,
                    only: row.int("last")? == 1,
                })
            })
            .collect()
    }
}

struct EndCooling<'a> {
    cooling: &'a Cooling,
}

impl Unit for EndCooling<'_> {
    type Answer = bool;
    const NAME: &'static str = "end a cooling";

    async fn run(&self, tx: &mut Tx<'_>) -> sqlx::Result<bool> {
        let own = own_cooling(tx, self.cooling.attempt, &self.cooling.consumer).await?;
        end_own(tx, &own).await
    }
}

/// The cooling of one attempt of this consumer, if it is still there; locked.
pub(in crate::store) async fn own_cooling(
    tx: &mut Tx<'_>,
    attempt: Attempt,
    consumer: &str,
) -> sqlx::Result<Vec<AnyRow>> {
    sqlx::query(tx.sql.own_cooling)
        .bind(attempt.task)
        .bind(attempt.claim_no)
        .bind(consumer)
        .fetch_all(&mut *tx.conn)
        .await
}

/// Ends what [`own_cooling`] found.
pub(in crate::store) async fn end_own(tx: &mut Tx<'_>, rows: &[AnyRow]) -> sqlx::Result<bool> {
    let Some(row) = rows.first() else { return Ok(false) };
    let freed = free_coolings(tx, rows).await?;
    permits(tx, &row.text("semaphore")?, -freed).await?;
    Ok(freed > 0)
}

/// Ends these coolings, locked by the caller, and tells the log; the caller frees as many permits, last.
async fn free_coolings(tx: &mut Tx<'_>, rows: &[AnyRow]) -> sqlx::Result<i64> {
    if rows.is_empty() {
        return Ok(0);
    }
    let mut ids = Vec::with_capacity(rows.len());
    let mut attempts = Vec::new();
    for row in rows {
        ids.push(row.int("id")?);
        if let (Some(task), Some(claim_no)) = (row.int_or_null("task")?, row.int_or_null("claim_no")?) {
            attempts.push(json!({"id": task, "claim_no": claim_no}));
        }
    }
    if !attempts.is_empty() {
        sqlx::query(tx.sql.released).bind(json!(attempts).to_string()).execute(&mut *tx.conn).await?;
    }
    let ended = sqlx::query(tx.sql.uncool).bind(json!(ids).to_string()).execute(&mut *tx.conn).await?;
    Ok(i64::try_from(ended.rows_affected()).unwrap_or(i64::MAX))
}

pub(super) struct Longest<'a> {
    pub(super) semaphore: &'a str,
}

impl Unit for Longest<'_> {
    /// Microseconds, and the highest cap this semaphore ever had.
    type Answer = (i64, i64);
    const NAME: &'static str = "read the longest bound";
    const HOW: How = How::Reading;

    async fn run(&self, tx: &mut Tx<'_>) -> sqlx::Result<(i64, i64)> {
        let row = one(sqlx::query(tx.sql.longest).bind(self.semaphore).fetch_all(&mut *tx.conn).await?)?;
        Ok((row.try_get(0)?, row.try_get(1)?))
    }
}
