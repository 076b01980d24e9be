//! Where the database is, and how a connection to it is opened.
//!
//! A database may have several hosts: a primary and its standbys, or the nodes of a cluster. They are tried in order,
//! beginning with the one that was good last, and the first *writable* one is taken. Which one that is, all connections of
//! a process agree on: they share one choice, and whoever finds another host moves the others with their next unit.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use sqlx::AnyConnection;
use sqlx::any::AnyConnectOptions;
use sqlx::{ConnectOptions, Executor, Row};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::error::is_conflict;
use super::explain::explain;
use super::filesystem::network;
use super::url::{check, mask};
use super::{Dialect, Error, Result, Server, Sql, Store};

/// Where the database is. Cheap to clone; opens nothing by itself. Clones share the choice of the host.
#[derive(Clone)]
pub struct Database {
    /// Never empty.
    urls: Arc<[String]>,
    /// Which of them is used. Written by whoever opens a connection or got no answer, read by all stores and the listener.
    host: Arc<watch::Sender<usize>>,
    pub(super) sql: &'static Sql,
    pub(super) limit: Duration,
    create: bool,
}

impl std::fmt::Debug for Database {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.urls.iter().map(|url| mask(url))).finish()
    }
}

impl Database {
    /// No store operation takes longer: on the server, and outside the call.
    pub const LIMIT: Duration = Duration::from_secs(10);

    /// No beat of a consumer with this lease takes longer: a heart whose connection is dead tries another one soon.
    pub fn beat_limit(lease: Duration) -> Duration {
        Self::LIMIT.min(lease / 4)
    }

    /// A database by its URL: `sqlite://FILE`, `postgres://…`, `mysql://…`, `mariadb://…`.
    ///
    /// # Errors
    /// A scheme we do not know, or one this binary was built without.
    pub fn new(url: &str) -> Result<Self> {
        Self::first_of(&[url])
    }

    /// A database by the URLs of its hosts, tried in order: the first writable one is used. They must lead to *one*
    /// database: a primary and its synchronous standbys, or the nodes of a cluster.
    ///
    /// # Errors
    /// As [`Database::new`]; no URL at all; URLs that cannot lead to one database.
    pub fn first_of(urls: &[&str]) -> Result<Self> {
        sqlx::any::install_default_drivers();
        let mut dialects = Vec::new();
        for url in urls {
            dialects.push(Dialect::of(url).ok_or_else(|| Error::Url(mask(url)))?);
            check(url).map_err(Error::Unusable)?;
        }
        let shown = || urls.iter().map(|url| mask(url)).collect::<Vec<_>>().join(", ");
        let Some(dialect) = dialects.first().copied() else { return Err(Error::Url(String::new())) };
        if dialects.iter().any(|other| *other != dialect) {
            return Err(Error::Hosts { urls: shown(), why: "these are databases of different kinds" });
        }
        if dialect == Dialect::Sqlite && urls.len() > 1 {
            return Err(Error::Hosts { urls: shown(), why: "each SQLite file is a queue of its own" });
        }
        Ok(Self {
            urls: urls.iter().map(ToString::to_string).collect(),
            host: Arc::new(watch::Sender::new(0)),
            sql: dialect.sql().ok_or(Error::NotBuilt(dialect))?,
            limit: Self::LIMIT,
            create: false,
        })
    }

    /// Makes the `SQLite` file where it is missing. Servers' databases are never created.
    #[must_use]
    pub fn create(mut self) -> Self {
        self.create = true;
        self
    }

    /// With another bound on every operation.
    #[must_use]
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Which database it is.
    pub fn dialect(&self) -> Dialect {
        self.sql.dialect
    }

    /// The `SQLite` file; `None` for a server.
    pub fn file(&self) -> Option<PathBuf> {
        let rest = self.url().strip_prefix("sqlite:")?;
        let path = rest.strip_prefix("//").unwrap_or(rest);
        Some(PathBuf::from(path.split_once('?').map_or(path, |(path, _)| path)))
    }

    /// The URL in use, without its password.
    pub fn masked(&self) -> String {
        mask(self.url())
    }

    /// The URL in use as the driver takes it, secrets included.
    pub(crate) fn url(&self) -> &str {
        &self.urls[self.host()]
    }

