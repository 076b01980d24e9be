//! The product's statements over the bare driver: what the database allows when nothing stands before it.
//!
//! Whoever changes a statement's parameters, or their order within a transaction, changes them here too.

use std::time::Duration;

use permitq::store::Dialect;
use serde_json::json;
use sqlx::{Connection, Executor, Row};
use tokio::time::{Instant, sleep};

use crate::Error;

/// Which statements, of which tasks, by whom.
#[derive(Clone, Debug)]
pub(crate) struct Raw {
    pub(crate) url: String,
    pub(crate) dialect: Dialect,
    /// A registered consumer.
    pub(crate) consumer: String,
    pub(crate) kind: &'static str,
    /// Tasks in one transaction.
    pub(crate) batch: usize,
    /// Write the attempt log.
    pub(crate) log: bool,
    /// Count permits.
    pub(crate) cap: bool,
}

const SEMAPHORE: &str = "default";
const HOLD: Duration = Duration::from_hours(1);

impl Raw {
    /// Claims, then finishes, in two transactions, until `end`; answers how many tasks.
    pub(crate) async fn pairs(&self, end: Instant) -> Result<usize, Error> {
        match self.dialect {
            Dialect::Sqlite => sqlite::pairs(self, end).await,
            Dialect::Postgres => postgres::pairs(self, end).await,
            Dialect::Mysql => mysql::pairs(self, end).await,
        }
    }

    /// Hands over from batch to batch until there is nothing left; answers how many tasks.
    pub(crate) async fn drain(&self) -> Result<usize, Error> {
        match self.dialect {
            Dialect::Sqlite => sqlite::drain(self).await,
            Dialect::Postgres => postgres::drain(self).await,
            Dialect::Mysql => mysql::drain(self).await,
        }
    }
}

macro_rules! raw {
    ($name:ident, $connection:ty) => {
        mod $name {
            use super::*;

            macro_rules! sql {
                ($statement:literal) => {
                    include_str!(concat!("../../sql/", stringify!($name), "/", $statement, ".sql"))
                };
            }

            pub(super) async fn pairs(raw: &Raw, end: Instant) -> Result<usize, Error> {
                let mut conn = open(raw).await?;
                let mut done = 0;
                while Instant::now() < end {
                    let taken = again(&mut conn, raw, &[], raw.batch).await?;
                    again(&mut conn, raw, &taken, 0).await?;
                    done += taken.len();
                }
                conn.close().await?;
                Ok(done)
            }

            pub(super) async fn drain(raw: &Raw) -> Result<usize, Error> {
                let mut conn = open(raw).await?;
                let (mut done, mut ours) = (0, Vec::new());
                loop {
                    let taken = again(&mut conn, raw, &ours, raw.batch).await?;
                    done += ours.len();
                    if taken.is_empty() {
                        conn.close().await?;
                        return Ok(done);
                    }
                    ours = taken;
                }
            }

            async fn open(raw: &Raw) -> Result<$connection, Error> {
                let mut conn = <$connection>::connect(&raw.url).await?;
                conn.execute(sqlx::raw_sql(sql!("session"))).await?;
                Ok(conn)
            }

            /// One transaction, repeated while others are in its way.
            async fn again(
                conn: &mut $connection,
                raw: &Raw,
                ours: &[(i64, i64)],
                want: usize,
            ) -> Result<Vec<(i64, i64)>, Error> {
                let mut tries = 0;
                loop {
                    match exchange(conn, raw, ours, want).await {
                        Ok(taken) => return Ok(taken),
                        Err(error) if tries > 1000 => return Err(error.into()),
                        Err(_) => tries += 1,
                    }
                    // Where BEGIN itself failed there is none.
                    let _rolled_back = conn.execute("ROLLBACK").await;
                    sleep(Duration::from_micros(fastrand::u64(200..2000))).await;
                }
            }

            async fn exchange(
                conn: &mut $connection,
                raw: &Raw,
                ours: &[(i64, i64)],
                want: usize,
            ) -> sqlx::Result<Vec<(i64, i64)>> {
                conn.execute(sql!("begin")).await?;
                if !ours.is_empty() {
                    finish(conn, raw, ours).await?;
                }
                let (want, freed) = (want.try_into().unwrap_or(i64::MAX), ours.len().try_into().unwrap_or(0));
                let mut room = want;
                if raw.cap && want > freed {
                    let rows = sqlx::query(sql!("lock")).bind(SEMAPHORE).fetch_all(&mut *conn).await?;
                    let row = rows.first().ok_or(sqlx::Error::RowNotFound)?;
                    // Where it is no bigint, the driver insists.
                    let int = |at: usize| row.try_get::<i64, _>(at).or_else(|_| row.try_get::<i32, _>(at).map(i64::from));
                    room = (int(0)? - int(1)? + freed).clamp(0, want);
                }
                let taken = if room > 0 { take(conn, raw, room).await? } else { Vec::new() };
                let change = i64::try_from(taken.len()).unwrap_or(0) - freed;
                if raw.cap && change != 0 {
                    sqlx::query(sql!("permits")).bind(change).bind(SEMAPHORE).execute(&mut *conn).await?;
                }
                conn.execute("COMMIT").await?;
                Ok(taken)
            }

            async fn take(conn: &mut $connection, raw: &Raw, room: i64) -> sqlx::Result<Vec<(i64, i64)>> {
                let picked = sqlx::query(sql!("pick")).bind(SEMAPHORE).bind(raw.kind).bind(SEMAPHORE).bind(raw.kind).bind(raw.kind).bind(room);
                let picked = picked.fetch_all(&mut *conn).await?;
                let mut taken = Vec::with_capacity(picked.len());
                for row in &picked {
                    taken.push((row.try_get("id")?, row.try_get("claim_no")?));
                }
                if taken.is_empty() {
                    return Ok(taken);
                }
                taken.sort_unstable(); // the one lock order
                let hold = i64::try_from(HOLD.as_micros()).unwrap_or(i64::MAX);
                let mark = |(id, _): &(i64, i64)| json!({"id": id, "hold": hold, "max_attempts": 3, "on_abandon": "retry"});
                let marks = json!(taken.iter().map(mark).collect::<Vec<_>>()).to_string();
                let mark = sqlx::query(sql!("mark")).bind(marks).bind(&raw.consumer).bind(&raw.consumer);
                mark.execute(&mut *conn).await?;
                Ok(taken)
            }

            async fn finish(conn: &mut $connection, raw: &Raw, ours: &[(i64, i64)]) -> sqlx::Result<()> {
                let end = |(id, claim_no): &(i64, i64)| json!({"id": id, "claim_no": claim_no, "outcome": "succeeded",
                    "state": "succeeded", "attempts": 1, "after_cooling": 0});
                let ended = json!(ours.iter().map(end).collect::<Vec<_>>()).to_string();
                if raw.log {
                    let log = sqlx::query(sql!("log")).bind(&raw.consumer).bind(&ended).bind(&raw.consumer);
                    log.execute(&mut *conn).await?;
                } else {
                    sqlx::query(sql!("own")).bind(&ended).bind(&raw.consumer).fetch_all(&mut *conn).await?;
                }
                sqlx::query(sql!("settle")).bind(&ended).bind(0_i64).execute(&mut *conn).await?;
                Ok(())
            }
        }
    };
}

raw!(sqlite, sqlx::SqliteConnection);
raw!(postgres, sqlx::PgConnection);
raw!(mysql, sqlx::MySqlConnection);
