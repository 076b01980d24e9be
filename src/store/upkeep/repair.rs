//! The auditor: counts what `in_use` should be, and makes it so.

use std::time::Duration;

use sqlx::Row;

use super::cooling::Longest;
use crate::store::admin::act;
use crate::store::rows::{Read, micros, one};
use crate::store::unit::{Tx, Unit};
use crate::store::{Result, Store};

/// What the auditor found and did on one semaphore.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Repair {
    /// The counter as it stood.
    pub in_use: i64,
    /// Running tasks and cooling permits.
    pub counted: i64,
    /// Permits that nothing explains, now cooling.
    pub cooling: i64,
}

impl Repair {
    /// Counter above (+) or below (-) what is there.
    pub fn drift(&self) -> i64 {
        self.in_use - self.counted
    }
}

impl Store {
    /// Counts under the semaphore's lock and repairs the counter without ever opening the cap: a deficit is raised at
    /// once, a surplus cools for the longest bound, at least `hold`. What it did is on record.
    pub async fn repair(&mut self, semaphore: &str, hold: Duration, who: &str) -> Result<Repair> {
        self.run(&RepairUnit { semaphore, hold, who }).await
    }
}

struct RepairUnit<'a> {
    semaphore: &'a str,
    hold: Duration,
    who: &'a str,
}

impl Unit for RepairUnit<'_> {
    type Answer = Repair;
    const NAME: &'static str = "audit";

    /// Lock, then count: one statement would count from a snapshot older than its lock.
    async fn run(&self, tx: &mut Tx<'_>) -> sqlx::Result<Repair> {
        let locked = sqlx::query(tx.sql.lock).bind(self.semaphore).fetch_all(&mut *tx.conn).await?;
        let Some(row) = locked.first() else { return Ok(Repair::default()) };
        let in_use = row.int("in_use")?;
        let counted = sqlx::query(tx.sql.counted)
            .bind(self.semaphore)
            .bind(self.semaphore)
            .fetch_all(&mut *tx.conn)
            .await?;
        let counted: i64 = one(counted)?.try_get(0)?;
        let mut repair = Repair { in_use, counted, cooling: 0 };
        if in_use > counted {
            // No more calls can be in flight than were ever allowed at once; what is counted beyond that is only a number.
            let (longest, highest) = Longest { semaphore: self.semaphore }.run(tx).await?;
            repair.cooling = (in_use - counted).min(highest);
            sqlx::query(tx.sql.drift)
                .bind(self.semaphore)
                .bind(longest.max(micros(self.hold)))
                .bind(repair.cooling)
                .execute(&mut *tx.conn)
                .await?;
        }
        if in_use != counted + repair.cooling {
            let set = sqlx::query(tx.sql.repair)
                .bind(counted + repair.cooling)
                .bind(self.semaphore)
                .bind(in_use)
                .execute(&mut *tx.conn)
                .await?;
            if set.rows_affected() != 1 {
                return Err(sqlx::Error::Protocol("the counter changed under its lock".to_owned()));
            }
        }
        if repair.drift() != 0 {
            let Repair { in_use, counted, cooling } = repair;
            let detail =
                format!("{}: in_use was {in_use}, counted {counted}, now cooling {cooling}", self.semaphore);
            act(tx, self.who, "repair", None, Some(detail)).await?;
        }
        Ok(repair)
    }
}