    /// Which of the hosts is in use.
    pub(super) fn host(&self) -> usize {
        *self.host.borrow()
    }

    /// Tells when another host is in use.
    #[cfg(feature = "postgres")]
    pub(crate) fn moves(&self) -> watch::Receiver<usize> {
        self.host.subscribe()
    }

    /// This host gave no answer in time: the next look for a writable one begins behind it.
    pub(super) fn doubt(&self, host: usize) {
        let next = (host + 1) % self.urls.len();
        self.host.send_if_modified(|used| *used == host && std::mem::replace(used, next) != next);
    }

    /// A store on this database. Nothing is opened before it is needed.
    pub fn store(&self) -> Store {
        Store { database: self.clone(), conn: None }
    }

    /// Opens one connection to the first writable host and sets its session up. One host alone is taken as it is: what
    /// only reads works on a standby too, and a write says what it meets.
    pub(super) async fn open(&self) -> Result<Connection> {
        if let [url] = &*self.urls {
            // Less than the unit's own limit, so that a server that never answers is told apart from a slow statement.
            let patience = self.limit * 9 / 10;
            let opened = timeout(patience, self.connect(url)).await.unwrap_or_else(|_| {
                Err(format!(
                    "no answer within {patience:?}; does a server of the URL's scheme listen there, and is it well?"
                ))
            });
            let conn = opened.map_err(|reason| Error::Unreachable { url: self.masked(), reason })?;
            return Ok(Connection { host: 0, conn });
        }
        // A host that is silent must not take the time of the others, nor all hosts that of the unit.
        let patience = self.limit * 3 / 4 / u32::try_from(self.urls.len()).unwrap_or(u32::MAX);
        let first = self.host();
        let mut refused = Vec::new();
        for host in (first..self.urls.len()).chain(0..first) {
            let reason = match timeout(patience, self.writer(&self.urls[host])).await {
                Ok(Ok(conn)) => {
                    self.host.send_if_modified(|used| std::mem::replace(used, host) != host);
                    return Ok(Connection { host, conn });
                }
                Ok(Err(reason)) => reason,
                Err(_) => format!("no answer within {patience:?}"),
            };
            refused.push((mask(&self.urls[host]), reason));
        }
        Err(Error::NoWriter { refused })
    }

    /// A connection to this host, or why it cannot be written to.
    async fn writer(&self, url: &str) -> std::result::Result<AnyConnection, String> {
        let mut conn = self.connect(url).await?;
        let reason: Option<String> = sqlx::query_scalar(self.sql.writable)
            .fetch_one(&mut conn)
            .await
            .map_err(|error| explain(&error))?;
        reason.map_or(Ok(conn), Err)
    }

    /// How the driver connects, once what it would only fail at has been looked at.
    pub(super) fn options(&self, url: &str) -> std::result::Result<AnyConnectOptions, String> {
        let url = match self.file() {
            Some(path) => {
                check_file(&path, self.create)?;
                // `sqlite:` without slashes: a relative path is not taken for a host name.
                format!("sqlite:{}?mode={}", path.display(), if self.create { "rwc" } else { "rw" })
            }
            None => url.to_owned(),
        };
        let options: AnyConnectOptions = url.parse().map_err(|error: sqlx::Error| error.to_string())?;
        Ok(options.disable_statement_logging())
    }

    async fn connect(&self, url: &str) -> std::result::Result<AnyConnection, String> {
        let options = self.options(url)?;
        for _ in 0..200 {
            match self.session(&options).await {
                // Many processes that open a new file at once meet on its switch to WAL.
                Err(Refused::Said(error)) if is_conflict(&error) => {
                    sleep(Duration::from_millis(fastrand::u64(1..10))).await;
                }
                Err(Refused::Said(error)) => return Err(explain(&error)),
                Err(Refused::Unfit(reason)) => return Err(reason),
                Ok(conn) => return Ok(conn),
            }
        }
        Err("it stays locked by another process".to_owned())
    }

    async fn session(&self, options: &AnyConnectOptions) -> std::result::Result<AnyConnection, Refused> {
        let mut conn = options.connect().await?;
        // Without preparing it: an older server or a pooler may not even be able to.
        let server = conn.fetch_one(sqlx::raw_sql(self.sql.server)).await?;
        Server::read(self.dialect(), server.try_get(0)?).map_err(Refused::Unfit)?;
        conn.execute(sqlx::raw_sql(self.sql.session)).await?;
        let mut limits = sqlx::query(self.sql.limits);
        for limit in server_limits(self.limit) {
            limits = limits.bind(limit);
        }
        limits.execute(&mut conn).await?;
        Ok(conn)
    }
}

