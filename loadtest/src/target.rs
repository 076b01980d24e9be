//! What a run is done to, and with.

use std::path::PathBuf;
use std::str::FromStr;

use permitq::store::Database;

/// Which database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A file of its own.
    Sqlite,
    /// A private server.
    Postgres,
    /// A private server.
    MariaDb,
    /// Somebody's database.
    Url(String),
}

impl FromStr for Target {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        match word {
            "sqlite" => Ok(Self::Sqlite),
            "postgres" => Ok(Self::Postgres),
            "mariadb" => Ok(Self::MariaDb),
            url if url.contains("://") => match Database::new(url) {
                Ok(_) => Ok(Self::Url(url.to_owned())),
                Err(error) => Err(error.to_string()),
            },
            _ => {
                Err("use sqlite, postgres, mariadb, or a URL such as postgres://user@host/database"
                    .to_owned())
            }
        }
    }
}

impl Target {
    /// Which database it is, in a word.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Sqlite => "sqlite",
            Self::Postgres => "postgres",
            Self::Url(url) if url.starts_with("sqlite:") => "sqlite",
            Self::Url(url) if url.starts_with("postgres") => "postgres",
            Self::MariaDb | Self::Url(_) => "mariadb",
        }
    }
}

/// How permitq's command line is run: `PATH ARGS run …`
#[derive(Clone, Debug)]
pub struct Program {
    /// The binary.
    pub path: PathBuf,
    /// What comes before permitq's own arguments.
    pub args: Vec<String>,
}
