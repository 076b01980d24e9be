//! The database that is measured: a private, durable one, or somebody's.

use std::time::Duration;

use permitq::store::{Database, Dialect, Store};
use sqlx::any::install_default_drivers;
use sqlx::{AnyConnection, AssertSqlSafe, Connection, Row};
use tempfile::TempDir;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep};

use super::stats::Spread;
use super::{Error, Target};
use crate::servers::Server;

/// A database with the schema and without tasks.
pub struct Place {
    /// Its URL.
    pub url: String,
    /// Its store.
    pub database: Database,
    hand: AnyConnection,
    _server: Option<Server>,
    /// Configuration and logs of the consumers; the database, where it is a file.
    pub folder: TempDir,
}

impl Place {
    /// # Errors
    /// Where the database cannot be reached, or holds tasks.
    pub async fn open(target: &Target) -> Result<Self, Error> {
        let folder = tempfile::Builder::new().prefix("permitq-speed-").tempdir()?;
        let private = |postgres: bool| async move {
            spawn_blocking(move || {
                let server = if postgres { Server::postgres(true) } else { Server::mariadb(true) };
                let url = server.database("speed");
                (Some(server), url)
            })
            .await
        };
        let (server, url) = match target {
            Target::Sqlite => (None, format!("sqlite://{}", folder.path().join("permitq.db").display())),
            Target::Postgres => private(true).await?,
            Target::MariaDb => private(false).await?,
            Target::Url(url) => (None, url.clone()),
        };
        let database = Database::new(&url)?.create();
        let mut store = database.store();
        store.migrate().await?;
        if !store.states(None).await?.is_empty() {
            return Err("this database has tasks already; name an empty one".into());
        }
        install_default_drivers();
        let hand = AnyConnection::connect(&url).await?;
        Ok(Self { url, database, hand, _server: server, folder })
    }

    /// A connection of ours.
    pub fn store(&self) -> Store {
        self.database.store()
    }

    /// Which database it is.
    pub fn dialect(&self) -> Dialect {
        self.database.dialect()
    }

    /// Executes what a person would.
    pub(super) async fn execute(&mut self, statement: &str) -> Result<(), Error> {
        sqlx::raw_sql(AssertSqlSafe(statement.to_owned())).execute(&mut self.hand).await?;
        Ok(())
    }

    /// The one number that a query answers.
    pub(super) async fn number(&mut self, query: &str) -> Result<i64, Error> {
        let row = sqlx::query(AssertSqlSafe(query.to_owned())).fetch_one(&mut self.hand).await?;
        Ok(row.try_get(0)?)
    }

    /// Commits of one row on a table of its own, one after the other: what the disk and the way there allow.
    pub(super) async fn commits(&mut self) -> Result<Spread, Error> {
        self.execute("CREATE TABLE loadtest_commit (n INTEGER)").await?;
        self.execute("INSERT INTO loadtest_commit VALUES (0)").await?;
        let mut took = Vec::new();
        for _ in 0..200 {
            let before = Instant::now();
            self.execute("UPDATE loadtest_commit SET n = n + 1").await?;
            took.push(u64::try_from(before.elapsed().as_micros())?);
        }
        self.execute("DROP TABLE loadtest_commit").await?;
        Ok(Spread::of(took))
    }

    /// The numbers that a query answers.
    pub(super) async fn numbers(&mut self, query: &str) -> Result<Vec<i64>, Error> {
        let rows = sqlx::query(AssertSqlSafe(query.to_owned())).fetch_all(&mut self.hand).await?;
        Ok(rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?)
    }

    /// From the first claim to the last end, by the log.
    pub(super) async fn span(&mut self) -> Result<Duration, Error> {
        let micros = match self.dialect() {
            Dialect::Sqlite => "max(ended_at) - min(claimed_at)",
            Dialect::Postgres => {
                "CAST(extract(epoch FROM max(ended_at) - min(claimed_at)) * 1000000 AS bigint)"
            }
            Dialect::Mysql => "TIMESTAMPDIFF(MICROSECOND, min(claimed_at), max(ended_at))",
        };
        let micros = self.number(&format!("SELECT {micros} FROM permitq_attempt")).await?;
        Ok(Duration::from_micros(u64::try_from(micros)?))
    }

    /// Transactions that the server has counted in this database; `None` where it does not tell. PostgreSQL's sessions hand
    /// their counts in when they end, or after ten idle seconds at the latest.
    pub(super) async fn transactions(&mut self) -> Result<Option<i64>, Error> {
        if self.dialect() != Dialect::Postgres {
            return Ok(None);
        }
        // Our own, too: not more often than once a second.
        sleep(Duration::from_millis(1100)).await;
        let count = "SELECT CAST(xact_commit + xact_rollback AS bigint) FROM pg_stat_database
                      WHERE datname = current_database()";
        self.number(count).await.map(Some)
    }
}
