//! Which database a command works on, and opening it.
//!
//! Commands that only read or change what is there never create anything. `migrate` and `enqueue` make an `SQLite` file
//! and its schema by themselves, so that nothing has to be installed; a server's schema changes only by `migrate`.

use super::Global;
use super::fail::Failure;
use crate::config::{Config, DatabaseUrl};
use crate::store::{Database, Dialect, Error, Migrated, Store};

/// The database of this configuration.
pub(super) fn database(config: &Config) -> Result<Database, Failure> {
    let urls: Vec<_> = config.database.url.iter().map(DatabaseUrl::expose).collect();
    Ok(Database::first_of(&urls)?.limit(config.database.statement_timeout))
}

/// The database for a consumer or an enqueuer: an `SQLite` file is created and upgraded where needed.
pub(super) async fn prepared(config: &Config) -> Result<Database, Failure> {
    let database = database(config)?;
    if database.dialect() != Dialect::Sqlite {
        database.store().schema().await?;
        return Ok(database);
    }
    let database = database.create();
    // Looking first: a migration that has nothing to do would still wait for the write lock.
    match database.store().schema().await {
        Err(Error::Schema(_)) => drop(migrated(&database).await?),
        known => drop(known?),
    }
    Ok(database)
}

/// The database as it is, with a schema that this binary knows.
pub(super) async fn open(global: &Global) -> Result<Store, Failure> {
    let mut store = database(&global.settings()?)?.store();
    store.schema().await?;
    Ok(store)
}

/// The database for `enqueue`.
pub(super) async fn open_or_create(global: &Global) -> Result<Store, Failure> {
    Ok(prepared(&global.settings()?).await?.store())
}

/// The database for `migrate`.
pub(super) async fn migrate(global: &Global) -> Result<(Store, Migrated), Failure> {
    migrated(&database(&global.settings()?)?.create()).await
}

async fn migrated(database: &Database) -> Result<(Store, Migrated), Failure> {
    let mut store = database.store();
    let migrated = store.migrate().await?;
    // A schema from a newer binary needs no migration, but may not admit this one.
    store.schema().await?;
    Ok((store, migrated))
}
