//! The database that is measured: a private, durable one, or somebody's.

use std::fs::File;
use std::os::unix::fs::FileExt;
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
    /// Of a private MariaDB.
    superuser: Option<AnyConnection>,
    _server: Option<Server>,
    /// Where the database is one.
    file: String,
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
        let superuser = match &server {
            Some(server) if *target == Target::MariaDb => {
                let mut superuser = AnyConnection::connect(&server.admin_url()).await?;
                let count = "SET GLOBAL innodb_monitor_enable = 'trx_%_commits'";
                sqlx::raw_sql(count).execute(&mut superuser).await?;
                Some(superuser)
            }
            _ => None,
        };
        let file = url.strip_prefix("sqlite://").and_then(|file| file.split('?').next());
        let file = file.unwrap_or_default().to_owned();
        Ok(Self { url, database, hand, superuser, _server: server, file, folder })
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

    /// An instant as microseconds since 1970, in this database's words.
    pub(super) fn micros(&self, instant: &str) -> String {
        match self.dialect() {
            Dialect::Sqlite => instant.to_owned(),
            Dialect::Postgres => format!("CAST(extract(epoch FROM {instant}) * 1000000 AS bigint)"),
            Dialect::Mysql => format!("TIMESTAMPDIFF(MICROSECOND, '1970-01-01', {instant})"),
        }
    }

    /// From the first claim to the last end, by the log.
    pub(super) async fn span(&mut self) -> Result<Duration, Error> {
        let (first, last) = (self.micros("min(claimed_at)"), self.micros("max(ended_at)"));
        let micros = self.number(&format!("SELECT {last} - {first} FROM permitq_attempt")).await?;
        Ok(Duration::from_micros(u64::try_from(micros)?))
    }

    /// Whatever waits for somebody to tidy up is done now, so that nobody meets it while we measure.
    pub(super) async fn tidy(&mut self) -> Result<(), Error> {
        match self.dialect() {
            Dialect::Sqlite => self.execute("PRAGMA wal_checkpoint(TRUNCATE)").await,
            Dialect::Postgres => self.execute("VACUUM ANALYZE").await,
            Dialect::Mysql => Ok(()),
        }
    }

    /// SQLite's files that grow.
    pub(super) fn files(&self) -> [String; 2] {
        [self.file.clone(), format!("{}-wal", self.file)]
    }

    /// Of everybody but us, at the server.
    pub(super) async fn sessions(&mut self) -> Result<i64, Error> {
        self.number(match self.dialect() {
            Dialect::Sqlite => return Ok(0),
            Dialect::Postgres => {
                "SELECT count(*) FROM pg_stat_activity
                  WHERE datname = current_database() AND pid <> pg_backend_pid()"
            }
            Dialect::Mysql => {
                "SELECT count(*) FROM information_schema.processlist WHERE db = database() AND id <> connection_id()"
            },
        })
        .await
    }

    /// Transactions so far, lone statements among them; `None` where the server does not tell. PostgreSQL counts those of
    /// this database, and its sessions hand their counts in when they end, or after ten idle seconds at the latest. MariaDB
    /// counts those of the whole server, and tells its superuser. SQLite has the index of its log, whose bytes 8 to 11 count
    /// what was committed: those that wrote.
    pub(super) async fn transactions(&mut self) -> Result<Option<i64>, Error> {
        let count = match self.dialect() {
            Dialect::Sqlite => {
                let mut count = [0; 4];
                File::open(format!("{}-shm", self.file))?.read_exact_at(&mut count, 8)?;
                u32::from_ne_bytes(count).into()
            }
            Dialect::Postgres => {
                // Our own, too: not more often than once a second.
                sleep(Duration::from_millis(1100)).await;
                let count = "SELECT CAST(xact_commit + xact_rollback AS bigint) FROM pg_stat_database
                              WHERE datname = current_database()";
                self.number(count).await?
            }
            Dialect::Mysql => {
                let Some(superuser) = &mut self.superuser else { return Ok(None) };
                let count = "SELECT CAST(sum(count) AS SIGNED) FROM information_schema.innodb_metrics
                              WHERE name IN ('trx_rw_commits', 'trx_ro_commits', 'trx_nl_ro_commits')";
                sqlx::query(count).fetch_one(superuser).await?.try_get(0)?
            }
        };
        Ok(Some(count))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test")]
mod tests {
    use super::*;

    async fn counted(target: Target) -> i64 {
        let mut place = Place::open(&target).await.unwrap();
        place.execute("CREATE TABLE n (n INTEGER)").await.unwrap();
        place.execute("INSERT INTO n VALUES (0)").await.unwrap();
        let before = place.transactions().await.unwrap().unwrap();
        for _ in 0..5 {
            place.execute("UPDATE n SET n = n + 1").await.unwrap();
            place.execute("BEGIN; UPDATE n SET n = n + 1; UPDATE n SET n = n + 2; COMMIT").await.unwrap();
        }
        place.transactions().await.unwrap().unwrap() - before
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_transaction_counts_once_however_many_statements_it_has() {
        assert_eq!(counted(Target::Sqlite).await, 10);
        assert_eq!(counted(Target::MariaDb).await, 10);
    }
}
