//! A person's SQL client beside the fleet: statements of its own, none of permitq's.

use std::time::Duration;

use permitq::store::{Database, Dialect};
use sqlx::any::{AnyConnectOptions, AnyRow};
use sqlx::{AnyConnection, AssertSqlSafe, ConnectOptions, Executor, Row};
use tokio::time::timeout;

use super::scale::SEMAPHORE;
use crate::Error;

/// Connects when it is needed, and again after an error.
#[derive(Debug)]
pub(super) struct Hand {
    pub(super) dialect: Dialect,
    raw: String,
    conn: Option<AnyConnection>,
}

/// Longer than a lock is held, shorter than patience.
const LIMIT: Duration = Duration::from_secs(10);

impl Hand {
    pub(super) fn new(url: &str) -> Result<Self, Error> {
        let database = Database::new(url)?;
        let raw = database.file().map_or(url.to_owned(), |file| format!("sqlite:{}?mode=rw", file.display()));
        Ok(Self { dialect: database.dialect(), raw: raw.replacen("mariadb://", "mysql://", 1), conn: None })
    }

    /// One more of them.
    pub(super) fn another(&self) -> Self {
        Self { dialect: self.dialect, raw: self.raw.clone(), conn: None }
    }

    async fn connect(&mut self) -> Result<&mut AnyConnection, sqlx::Error> {
        if self.conn.is_none() {
            sqlx::any::install_default_drivers();
            let options: AnyConnectOptions = self.raw.parse()?;
            let mut conn = options.disable_statement_logging().connect().await?;
            match self.dialect {
                Dialect::Sqlite => conn.execute("PRAGMA busy_timeout = 9000").await?,
                Dialect::Mysql => conn.execute("SET time_zone = '+00:00'").await?,
                Dialect::Postgres => conn.execute("SET timezone = 'UTC'").await?,
            };
            self.conn = Some(conn);
        }
        self.conn.as_mut().ok_or(sqlx::Error::PoolClosed)
    }

    /// One statement; answers the rows it touched.
    pub(super) async fn execute(&mut self, statement: &str) -> Result<u64, sqlx::Error> {
        let done = timeout(LIMIT, async {
            let conn = self.connect().await?;
            Ok(conn.execute(sqlx::raw_sql(AssertSqlSafe(statement))).await?.rows_affected())
        });
        let done = done.await.unwrap_or_else(|_| Err(late()));
        self.forget_after(done)
    }

    /// All rows of a query.
    pub(super) async fn rows(&mut self, query: &str) -> Result<Vec<AnyRow>, sqlx::Error> {
        let done = timeout(LIMIT, async {
            let conn = self.connect().await?;
            sqlx::query(AssertSqlSafe(query)).fetch_all(conn).await
        });
        let done = done.await.unwrap_or_else(|_| Err(late()));
        self.forget_after(done)
    }

    /// The numbers of the only row.
    pub(super) async fn numbers<const N: usize>(&mut self, query: &str) -> Result<[i64; N], sqlx::Error> {
        let rows = self.rows(query).await?;
        let row = rows.first().ok_or(sqlx::Error::RowNotFound)?;
        let mut numbers = [0; N];
        for (index, number) in numbers.iter_mut().enumerate() {
            *number = row.try_get::<Option<i64>, _>(index)?.unwrap_or_default();
        }
        Ok(numbers)
    }

    fn forget_after<T>(&mut self, done: Result<T, sqlx::Error>) -> Result<T, sqlx::Error> {
        if done.is_err() {
            self.conn = None;
        }
        done
    }

    /// A column's instant, in milliseconds since 1970.
    pub(super) fn ms(&self, column: &str) -> String {
        match self.dialect {
            Dialect::Sqlite => format!("{column} / 1000"),
            Dialect::Postgres => format!("(extract(epoch FROM {column}) * 1000)::bigint"),
            Dialect::Mysql => format!("TIMESTAMPDIFF(MICROSECOND, '1970-01-01', {column}) DIV 1000"),
        }
    }

