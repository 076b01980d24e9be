//! What time does to tasks that wait: their deadline passes, and their priority grows with age.

use std::time::Duration;

use serde_json::json;

use crate::store::dependents::tell;
use crate::store::rows::{Read, micros};
use crate::store::unit::{How, Tx, Unit};
use crate::store::{Result, Store};

/// Priorities of one kind that one pass looks at.
const LEVELS: usize = 50;

impl Store {
    /// Cancels tasks that wait and whose deadline has passed, at most `limit`; answers how many.
    pub async fn expire(&mut self, limit: i64) -> Result<u64> {
        self.run(&Expire { limit }).await
    }

    /// Raises by one the priority of the oldest tasks of this kind that have been due for a further `ageing`, up to the
    /// highest that waits; answers how many.
    pub async fn age(&mut self, semaphore: &str, kind: &str, ageing: Duration) -> Result<u64> {
        let (mut raised, mut above) = (0, None);
        for n in 0..LEVELS {
            let Some(level) = self.run(&Level { semaphore, kind, above }).await? else { break };
            above = Some(level);
            // Whoever is at the top already is claimed by age.
            if n > 0 {
                raised += self.run(&Age { semaphore, kind, level, ageing }).await?;
            }
        }
        Ok(raised)
    }
}

struct Expire {
    limit: i64,
}

impl Unit for Expire {
    type Answer = u64;
    const NAME: &'static str = "cancel what has expired";

    async fn run(&self, tx: &mut Tx<'_>) -> sqlx::Result<u64> {
        let rows = sqlx::query(tx.sql.lapsed).bind(self.limit).fetch_all(&mut *tx.conn).await?;
        let ids: Vec<_> = rows.iter().map(|row| row.int("id")).collect::<sqlx::Result<_>>()?;
        let lapsed = lapse(tx, ids.clone()).await?;
        tell(tx, ids).await?;
        Ok(lapsed)
    }
}

/// Cancels these tasks, which are locked for us, as far as their deadline has passed. A claim holds the semaphore's row, and so
/// may not wait for those that wait for them: the next pass of upkeep tells them.
pub(in crate::store) async fn lapse(tx: &mut Tx<'_>, mut ids: Vec<i64>) -> sqlx::Result<u64> {
    if ids.is_empty() {
        return Ok(0);
    }
    ids.sort_unstable();
    Ok(sqlx::query(tx.sql.lapse).bind(json!(ids).to_string()).execute(&mut *tx.conn).await?.rows_affected())
}

struct Level<'a> {
    semaphore: &'a str,
    kind: &'a str,
    above: Option<i64>,
}

impl Unit for Level<'_> {
    type Answer = Option<i64>;
    const NAME: &'static str = "look for the next priority";
    const HOW: How = How::Reading;

    async fn run(&self, tx: &mut Tx<'_>) -> sqlx::Result<Option<i64>> {
        let rows = sqlx::query(tx.sql.level)
            .bind(self.semaphore)
            .bind(self.kind)
            .bind(self.above)
            .fetch_all(&mut *tx.conn)
            .await?;
        rows.first().map(|row| row.int("priority")).transpose()
    }
}

struct Age<'a> {
    semaphore: &'a str,
    kind: &'a str,
    level: i64,
    ageing: Duration,
}

impl Unit for Age<'_> {
    type Answer = u64;
    const NAME: &'static str = "raise priorities by age";

    async fn run(&self, tx: &mut Tx<'_>) -> sqlx::Result<u64> {
        let raised = sqlx::query(tx.sql.age)
            .bind(self.semaphore)
            .bind(self.kind)
            .bind(self.level)
            .bind(micros(self.ageing))
            .execute(&mut *tx.conn)
            .await?;
        Ok(raised.rows_affected())
    }
}
