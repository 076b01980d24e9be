//! Which database a command works on, and opening it.
//!
//! Commands that only read or change what is there never create anything. `migrate` and `enqueue` make an `SQLite` file
//! and its schema by themselves, so that nothing has to be installed; a server's schema changes only by `migrate`.

use super::Global;
use super::fail::Failure;
use crate::store::{Database, Dialect, Error, Migrated, Store};

/// Where nothing else is said.
const DEFAULT: &str = "sqlite://permitq.db";

/// The database of this command: `--database`, then the environment, then a file in the working directory.
fn database(global: &Global) -> Result<Database, Failure> {
    if let Some(file) = &global.config {
        // Refused rather than ignored: a file that seems to be read but is not would be worse than none.
        let file = file.display();
        return Err(Failure::Usage(format!(
            "--config {file}: this build reads no configuration file; use --database"
        )));
    }
    let from_env = |name: &'static str| {
        let url = std::env::var(name).ok().filter(|url| !url.is_empty());
        url.map(|url| (name, url))
    };
    let given = global.database.clone().map(|url| ("--database", url));
    let (origin, url) = given
        .or_else(|| from_env("PERMITQ_DATABASE_URL"))
        .or_else(|| from_env("DATABASE_URL"))
        .unwrap_or_else(|| ("default", DEFAULT.to_owned()));
    Database::new(&url).map_err(|error| Failure::Usage(format!("{origin}: {error}")))
}

/// The database as it is, with a schema that this binary knows.
pub(super) async fn open(global: &Global) -> Result<Store, Failure> {
    let mut store = database(global)?.store();
    store.schema().await?;
    Ok(store)
}

/// The database for `enqueue`: an `SQLite` file is created and upgraded where needed.
pub(super) async fn open_or_create(global: &Global) -> Result<Store, Failure> {
    let database = database(global)?;
    if database.dialect() != Dialect::Sqlite {
        return open(global).await;
    }
    let mut store = database.create().store();
    // Looking first: a migration that has nothing to do would still wait for the write lock.
    match store.schema().await {
        Err(Error::Schema(_)) => {
            migrate(global).await?;
        }
        known => drop(known?),
    }
    Ok(store)
}

/// The database for `migrate`.
pub(super) async fn migrate(global: &Global) -> Result<(Store, Migrated), Failure> {
    let mut store = database(global)?.create().store();
    let migrated = store.migrate().await?;
    // A schema from a newer binary needs no migration, but may not admit this one.
    store.schema().await?;
    Ok((store, migrated))
}