/// Why a connection is none of ours.
enum Refused {
    /// In the words of the driver or the server.
    Said(sqlx::Error),
    /// The server lacks what we need.
    Unfit(String),
}

impl From<sqlx::Error> for Refused {
    fn from(error: sqlx::Error) -> Self {
        Self::Said(error)
    }
}

/// For `limits.sql`: when the server itself ends a statement, a wait for a lock, and a transaction whose client says
/// nothing; in milliseconds. All before the client gives up. A lock wait that ends is repeated with its whole unit, so it
/// may be short. Between two statements of a unit there is nothing to wait for, and everybody else waits for a client that
/// is frozen there: not for longer than a busy machine may take.
fn server_limits(limit: Duration) -> [i64; 3] {
    let statement = limit * 4 / 5;
    let lock = (limit / 2).min(Duration::from_secs(5));
    let idle = (limit / 5).clamp(Duration::from_secs(1), Duration::from_secs(2)).min(limit);
    // 0 would mean none.
    [statement, lock, idle]
        .map(|limit| i64::try_from(limit.as_millis()).unwrap_or(i64::MAX).clamp(1, i32::MAX.into()))
}

/// A connection, and to which of the hosts.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) host: usize,
    pub(super) conn: AnyConnection,
}

/// What `SQLite` itself would only call "unable to open database file".
fn check_file(path: &Path, create: bool) -> std::result::Result<(), String> {
    if path.as_os_str().is_empty() || path.as_os_str() == ":memory:" {
        return Err(
            "permitq needs a file, since every connection to :memory: is a database of its own".to_owned()
        );
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !folder.is_dir() {
        return Err(format!("there is no folder {}", folder.display()));
    }
    if let Some(name) = network(folder).or_else(|| network(path)) {
        return Err(format!(
            "it is on a network file system ({name}), where SQLite's locks and shared memory do not hold; \
             use a file on a local disk, or a PostgreSQL, MariaDB or MySQL server"
        ));
    }
    if path.is_dir() {
        return Err("it is a folder; name a file".to_owned());
    }
    if !path.exists() && !create {
        return Err("there is no such file; `permitq migrate` creates it".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_gives_up_before_the_client() {
        assert_eq!(server_limits(Database::LIMIT), [8_000, 5_000, 2_000]);
        assert_eq!(server_limits(Duration::from_secs(2)), [1_600, 1_000, 1_000]);
        assert_eq!(server_limits(Duration::from_mins(30)), [1_440_000, 5_000, 2_000]);
        assert_eq!(server_limits(Duration::ZERO), [1, 1, 1]);
    }

    #[test]
    fn hosts_that_cannot_be_one_database_are_refused() {
        let words = |urls: &[&str]| Database::first_of(urls).unwrap_err().to_string();
        assert_eq!(
            words(&["postgres://u:hunter2@a/db", "mysql://b/db"]),
            "database URLs postgres://u:***@a/db, mysql://b/db: these are databases of different kinds; \
             name the hosts of one"
        );
        assert!(words(&["sqlite://a.db", "sqlite://b.db"]).contains("queue of its own"));
        assert!(words(&[]).contains("use sqlite://FILE"));
        assert!(Database::first_of(&["mysql://a/db", "mariadb://b/db"]).is_ok());
    }

    #[test]
    fn a_doubted_host_is_left_once_however_many_doubt_it() {
        let database = Database::first_of(&["mysql://a/db", "mysql://b/db", "mysql://c/db"]).unwrap();
        let (heart, upkeep) = (database.clone(), database.clone());
        let seen = heart.host();
        heart.doubt(seen);
        upkeep.doubt(seen);
        assert_eq!((database.host(), database.url()), (1, "mysql://b/db"));
        database.doubt(1);
        database.doubt(2);
        assert_eq!(heart.host(), 0);
        let alone = Database::new("mysql://a/db").unwrap();
        alone.doubt(0);
        assert_eq!(alone.host(), 0);
    }
}