    /// The database's clock, in milliseconds since 1970.
    pub(super) fn clock(&self) -> &'static str {
        match self.dialect {
            Dialect::Sqlite => "SELECT CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER)",
            Dialect::Postgres => "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint",
            Dialect::Mysql => "SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) DIV 1000",
        }
    }

    /// A number or a text, as every driver takes it.
    pub(super) fn as_number(&self, column: &str) -> String {
        let kind = if self.dialect == Dialect::Mysql { "SIGNED" } else { "bigint" };
        format!("CAST({column} AS {kind})")
    }

    pub(super) fn as_text(&self, column: &str) -> String {
        let kind = if self.dialect == Dialect::Mysql { "CHAR" } else { "text" };
        format!("CAST({column} AS {kind})")
    }

    /// One look at the ledger, in one snapshot: counter, cap, running, cooling, and tasks that are not final.
    pub(super) fn ledger(&self) -> String {
        let semaphore = format!("semaphore = '{SEMAPHORE}'");
        let (in_use, max) = (self.as_number("in_use"), self.as_number("max_permits"));
        format!(
            "SELECT {in_use}, {max},
                    (SELECT count(*) FROM permitq_task WHERE state = 'running' AND {semaphore}),
                    (SELECT count(*) FROM permitq_cooling WHERE {semaphore}),
                    (SELECT count(*) FROM permitq_task WHERE state NOT IN ('succeeded', 'failed', 'cancelled'))
               FROM permitq_semaphore WHERE name = '{SEMAPHORE}'"
        )
    }

    /// Has the database itself keep every change of a task's state, attempts and fence.
    pub(super) async fn keep_changes(&mut self) -> Result<(), sqlx::Error> {
        let table = "task bigint NOT NULL, from_state varchar(10) NOT NULL, to_state varchar(10) NOT NULL,
                     from_claim bigint NOT NULL, to_claim bigint NOT NULL,
                     from_attempts bigint NOT NULL, to_attempts bigint NOT NULL";
        let insert = "INSERT INTO chaos_change (task, from_state, to_state, from_claim, to_claim, from_attempts, to_attempts)
                      VALUES (NEW.id, OLD.state, NEW.state, OLD.claim_no, NEW.claim_no, OLD.attempts, NEW.attempts)";
        let changed =
            "(OLD.state <> NEW.state OR OLD.claim_no <> NEW.claim_no OR OLD.attempts <> NEW.attempts)";
        let statements = match self.dialect {
            Dialect::Sqlite => vec![
                format!("CREATE TABLE chaos_change (id INTEGER PRIMARY KEY, {table})"),
                format!(
                    "CREATE TRIGGER chaos_change AFTER UPDATE ON permitq_task WHEN {changed} BEGIN {insert}; END"
                ),
            ],
            Dialect::Postgres => vec![
                format!("CREATE TABLE chaos_change (id bigserial PRIMARY KEY, {table})"),
                format!(
                    "CREATE FUNCTION chaos_change() RETURNS trigger LANGUAGE plpgsql AS
                     $$ BEGIN {insert}; RETURN NULL; END $$"
                ),
                format!(
                    "CREATE TRIGGER chaos_change AFTER UPDATE ON permitq_task FOR EACH ROW WHEN ({changed})
                     EXECUTE FUNCTION chaos_change()"
                ),
            ],
            Dialect::Mysql => vec![
                format!(
                    "CREATE TABLE chaos_change (id bigint AUTO_INCREMENT PRIMARY KEY, {table}) ENGINE = InnoDB"
                ),
                format!(
                    "CREATE TRIGGER chaos_change AFTER UPDATE ON permitq_task FOR EACH ROW
                     BEGIN IF {changed} THEN {insert}; END IF; END"
                ),
            ],
        };
        for statement in statements {
            self.execute(&statement).await?;
        }
        Ok(())
    }

    /// Ends [`Hand::keep_changes`], also that of a run that was broken off. What is not there is no trouble.
    pub(super) async fn drop_changes(&mut self) {
        let statements: &[&str] = match self.dialect {
            Dialect::Postgres => {
                &["DROP FUNCTION IF EXISTS chaos_change() CASCADE", "DROP TABLE IF EXISTS chaos_change"]
            }
            _ => &["DROP TRIGGER IF EXISTS chaos_change", "DROP TABLE IF EXISTS chaos_change"],
        };
        for statement in statements {
            let _absent = self.execute(statement).await;
        }
    }
}

fn late() -> sqlx::Error {
    sqlx::Error::Io(std::io::ErrorKind::TimedOut.into())
}
