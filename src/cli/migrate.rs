//! `permitq migrate`: create or upgrade the schema.

use serde_json::json;

use super::fail::Failure;
use super::out::Out;
use super::{Global, place};

pub(super) async fn run(global: &Global, out: &Out) -> Result<(), Failure> {
    let (store, migrated) = place::migrate(global).await?;
    let database = store.database().masked();
    let (from, to) = (migrated.from, migrated.to);
    out.answer(&json!({"database": database, "from": from, "to": to}), || match from {
        0 => format!("{database}: created schema version {to}"),
        _ if from < to => format!("{database}: upgraded from schema version {from} to {to}"),
        _ => format!("{database}: schema version {to}, nothing to do"),
    })?;
    Ok(())
}
