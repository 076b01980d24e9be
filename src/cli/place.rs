//! Which database a command works on, and opening it.
//!
//! Commands that only read or change what is there never create anything. `migrate` and `enqueue` make an `SQLite` file
//! and its schema by themselves, so that nothing has to be installed; a server's schema changes only by `migrate`.

use super::Global;
use super::fail::Failure;
use crate::config::Config;
use crate::store::{Database, Dialect, Migrated, Store};

/// The database of this configuration.
pub(super) fn database(config: &Config) -> Result<Database, Failure> {
    let url = config.database.url.first().ok_or_else(|| Failure::Usage("no database is named".to_owned()))?;
    Ok(Database::new(url.expose())?.limit(config.database.statement_timeout))
}

/// The database for a consumer: as [`open_or_create`].
pub(super) async fn prepared(config: &Config) -> Result<Database, Failure> {
    let database = database(config)?;
    if database.dialect() == Dialect::Sqlite {
        migrated(database.clone()).await?;
    }
    Ok(database)
}

/// The database as it is, with a schema that this binary knows.
pub(super) async fn open(global: &Global) -> Result<Store, Failure> {
    let mut store = database(&global.config(Vec::new())?)?.store();
    store.schema().await?;
    Ok(store)
}

/// The database for `enqueue`: an `SQLite` file is created and upgraded where needed.
pub(super) async fn open_or_create(global: &Global) -> Result<Store, Failure> {
    let database = database(&global.config(Vec::new())?)?;
    match database.dialect() {
        Dialect::Sqlite => Ok(migrated(database).await?.0),
        Dialect::Postgres | Dialect::Mysql => open(global).await,
    }
}

/// The database for `migrate`.
pub(super) async fn migrate(global: &Global) -> Result<(Store, Migrated), Failure> {
    migrated(database(&global.config(Vec::new())?)?).await
}

async fn migrated(database: Database) -> Result<(Store, Migrated), Failure> {
    let mut store = database.create().store();
    let migrated = store.migrate().await?;
    // A schema from a newer binary needs no migration, but may not admit this one.
    store.schema().await?;
    Ok((store, migrated))
}
