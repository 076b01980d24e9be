//! Where it all happens: a private database that may be hurt, or somebody's that may not.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use permitq::store::{Database, Dialect};
use tempfile::TempDir;
use tokio::task::spawn_blocking;

use super::plan::Place;
use crate::servers::Server;
use crate::servers::clock::Clock;
use crate::{Error, Target};

impl Target {
    /// What it can suffer.
    pub fn place(&self) -> Place {
        match self {
            Self::Sqlite => Place::File,
            Self::Postgres | Self::MariaDb => Place::Server,
            Self::Url(url) if url.starts_with("sqlite:") => Place::File,
            Self::Url(_) => Place::Url,
        }
    }
}

/// The database, and the folder of this run.
pub(super) struct Stage {
    pub(super) url: String,
    pub(super) dialect: Dialect,
    /// Where the server listens, and how the URL says so.
    pub(super) server_address: Option<(SocketAddr, String)>,
    pub(super) server: Option<Arc<Mutex<Server>>>,
    pub(super) clock: Option<Clock>,
    /// Consumers' configuration and logs; the database, where it is a file.
    pub(super) folder: Arc<TempDir>,
}

impl Stage {
    /// `clock`: its clock is to be stepped.
    pub(super) async fn open(target: &Target, clock: bool) -> Result<Self, Error> {
        let folder = Arc::new(tempfile::Builder::new().prefix("permitq-chaos-").tempdir()?);
        let file_clock = || clock.then(|| Clock::new(folder.path().join("clock")));
        match target {
            Target::Sqlite => {
                let url = format!("sqlite://{}", folder.path().join("permitq.db").display());
                let clock = file_clock();
                Ok(Self { url, dialect: Dialect::Sqlite, server_address: None, server: None, clock, folder })
            }
            Target::Postgres | Target::MariaDb => {
                let postgres = *target == Target::Postgres;
                let (server, url) = spawn_blocking(move || {
                    let mut server = if postgres { Server::postgres(true) } else { Server::mariadb(true) };
                    if clock {
                        server.add_clock();
                    }
                    let url = server.database("chaos");
                    (server, url)
                })
                .await?;
                let dialect = Database::new(&url)?.dialect();
                let server_address = Some(address(&url, dialect).await?);
                let clock = server.clock().cloned();
                let server = Some(Arc::new(Mutex::new(server)));
                Ok(Self { url, dialect, server_address, server, clock, folder })
            }
            Target::Url(url) => {
                let dialect = Database::new(url)?.dialect();
                let server_address = match dialect {
                    Dialect::Sqlite => None,
                    _ => Some(address(url, dialect).await?),
                };
                let clock = if dialect == Dialect::Sqlite { file_clock() } else { None };
                Ok(Self { url: url.clone(), dialect, server_address, server: None, clock, folder })
            }
        }
    }

    /// What consumers find in their environment: a file's clock is each process's own.
    pub(super) fn environment(&self) -> Vec<(String, String)> {
        let clock = self.clock.as_ref().filter(|_| self.server.is_none());
        let environment = clock.map(Clock::environment).into_iter().flatten();
        environment.map(|(name, value)| (name.to_owned(), value.display().to_string())).collect()
    }
}

/// Where the server of this URL listens, and how the URL says so.
async fn address(url: &str, dialect: Dialect) -> Result<(SocketAddr, String), Error> {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?']).next().unwrap_or(rest);
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let port = if dialect == Dialect::Postgres { 5432 } else { 3306 };
    let full = if host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok()) {
        host.to_owned()
    } else {
        format!("{host}:{port}")
    };
    let found = tokio::net::lookup_host(&full).await.map_err(|error| format!("{full}: {error}"))?.next();
    let address = found.ok_or_else(|| format!("{full} has no address"))?;
    Ok((address, host.to_owned()))
}
