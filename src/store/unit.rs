//! One operation of the store is one [`Unit`]: a whole transaction, repeated whole on conflict.
//!
//! ```text
//!  connection ──take──► begin ─► run ─► commit ──put back──► connection
//!    ▲                     │        └─ conflict: roll back, pause, again
//!    └── died while idle ──┤
//!                          └─ anything else, or the future dropped halfway: the connection goes with it
//! ```
//!
//! The connection is *taken* out of the store for the time of a unit and put back only after a clean end. So a unit that
//! is cancelled or times out can leave no half-read answer and no open transaction to the next one: its connection is
//! closed with it, and the next unit opens a new one. So it does where the process has moved to another host meanwhile.

use std::future::Future;
use std::time::Duration;

use sqlx::AnyConnection;
use sqlx::Executor;
use tokio::time::{Instant, sleep, timeout};

use super::database::Connection;
use super::error::{Error, is_conflict, is_denial, is_goodbye, is_mixed_up, is_refusal, words};
use super::{Dialect, Sql, Store};

/// The open transaction (or, for a reading unit, the bare connection) a unit works on.
pub(super) struct Tx<'c> {
    pub(super) conn: &'c mut AnyConnection,
    pub(super) sql: &'static Sql,
}

/// How a unit meets the database.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum How {
    /// Between BEGIN and COMMIT.
    Transaction,
    /// One writing statement, which commits itself.
    Statement,
    /// Without a transaction: each of its statements sees its own snapshot.
    Reading,
}

/// One operation. It may run several times, so it keeps no state of its own.
pub(super) trait Unit: Sync {
    type Answer: Send;
    /// What logs and errors call it.
    const NAME: &'static str;
    /// What it needs around it.
    const HOW: How = How::Transaction;

    fn run(&self, tx: &mut Tx<'_>) -> impl Future<Output = sqlx::Result<Self::Answer>> + Send;
}

/// How one try of a unit failed.
enum Failure {
    /// Nothing was applied.
    Conflict,
    /// The kept connection had died since its last unit: the next one is opened at once.
    Stale,
    /// Nothing was applied, and trying again will not help.
    Final(Error),
}

impl Store {
    /// Runs a unit to its end, repeating it whole on conflict until the store's limit.
    pub(super) async fn run<U: Unit>(&mut self, unit: &U) -> Result<U::Answer, Error> {
        let limit = self.database.limit;
        let started = Instant::now();
        let mut pause = Pause::new(self.database.dialect());
        loop {
            let host = self.database.host();
            let left = limit.saturating_sub(started.elapsed()).max(Duration::from_millis(100));
            match timeout(left, self.once(unit)).await {
                Ok(Ok(answer)) => {
                    tracing::trace!(unit = U::NAME, "transaction");
                    return Ok(answer);
                }
                Ok(Err(Failure::Final(error))) => return Err(error),
                Ok(Err(Failure::Conflict)) if started.elapsed() >= limit => {
                    return Err(Error::Busy { unit: U::NAME, tried: started.elapsed() });
                }
                Ok(Err(Failure::Conflict)) => sleep(pause.next()).await,
                Ok(Err(Failure::Stale)) => {} // once: a new connection is never stale
                Err(_) => {
                    self.database.doubt(host);
                    return Err(Error::Timeout { unit: U::NAME, limit });
                }
            }
        }
    }

    async fn once<U: Unit>(&mut self, unit: &U) -> Result<U::Answer, Failure> {
        let (Connection { host, mut conn }, kept) = match self.conn.take() {
            Some(used) if used.host == self.database.host() => (used, true),
            _ => (self.database.open().await.map_err(Failure::Final)?, false),
        };
        let sql = self.database.sql;
        let (mut begun, mut committing) = (false, U::HOW == How::Statement);
        let done: sqlx::Result<U::Answer> = async {
            if U::HOW == How::Transaction {
                conn.execute(sql.begin).await?;
                begun = true;
            }
            let answer = unit.run(&mut Tx { conn: &mut conn, sql }).await?;
            if U::HOW == How::Transaction {
                committing = true;
                conn.execute("COMMIT").await?;
            }
            Ok(answer)
        }
        .await;
        let error = match done {
            Ok(answer) => {
                self.conn = Some(Connection { host, conn });
                return Ok(answer);
            }
            Err(error) => error,
        };
        // A connection that has just answered with an error and then rolls back is sound; any other is dropped.
        let answered = error.as_database_error().is_some() && !is_goodbye(&error);
        // Where BEGIN itself met a conflict (SQLite's write lock), there is nothing to roll back.
        if answered && (!begun || conn.execute("ROLLBACK").await.is_ok()) {
            self.conn = Some(Connection { host, conn });
        }
        // A server that replicates may fail at COMMIT when the others have the transaction already (Galera: 1180).
        let unsure = !answered || sql.dialect != Dialect::Sqlite;
        Err(if is_conflict(&error) {
            Failure::Conflict
        } else if kept && !begun && !committing && is_lost(&error) {
            Failure::Stale
        } else if is_denial(&error) {
            Failure::Final(Error::Denied { unit: U::NAME, reason: words(&error) })
        } else if is_mixed_up(&error) {
            Failure::Final(Error::Pooled { unit: U::NAME, reason: words(&error) })
        } else if is_refusal(&error) {
            Failure::Final(Error::Refused { unit: U::NAME, reason: words(&error) })
        } else if committing && unsure {
            Failure::Final(Error::Unknown { unit: U::NAME, source: error })
        } else {
            Failure::Final(Error::Database { unit: U::NAME, source: error })
        })
    }
}

/// There is no connection any more; a database that answers is there.
fn is_lost(error: &sqlx::Error) -> bool {
    matches!(error, sqlx::Error::Io(_)) || is_goodbye(error)
}

/// Jittered pauses between tries, doubling up to a cap.
struct Pause {
    next: Duration,
    cap: Duration,
}

impl Pause {
    /// `SQLite` has one write lock that is held for about a millisecond; a server's conflicts last longer.
    fn new(dialect: Dialect) -> Self {
        let (first, cap) = match dialect {
            Dialect::Sqlite => (200, 4_000),
            Dialect::Postgres | Dialect::Mysql => (2_000, 100_000),
        };
        Self { next: Duration::from_micros(first), cap: Duration::from_micros(cap) }
    }

    fn next(&mut self) -> Duration {
        let pause = self.next.mul_f64(0.5 + fastrand::f64());
        self.next = (self.next * 2).min(self.cap);
        pause
    }
}
