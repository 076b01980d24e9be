//! What can go wrong at the database seam, kept apart by what a caller can do about it.

use std::time::Duration;

/// Why a store operation gave no answer. Contention, zero rows and lost claims are answers, not errors.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The URL names no database we know.
    #[error("database URL {0:?}: use sqlite://FILE, postgres://…, mysql://… or mariadb://…")]
    Url(String),
    /// The URL cannot be used as it is written.
    #[error("database URL: {0}")]
    Unusable(String),
    /// The URLs cannot lead to one database.
    #[error("database URLs {urls}: {why}; name the hosts of one")]
    Hosts {
        /// All of them, without passwords.
        urls: String,
        /// What is wrong with them.
        why: &'static str,
    },
    /// This binary was built without that database.
    #[error("this binary was built without support for {0:?}; build it with the cargo feature of that name")]
    NotBuilt(super::Dialect),
    /// No connection.
    #[error("cannot open database {url}: {reason}")]
    Unreachable {
        /// Where, without password.
        url: String,
        /// The driver's words, and what to do where that is known.
        reason: String,
    },
    /// No host of the database can be written to.
    #[error("none of the {} database hosts can be written to: {}", refused.len(), list(refused))]
    NoWriter {
        /// Each URL, without password, and why not.
        refused: Vec<(String, String)>,
    },
    /// No schema, too old, or too new.
    #[error("{0}")]
    Schema(String),
    /// Conflicts with other clients, again and again.
    #[error("{unit}: still in conflict with other clients after {tried:?}")]
    Busy {
        /// The operation.
        unit: &'static str,
        /// How long it was repeated.
        tried: Duration,
    },
    /// No answer in time. The connection has been dropped; what happened is unknown.
    #[error("{unit}: no answer from the database within {limit:?}")]
    Timeout {
        /// The operation.
        unit: &'static str,
        /// The bound.
        limit: Duration,
    },
    /// The connection broke while COMMIT was under way: it may or may not have happened.
    #[error("{unit}: the connection broke at COMMIT, so it may or may not have happened: {source}")]
    Unknown {
        /// The operation.
        unit: &'static str,
        /// The driver's error.
        source: sqlx::Error,
    },
    /// The database refuses these values; the same call will be refused again.
    #[error("{unit}: refused: {reason}")]
    Refused {
        /// The operation.
        unit: &'static str,
        /// The database's words.
        reason: String,
    },
    /// A loop of this process has died; the process must end, and the leases do the rest.
    #[error("{0} died; ending, so that others take over")]
    Broken(&'static str),
    /// The database user lacks a right.
    #[error(
        "{unit}: {reason}; `permitq doctor` names every right that is missing, sql/README.md (Least privilege) has the grants"
    )]
    Denied {
        /// The operation.
        unit: &'static str,
        /// The database's words.
        reason: String,
    },
    /// A pooler hands our statements to sessions that do not know them.
    #[error("{unit}: {reason}; {}", super::explain::POOLER)]
    Pooled {
        /// The operation.
        unit: &'static str,
        /// The database's words.
        reason: String,
    },
    /// Anything else the database or the driver says.
    #[error("{unit}: {source}")]
    Database {
        /// The operation.
        unit: &'static str,
        /// The driver's error.
        source: sqlx::Error,
    },
}

impl Error {
    /// Whether the operation may have been committed although no answer came.
    pub fn is_unknown(&self) -> bool {
        matches!(self, Self::Unknown { .. } | Self::Timeout { .. })
    }
}

impl Error {
    /// Whether a row was to blame, so that the same unit without it may succeed.
    pub(crate) fn is_about_rows(&self) -> bool {
        match self {
            Self::Refused { .. } => true,
            Self::Database { source, .. } => {
                matches!(source, sqlx::Error::ColumnDecode { .. } | sqlx::Error::Protocol(_))
            }
            _ => false,
        }
    }
}

fn list(refused: &[(String, String)]) -> String {
    refused.iter().map(|(url, reason)| format!("{url}: {reason}")).collect::<Vec<_>>().join("; ")
}

