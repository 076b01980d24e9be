//! How much a statement reads, as each database itself counts it.
//!
//! | database | rows | pages |
//! |---|---|---|
//! | SQLite | instructions of its virtual machine, [`A_ROW`] to a row | - |
//! | PostgreSQL | EXPLAIN (ANALYZE) of the prepared statement: rows out of each scan and those it threw away | buffers |
//! | MariaDB | `Handler_read_*`, and index entries looked at by a pushed condition; a JSON list counts too | - |

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use permitq::store::Dialect;
use serde_json::Value;
use sqlx::mysql::MySqlConnection;
use sqlx::postgres::PgConnection;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Executor, Row};

use super::cases::Bind;
use crate::support::Db;

/// Instructions of SQLite's virtual machine that reading a row, and doing something with it, takes at most.
const A_ROW: u64 = 40;

/// One session as the store has it.
pub(super) enum Meter {
    Sqlite(SqliteConnection, Arc<AtomicU64>),
    /// With what it has prepared.
    Postgres(PgConnection, Vec<String>),
    MariaDb(MySqlConnection),
}

#[derive(Debug, Default)]
pub(super) struct Read {
    pub(super) rows: u64,
    pub(super) pages: u64,
    pub(super) plan: String,
}

impl fmt::Display for Read {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "reads {}", self.rows)?;
        if self.pages > 0 { write!(f, " rows, {} pages", self.pages) } else { Ok(()) }
    }
}

macro_rules! bound {
    ($text:expr, $binds:expr) => {{
        let mut query = sqlx::query(AssertSqlSafe($text));
        for bind in $binds {
            query = match bind.clone() {
                Bind::Int(n) => query.bind(n),
                Bind::Text(text) => query.bind(text),
                Bind::NoInt => query.bind(None::<i64>),
                Bind::NoText => query.bind(None::<String>),
            };
        }
        query
    }};
}

impl Meter {
    pub(super) async fn new(db: &Db, session: &str) -> Self {
        let session = sqlx::raw_sql(AssertSqlSafe(session.to_owned()));
        match db.database.dialect() {
            Dialect::Sqlite => {
                let options = SqliteConnectOptions::new().filename(db.database.file().unwrap());
                let mut conn = options.connect().await.unwrap();
                conn.execute(session).await.unwrap();
                let steps = Arc::<AtomicU64>::default();
                let counter = steps.clone();
                let mut handle = conn.lock_handle().await.unwrap();
                handle.set_progress_handler(1, move || {
                    counter.fetch_add(1, Ordering::Relaxed);
                    true
                });
                drop(handle);
                Self::Sqlite(conn, steps)
            }
            Dialect::Postgres => {
                let mut conn = PgConnection::connect(db.url()).await.unwrap();
                conn.execute(session).await.unwrap();
                // Not what is measured: the first statement of a table of this size takes long on a busy machine.
                conn.execute("SET statement_timeout = 0").await.unwrap();
                Self::Postgres(conn, Vec::new())
            }
            Dialect::Mysql => {
                let mut conn = MySqlConnection::connect(db.url()).await.unwrap();
                conn.execute(session).await.unwrap();
                conn.execute("SET max_statement_time = 0").await.unwrap();
                Self::MariaDb(conn)
            }
        }
    }

    /// Runs it in a transaction that is rolled back. PostgreSQL is made to keep its plan for good, as it may do after five
    /// runs, or, for a statement whose plan hangs on which parameters are NULL, to make one for these.
    pub(super) async fn read(&mut self, text: &str, binds: &[Bind], keep: bool) -> Read {
        match self {
            Self::Sqlite(conn, steps) => {
                conn.execute("BEGIN IMMEDIATE").await.unwrap();
                let before = steps.load(Ordering::Relaxed);
                let done = bound!(text.to_owned(), binds).fetch_all(&mut *conn).await;
                let rows = (steps.load(Ordering::Relaxed) - before) / A_ROW;
                done.unwrap_or_else(|error| panic!("{text}: {error}"));
                conn.execute("ROLLBACK").await.unwrap();
                Read { rows, ..Read::default() }
            }
            Self::Postgres(conn, prepared) => {
                let number_of = prepared.iter().position(|known| known == text).unwrap_or(prepared.len());
                if number_of == prepared.len() {
                    let types: Vec<_> = binds.iter().map(Bind::sql_type).collect();
                    let types =
                        if types.is_empty() { String::new() } else { format!("({})", types.join(", ")) };
                    let prepare = format!("PREPARE p{number_of}{types} AS {text}");
                    conn.execute(AssertSqlSafe(prepare)).await.unwrap();
                    prepared.push(text.to_owned());
                }
                let mode = if keep { "force_generic_plan" } else { "force_custom_plan" };
                conn.execute("BEGIN").await.unwrap();
                conn.execute(AssertSqlSafe(format!("SET LOCAL plan_cache_mode = {mode}"))).await.unwrap();
                let values: Vec<_> = binds.iter().map(Bind::literal).collect();
                let values =
                    if values.is_empty() { String::new() } else { format!("({})", values.join(", ")) };
                let explain = format!("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE p{number_of}{values}");
                let row = conn.fetch_one(AssertSqlSafe(explain)).await;
                let row = row.unwrap_or_else(|error| panic!("{text}: {error}"));
                conn.execute("ROLLBACK").await.unwrap();
                // A column of type json is text.
                let plan: String = row.try_get_unchecked(0).unwrap();
                let plan: Value = serde_json::from_str(&plan).unwrap();
                let top = &plan[0]["Plan"];
                let pages = number(top, "Shared Hit Blocks") + number(top, "Shared Read Blocks");
                let plan = serde_json::to_string_pretty(top).unwrap();
                Read { rows: scanned(top), pages, plan }
            }
            Self::MariaDb(conn) => {
                conn.execute("START TRANSACTION").await.unwrap();
                conn.execute("SET @permitq_ids = '1,2,3'").await.unwrap();
                let empty = handler_reads(conn).await;
                let before = handler_reads(conn).await;
                let done = bound!(text.to_owned(), binds).fetch_all(&mut *conn).await;
                let after = handler_reads(conn).await;
                done.unwrap_or_else(|error| panic!("{text}: {error}"));
                conn.execute("ROLLBACK").await.unwrap();
                // Reading the counters counts as well, the same each time.
                let rows = (after - before).saturating_sub(before - empty);
                Read { rows, ..Read::default() }
            }
        }
    }
}

fn number(node: &Value, key: &str) -> u64 {
    // Later versions write 3.00.
    let written = node[key].to_string();
    written.split('.').next().and_then(|n| n.parse().ok()).unwrap_or_default()
}

/// Rows that the scans of tables looked at.
fn scanned(node: &Value) -> u64 {
    let own = if node["Relation Name"].is_string()
        && node["Node Type"].as_str().is_some_and(|kind| kind.contains("Scan"))
    {
        let each = number(node, "Actual Rows")
            + number(node, "Rows Removed by Filter")
            + number(node, "Rows Removed by Index Recheck");
        each * number(node, "Actual Loops")
    } else {
        0
    };
    let below = node["Plans"].as_array().map_or(0, |plans| plans.iter().map(scanned).sum());
    own + below
}

async fn handler_reads(conn: &mut MySqlConnection) -> u64 {
    sqlx::query_scalar(
        "SELECT CAST(sum(variable_value) AS UNSIGNED) FROM information_schema.session_status
          WHERE variable_name LIKE 'Handler_read%' OR variable_name = 'Handler_icp_attempts'",
    )
    .fetch_one(conn)
    .await
    .unwrap()
}
