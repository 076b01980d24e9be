//! How things are kept: the one seam to the database. Declared free to change.
//!
//! A [`Database`] says where; a [`Store`] is one plain connection to it (there is no pool: the database loop, the
//! heartbeat and upkeep each own one store, so a process has a constant number of connections, and none of them can
//! starve another). Operations are grouped by who calls them: `enqueue`, `dependents`, `exchange`, `beat`, `upkeep`, `schedule`, `jobs`, `prune`, `admin`, `view`. Each
//! is one `unit` over the statements of `sql/<database>/`, the same operations on every database.
//!
//! This folder decides nothing about time or policy: it writes what [`crate::model`] has settled, and reports zero rows,
//! lost claims and a full semaphore as answers.

mod admin;
mod audit;
mod beat;
mod database;
mod dependents;
mod doctor;
mod enqueue;
mod error;
mod exchange;
mod explain;
mod filesystem;
mod jobs;
mod migrate;
mod pause;
mod prune;
mod record;
mod rows;
mod schedule;
mod server;
mod sql;
mod unit;
mod upkeep;
mod url;
mod view;

pub use admin::{Accepted, Cancelled, Retried};
pub use audit::{Audit, Peak};
pub use beat::{Left, Orphan, Registration};
pub use database::Database;
pub use dependents::Stray;
pub use doctor::Facts;
pub use enqueue::Enqueued;
pub use error::Error;
pub use exchange::{Exchange, Exchanged, Look, Policy, Recorded, SemaphoreLook};
pub use jobs::{Added, NewSchedule, RanByHand};
pub use migrate::{Migrated, SCHEMA_VERSION, Schema};
pub use prune::{Doomed, Finished, Forgotten, Record, Surplus};
pub use schedule::{Due, EndedRun, Run, ScheduleLook};
pub use server::{Product, Server};
pub use sql::Dialect;
pub use upkeep::{Check, Cooling, Expired, Repair};
pub use view::{Action, AttemptLog, ConsumerRow, Filter, FiredBy, RecentRun, Retryable};

pub(crate) use sql::Sql;
#[cfg(feature = "cli")]
pub(crate) use url::mask_all;
pub(crate) use url::{check as check_url, mask};

use database::Connection;

/// The result of a store operation.
pub type Result<T> = std::result::Result<T, Error>;

/// One plain connection to the database, opened when first needed and replaced when it breaks.
#[derive(Debug)]
pub struct Store {
    database: Database,
    conn: Option<Connection>,
}

impl Store {
    /// The database it talks to.
    pub fn database(&self) -> &Database {
        &self.database
    }
}