/// The server says goodbye, has become read-only or has lost its cluster: the next connection may find a better one.
pub(super) fn is_goodbye(error: &sqlx::Error) -> bool {
    let Some(database) = error.as_database_error() else { return false };
    #[cfg(feature = "mysql")]
    if let Some(mysql) = database.try_downcast_ref::<sqlx::mysql::MySqlDatabaseError>() {
        // Galera without quorum or not in step; shutting down; read_only and its kin; the connection was killed.
        return matches!(mysql.number(), 1047 | 1053 | 1290 | 1836 | 1792 | 1317 | 1927);
    }
    let code = database.code().unwrap_or_default();
    code.starts_with("57P") || code == "25006"
}

/// Nothing was applied and the whole unit may run again: deadlock, serialization failure, lock timeout, busy, or a row that
/// went away in between.
pub(super) fn is_conflict(error: &sqlx::Error) -> bool {
    if matches!(error, sqlx::Error::RowNotFound) {
        return true;
    }
    let Some(database) = error.as_database_error() else { return false };
    let code = database.code().unwrap_or_default();
    #[cfg(feature = "mysql")]
    if let Some(mysql) = database.try_downcast_ref::<sqlx::mysql::MySqlDatabaseError>() {
        // By number: a lock wait timeout has the catch-all SQLSTATE HY000.
        return matches!(mysql.number(), 1205 | 1213 | 1020);
    }
    #[cfg(feature = "sqlite")]
    if database.try_downcast_ref::<sqlx::sqlite::SqliteError>().is_some() {
        // SQLITE_BUSY and SQLITE_LOCKED, extended codes included.
        return matches!(code.parse::<i32>().map(|code| code & 0xff), Ok(5 | 6));
    }
    matches!(&*code, "40001" | "40P01" | "55P03")
}

/// The database refuses the user: a right is missing.
pub(super) fn is_denial(error: &sqlx::Error) -> bool {
    let Some(database) = error.as_database_error() else { return false };
    #[cfg(feature = "mysql")]
    if let Some(mysql) = database.try_downcast_ref::<sqlx::mysql::MySqlDatabaseError>() {
        // A database, a table, a column, an administrator's right, a routine, a view.
        return matches!(mysql.number(), 1044 | 1142 | 1143 | 1227 | 1370 | 1345);
    }
    database.code().is_some_and(|code| code == "42501")
}

/// A prepared statement is unknown, or there already: the session is not the one that it was.
pub(super) fn is_mixed_up(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(sqlx::error::DatabaseError::code);
    code.is_some_and(|code| matches!(&*code, "42P05" | "26000"))
}

/// The database refuses the values themselves: a constraint, a trigger of ours, data that does not fit.
pub(super) fn is_refusal(error: &sqlx::Error) -> bool {
    if matches!(error, sqlx::Error::InvalidArgument(_)) {
        return true; // our own word
    }
    let Some(database) = error.as_database_error() else { return false };
    let code = database.code().unwrap_or_default();
    #[cfg(feature = "sqlite")]
    if database.try_downcast_ref::<sqlx::sqlite::SqliteError>().is_some() {
        // SQLITE_CONSTRAINT, SQLITE_TOOBIG, SQLITE_MISMATCH.
        return matches!(code.parse::<i32>().map(|code| code & 0xff), Ok(18..=20));
    }
    #[cfg(feature = "mysql")]
    if let Some(mysql) = database.try_downcast_ref::<sqlx::mysql::MySqlDatabaseError>() {
        // By number where the SQLSTATE is a catch-all: CHECK (MySQL), no default, cut, wrong value.
        if matches!(mysql.number(), 3819 | 1364 | 1265 | 1366) {
            return true;
        }
    }
    // SQLSTATE class 22 (data exception), 23 (integrity), 45 (raised by a trigger), P0001 (raised by a function).
    code.starts_with("22") || code.starts_with("23") || code.starts_with("45") || &*code == "P0001"
}

/// The database's own words, without the driver's decoration.
pub(super) fn words(error: &sqlx::Error) -> String {
    match error {
        sqlx::Error::InvalidArgument(words) => words.clone(),
        _ => error
            .as_database_error()
            .map_or_else(|| error.to_string(), |database| database.message().to_owned()),
    }
}
