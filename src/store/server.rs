//! What answers at the other end: its product and version, and whether the statements can run there at all.
//!
//! Asked once per connection, before anything else: what an older server would say of the first statement it does not
//! know helps nobody. The versions below are what `sql/` really uses; what it was tested with is newer.

use std::fmt;

use super::Dialect;

/// A database product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Product {
    /// The bundled library.
    Sqlite,
    /// PostgreSQL.
    Postgres,
    /// MariaDB.
    MariaDb,
    /// MySQL.
    Mysql,
}

/// What answered, by its own words.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Server {
    /// Its product.
    pub product: Product,
    /// Its version: major, minor, patch; 0 where it names none.
    pub version: [u32; 3],
}

/// Products that speak the protocol of another and lack what permitq needs: triggers, SKIP LOCKED, NOTIFY.
const RELATIVES: [&str; 6] = ["cockroachdb", "redshift", "greenplum", "tidb", "vitess", "singlestore"];

impl Product {
    /// What people call it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sqlite => "SQLite",
            Self::Postgres => "PostgreSQL",
            Self::MariaDb => "MariaDB",
            Self::Mysql => "MySQL",
        }
    }

    /// The lowest version, and what asks for it.
    fn lowest(self) -> ([u32; 3], &'static str) {
        match self {
            Self::Sqlite => ([3, 38, 0], "JSON functions"),
            Self::Postgres => ([13, 0, 0], "gen_random_uuid() and plan_cache_mode"),
            Self::MariaDb => ([10, 10, 0], "random_bytes(), JSON_TABLE and SKIP LOCKED"),
            Self::Mysql => ([8, 0, 17], "utf8mb4_0900_bin, CHECK constraints, JSON_TABLE and SKIP LOCKED"),
        }
    }

    /// The lowest version that the tests run on; `None` where they run on none.
    fn tested(self) -> Option<[u32; 3]> {
        match self {
            Self::Sqlite => Some([3, 51, 0]),
            Self::Postgres => Some([15, 0, 0]),
            Self::MariaDb => Some([10, 11, 0]),
            Self::Mysql => None,
        }
    }
}

impl Server {
    /// Reads what `server.sql` answers. A refusal says what this server lacks, and what would do.
    pub(super) fn read(dialect: Dialect, said: &str) -> Result<Self, String> {
        let lower = said.to_ascii_lowercase();
        if let Some(relative) = RELATIVES.iter().find(|name| lower.contains(**name)) {
            return Err(format!(
                "{said:?} is {relative}, which only speaks the protocol; use PostgreSQL, MariaDB, MySQL or SQLite"
            ));
        }
        let (product, version) = match dialect {
            Dialect::Sqlite => (Product::Sqlite, said),
            Dialect::Postgres => (Product::Postgres, said.trim_start_matches(|c: char| !c.is_ascii_digit())),
            Dialect::Mysql if lower.contains("mariadb") => (Product::MariaDb, said),
            Dialect::Mysql => (Product::Mysql, said),
        };
        let server = Self { product, version: numbers(version) };
        let (lowest, why) = product.lowest();
        if server.version < lowest {
            return Err(format!(
                "{server} is too old: permitq needs {} {} or newer, for {why}; upgrade the server",
                product.as_str(),
                dotted(lowest)
            ));
        }
        Ok(server)
    }
}

impl Server {
    /// What the tests run on instead, where they run on nothing as old as this.
    pub fn untested(&self) -> Option<String> {
        match self.product.tested() {
            Some(tested) if self.version >= tested => None,
            Some(tested) => {
                Some(format!("tested with {} {} and newer", self.product.as_str(), dotted(tested)))
            }
            None => Some(format!(
                "the statements are written for {} too, but not tested on it",
                self.product.as_str()
            )),
        }
    }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.product.as_str(), dotted(self.version))
    }
}

/// The first three numbers at the beginning of the text: `15.14 (Debian …)`, `17beta1`, `10.11.14-MariaDB`.
fn numbers(text: &str) -> [u32; 3] {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let mut parts = text[..end].split('.').map(|part| part.parse().unwrap_or(0));
    [(); 3].map(|()| parts.next().unwrap_or(0))
}

/// Without zeros at the end that say nothing: `15`, `10.11`, `8.0.17`.
fn dotted([major, minor, patch]: [u32; 3]) -> String {
    match (minor, patch) {
        (0, 0) => format!("{major}"),
        (_, 0) => format!("{major}.{minor}"),
        _ => format!("{major}.{minor}.{patch}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_known_by_what_they_say() {
        for (dialect, said, shown) in [
            (Dialect::Sqlite, "3.51.1", "SQLite 3.51.1"),
            (
                Dialect::Postgres,
                "PostgreSQL 15.14 (Debian 15.14-0+deb12u1) on x86_64-pc-linux-gnu, compiled by gcc 12.2.0",
                "PostgreSQL 15.14",
            ),
            (Dialect::Postgres, "PostgreSQL 19beta1 on x86_64", "PostgreSQL 19"),
            (Dialect::Postgres, "PostgreSQL 13.0", "PostgreSQL 13"),
            (Dialect::Mysql, "10.11.14-MariaDB-0+deb12u2-log", "MariaDB 10.11.14"),
            (Dialect::Mysql, "12.0.2-MariaDB", "MariaDB 12.0.2"),
            (Dialect::Mysql, "8.0.36-0ubuntu0.22.04.1", "MySQL 8.0.36"),
            (Dialect::Mysql, "9.1.0", "MySQL 9.1"),
        ] {
            assert_eq!(Server::read(dialect, said).unwrap().to_string(), shown);
        }
    }

    #[test]
    fn what_no_test_runs_on_is_told() {
        let untested = |dialect, said| Server::read(dialect, said).unwrap().untested();
        assert_eq!(untested(Dialect::Postgres, "PostgreSQL 15.1"), None);
        assert_eq!(untested(Dialect::Mysql, "11.4.2-MariaDB"), None);
        assert!(untested(Dialect::Postgres, "PostgreSQL 14.9").unwrap().contains("PostgreSQL 15 and newer"));
        assert!(untested(Dialect::Mysql, "8.4.0").unwrap().contains("not tested on it"));
    }

    #[test]
    fn what_is_too_old_or_another_product_is_refused() {
        for (dialect, said, words) in [
            (
                Dialect::Postgres,
                "PostgreSQL 12.22 on x86_64",
                "PostgreSQL 12.22 is too old: permitq needs PostgreSQL 13",
            ),
            (Dialect::Postgres, "PostgreSQL 9.6.24 on x86_64", "9.6.24 is too old"),
            (Dialect::Postgres, "who knows", "PostgreSQL 0 is too old"),
            (Dialect::Postgres, "CockroachDB CCL v23.1.11", "only speaks the protocol"),
            (Dialect::Mysql, "10.6.18-MariaDB", "needs MariaDB 10.10 or newer"),
            (Dialect::Mysql, "5.5.68-MariaDB", "is too old"),
            (Dialect::Mysql, "5.7.44-log", "needs MySQL 8.0.17 or newer"),
            (Dialect::Mysql, "8.0.16", "too old"),
            (Dialect::Mysql, "8.0.11-TiDB-v7.5.1", "only speaks the protocol"),
        ] {
            let refusal = Server::read(dialect, said).unwrap_err();
            assert!(refusal.contains(words), "{refusal}");
        }
    }
}
