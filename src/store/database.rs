//! Where the database is, and how a connection to it is opened.

use std::path::{Path, PathBuf};
use std::time::Duration;

use sqlx::AnyConnection;
use sqlx::any::AnyConnectOptions;
use sqlx::{ConnectOptions, Executor, Row};
use tokio::time::{sleep, timeout};

use super::error::is_conflict;
use super::explain::explain;
use super::filesystem::network;
use super::{Dialect, Error, Result, Server, Sql, Store};

/// Where the database is. Cheap to clone; opens nothing by itself.
#[derive(Clone)]
pub struct Database {
    url: String,
    pub(super) sql: &'static Sql,
    pub(super) limit: Duration,
    create: bool,
}

impl std::fmt::Debug for Database {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Database").field(&self.masked()).finish()
    }
}

impl Database {
    /// No store operation takes longer: on the server, and outside the call.
    pub const LIMIT: Duration = Duration::from_secs(10);

    /// A database by its URL: `sqlite://FILE`, `postgres://…`, `mysql://…`, `mariadb://…`.
    ///
    /// # Errors
    /// A scheme we do not know, or one this binary was built without.
    pub fn new(url: &str) -> Result<Self> {
        sqlx::any::install_default_drivers();
        let dialect = Dialect::of(url).ok_or_else(|| Error::Url(mask(url)))?;
        let sql = dialect.sql().ok_or(Error::NotBuilt(dialect))?;
        Ok(Self { url: url.to_owned(), sql, limit: Self::LIMIT, create: false })
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
        let rest = self.url.strip_prefix("sqlite:")?;
        let path = rest.strip_prefix("//").unwrap_or(rest);
        Some(PathBuf::from(path.split_once('?').map_or(path, |(path, _)| path)))
    }

    /// The URL without its password.
    pub fn masked(&self) -> String {
        mask(&self.url)
    }

    /// As the driver takes it, secrets included.
    #[cfg(feature = "postgres")]
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// A store on this database. Nothing is opened before it is needed.
    pub fn store(&self) -> Store {
        Store { database: self.clone(), conn: None }
    }

    /// Opens one connection and sets its session up.
    pub(super) async fn open(&self) -> Result<AnyConnection> {
        let options = self.options()?;
        let unreachable = |reason| Error::Unreachable { url: self.masked(), reason };
        // Less than the unit's own limit, so that a server that never answers is told apart from a slow statement.
        let patience = self.limit * 9 / 10;
        match timeout(patience, self.connect(&options)).await {
            Ok(opened) => opened.map_err(unreachable),
            Err(_) => Err(unreachable(format!(
                "no answer within {patience:?}; does a server of the URL's scheme listen there, and is it well?"
            ))),
        }
    }

    /// How the driver connects, once what it would only fail at has been looked at.
    pub(super) fn options(&self) -> Result<AnyConnectOptions> {
        let unreachable = |reason| Error::Unreachable { url: self.masked(), reason };
        let url = match self.file() {
            Some(path) => {
                check_file(&path, self.create).map_err(unreachable)?;
                // `sqlite:` without slashes: a relative path is not taken for a host name.
                format!("sqlite:{}?mode={}", path.display(), if self.create { "rwc" } else { "rw" })
            }
            None => self.url.clone(),
        };
        let options: AnyConnectOptions =
            url.parse().map_err(|error: sqlx::Error| unreachable(error.to_string()))?;
        Ok(options.disable_statement_logging())
    }

    async fn connect(&self, options: &AnyConnectOptions) -> std::result::Result<AnyConnection, String> {
        for _ in 0..200 {
            match self.session(options).await {
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
/// may be short; between two statements of a unit there is nothing to wait for.
fn server_limits(limit: Duration) -> [i64; 3] {
    let statement = limit * 4 / 5;
    let lock = (limit / 2).min(Duration::from_secs(5));
    let idle = limit.min(Duration::from_secs(10));
    // 0 would mean none.
    [statement, lock, idle]
        .map(|limit| i64::try_from(limit.as_millis()).unwrap_or(i64::MAX).clamp(1, i32::MAX.into()))
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

/// A URL without its password, in front of the host or among the parameters.
fn mask(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let slashes = if scheme.is_empty() { "" } else { "://" };
    // Up to the last `@`: rather masked too much, where a password has a character that should have been encoded.
    let (login, place) = rest.rsplit_once('@').map_or((String::new(), rest), |(login, place)| {
        let login = login.split_once(':').map_or(login.to_owned(), |(user, _)| format!("{user}:***"));
        (login + "@", place)
    });
    let (path, query) = place.split_once('?').map_or((place, String::new()), |(path, query)| {
        let hide = |pair: &str| match pair.split_once('=') {
            Some((name, _)) if name.to_ascii_lowercase().contains("pass") => format!("{name}=***"),
            _ => pair.to_owned(),
        };
        (path, format!("?{}", query.split('&').map(hide).collect::<Vec<_>>().join("&")))
    });
    format!("{scheme}{slashes}{login}{path}{query}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_password_is_shown() {
        for (url, shown) in [
            ("postgres://u:hunter2@h:5432/db", "postgres://u:***@h:5432/db"),
            ("postgres://u:hunter@2@h/db", "postgres://u:***@h/db"),
            ("postgres://u@h/db?sslmode=require", "postgres://u@h/db?sslmode=require"),
            ("mariadb://h/db?user=u&password=hunter2&a=b", "mariadb://h/db?user=u&password=***&a=b"),
            ("sqlite:permitq.db", "sqlite:permitq.db"),
            ("u:hunter2@h", "u:***@h"),
        ] {
            assert_eq!(mask(url), shown);
        }
    }

    #[test]
    fn the_server_gives_up_before_the_client() {
        assert_eq!(server_limits(Database::LIMIT), [8_000, 5_000, 10_000]);
        assert_eq!(server_limits(Duration::from_secs(2)), [1_600, 1_000, 2_000]);
        assert_eq!(server_limits(Duration::from_mins(30)), [1_440_000, 5_000, 10_000]);
        assert_eq!(server_limits(Duration::ZERO), [1, 1, 1]);
    }
}
