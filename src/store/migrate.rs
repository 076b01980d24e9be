//! The schema: created, upgraded, and checked. Forward only; a binary runs on its own schema and on a newer one whose
//! recorded `min_binary` admits it.

use sqlx::{Executor, Row};

use super::rows::one;
use super::unit::{How, Tx, Unit};
use super::{Dialect, Error, Result, Store};

/// The schema this binary was written for.
pub const SCHEMA_VERSION: i64 = 3;

/// What the database says of its schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schema {
    /// Its version.
    pub version: i64,
    /// The lowest schema version a binary must know to run on it.
    pub min_binary: i64,
    /// The name of this installation; prefixes every `Idempotency-Key`.
    pub installation: String,
}

/// What a migration did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Migrated {
    /// The version before; 0 where there was no schema.
    pub from: i64,
    /// The version now.
    pub to: i64,
}

impl Store {
    /// Creates or upgrades the schema. Safe to run at any time, by any number of processes at once.
    pub async fn migrate(&mut self) -> Result<Migrated> {
        self.run(&Migrate).await
    }

    /// Reads the schema and refuses one that this binary cannot run on, with the command that helps.
    pub async fn schema(&mut self) -> Result<Schema> {
        let place = self.database().masked();
        let Some(schema) = self.run(&Read).await? else {
            // MySQL and MariaDB hide what a user has no right on.
            let hidden = match self.database().dialect() {
                Dialect::Mysql => {
                    " (or, where they exist, grant their use: sql/README.md, \"Least privilege\")"
                }
                Dialect::Sqlite | Dialect::Postgres => "",
            };
            return Err(Error::Schema(format!(
                "no permitq tables in {place}; run `permitq migrate`{hidden}"
            )));
        };
        if schema.version < SCHEMA_VERSION {
            return Err(Error::Schema(format!(
                "{place} has schema version {}, this binary needs {SCHEMA_VERSION}; run `permitq migrate`",
                schema.version
            )));
        }
        if schema.min_binary > SCHEMA_VERSION {
            return Err(Error::Schema(format!(
                "{place} has schema version {}, which needs a newer binary; this one knows {SCHEMA_VERSION}",
                schema.version
            )));
        }
        Ok(schema)
    }
}

struct Read;

impl Unit for Read {
    type Answer = Option<Schema>;
    const NAME: &'static str = "read the schema";
    const HOW: How = How::Reading;

    async fn run(&self, tx: &mut Tx<'_>) -> sqlx::Result<Option<Schema>> {
        let installed: i64 =
            one(sqlx::query(tx.sql.installed).fetch_all(&mut *tx.conn).await?)?.try_get(0)?;
        if installed == 0 {
            return Ok(None);
        }
        // No row yet: a migration was cut short where DDL commits by itself.
        let rows = sqlx::query(tx.sql.schema).fetch_all(&mut *tx.conn).await?;
        rows.first()
            .map(|row| {
                Ok(Schema {
                    version: row.try_get(0)?,
                    min_binary: row.try_get(1)?,
                    installation: row.try_get(2)?,
                })
            })
            .transpose()
    }
}

struct Migrate;

impl Unit for Migrate {
    type Answer = Migrated;
    const NAME: &'static str = "migrate";

    async fn run(&self, tx: &mut Tx<'_>) -> sqlx::Result<Migrated> {
        let locked: Option<i64> =
            one(sqlx::query(tx.sql.migrate_lock).fetch_all(&mut *tx.conn).await?)?.try_get(0)?;
        if locked != Some(1) {
            return Err(sqlx::Error::Protocol("another migration is still at work; try again".to_owned()));
        }
        let migrated = upgrade(tx).await;
        let unlocked = tx.conn.execute(tx.sql.migrate_unlock).await;
        let migrated = migrated?;
        unlocked?;
        Ok(migrated)
    }
}

/// Under the lock: what another process has migrated meanwhile is seen.
async fn upgrade(tx: &mut Tx<'_>) -> sqlx::Result<Migrated> {
    let from = Read.run(tx).await?.map_or(0, |schema| schema.version);
    let mut to = from;
    for (version, migration) in (1..).zip(tx.sql.migrations) {
        if version > from {
            tx.conn.execute(sqlx::raw_sql(*migration)).await?;
            to = version;
        }
    }
    Ok(Migrated { from, to })
}
