//! What the reclaimer and the auditor do: fence expired consumers, take their tasks back, end coolings, repair drift; and
//! what time does to tasks that wait.
//!
//! Nothing here needs a permit or a leader. Every step restates its condition, skips locked rows, and may be done by any
//! number of processes at once.

mod cooling;
mod life;
mod reclaim;
mod repair;

use std::time::Duration;

use sqlx::Row;

use super::rows::{Read, micros, one};
use super::unit::{How, Tx, Unit};
use super::{Result, Store};

pub use cooling::Cooling;
pub(super) use cooling::{end_own, own_cooling};
pub(super) use life::lapse;
pub use reclaim::Expired;
pub use repair::Repair;

/// What one read says of all there may be to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own, not a state in disguise")]
pub struct Check {
    /// The database's clock, in microseconds since 1970.
    pub now: i64,
    /// A consumer's lease has passed.
    pub expired: bool,
    /// A running task is nobody's.
    pub abandoned: bool,
    /// A task that waits has a deadline that has passed.
    pub lapsed: bool,
    /// A cooling is over, or a counter is wrong.
    pub permits: bool,
    /// An end is not told to all who wait for it.
    pub untold: bool,
}

impl Store {
    /// The database's clock, in microseconds since 1970.
    pub async fn clock(&mut self) -> Result<i64> {
        self.run(&ReadClock).await
    }

    /// Whether there is anything to do at all, in one read.
    pub async fn check(&mut self, lease: Duration) -> Result<Check> {
        self.run(&ReadCheck { lease }).await
    }
}

struct ReadClock;

impl Unit for ReadClock {
    type Answer = i64;
    const NAME: &'static str = "read the clock";
    const HOW: How = How::Reading;

    async fn run(&self, tx: &mut Tx<'_>) -> sqlx::Result<i64> {
        one(sqlx::query(tx.sql.clock).fetch_all(&mut *tx.conn).await?)?.try_get(0)
    }
}

struct ReadCheck {
    lease: Duration,
}

impl Unit for ReadCheck {
    type Answer = Check;
    const NAME: &'static str = "check";
    const HOW: How = How::Reading;

    async fn run(&self, tx: &mut Tx<'_>) -> sqlx::Result<Check> {
        let row = sqlx::query(tx.sql.check).bind(micros(self.lease)).fetch_one(&mut *tx.conn).await?;
        let is = |column| row.int(column).map(|n| n != 0);
        Ok(Check {
            now: row.int("now")?,
            expired: is("expired")?,
            abandoned: is("abandoned")?,
            lapsed: is("lapsed")?,
            permits: is("cooled")? || is("drifted")?,
            untold: is("untold")?,
        })
    }
}
