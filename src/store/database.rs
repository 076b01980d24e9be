//! Where the database is, and how a connection to it is opened.

use std::path::{Path, PathBuf};
use std::time::Duration;

use sqlx::AnyConnection;
use sqlx::any::AnyConnectOptions;
use sqlx::{ConnectOptions, Executor};
use tokio::time::sleep;

use super::error::{is_conflict, words};
use super::{Dialect, Error, Result, Sql, Store};

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

    /// No beat of a consumer with this lease takes longer: a heart whose connection is dead tries another one soon.
    pub fn beat_limit(lease: Duration) -> Duration {
        Self::LIMIT.min(lease / 4)
    }

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
        let options = options.disable_statement_logging();
        for _ in 0..200 {
            let opened = async {
                let mut conn = options.connect().await?;
                conn.execute(sqlx::raw_sql(self.sql.session)).await?;
                Ok::<_, sqlx::Error>(conn)
            };
            match opened.await {
                // Many processes that open a new file at once meet on its switch to WAL.
                Err(error) if is_conflict(&error) => sleep(Duration::from_millis(fastrand::u64(1..10))).await,
                Err(error) => return Err(unreachable(explain(&error))),
                Ok(conn) => return Ok(conn),
            }
        }
        Err(unreachable("it stays locked by another process".to_owned()))
    }
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
    if path.is_dir() {
        return Err("it is a folder; name a file".to_owned());
    }
    if !path.exists() && !create {
        return Err("there is no such file; `permitq migrate` creates it".to_owned());
    }
    Ok(())
}

fn explain(error: &sqlx::Error) -> String {
    let said = words(error);
    let hint = if said.contains("file is not a database") {
        "; name another file, or move this one away"
    } else if said.contains("unable to open") || said.contains("readonly") {
        "; permitq must be able to write the file and its folder"
    } else {
        ""
    };
    format!("{said}{hint}")
}

/// A URL without its password.
fn mask(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    match rest.split_once('@') {
        Some((login, place)) => {
            let user = login.split_once(':').map_or(login, |(user, _)| user);
            format!("{scheme}://{user}:***@{place}")
        }
        None => url.to_owned(),
    }
}
