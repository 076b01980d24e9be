//! Putting tasks in: one or many, idempotent by business key.

use std::collections::{HashMap, HashSet};

use serde_json::json;
use sqlx::any::AnyRow;
use sqlx::{Executor, Row};

use super::rows::micros;
use super::unit::{Tx, Unit};
use super::{Result, Store};
use crate::model::{NewTask, OnAbandon, RunAt};

/// What became of one task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Enqueued {
    /// The new task, or the one that has this business key already.
    pub id: i64,
    /// Whether it is new.
    pub created: bool,
}

impl Store {
    /// Enqueues all of these tasks or, on an error, none; answers in their order.
    ///
    /// Check each with [`NewTask::check`] first: the database's own words are less kind. A call that ends
    /// [unknown](super::Error::is_unknown) must not be repeated unless every task has a business key.
    pub async fn enqueue(&mut self, tasks: &[NewTask]) -> Result<Vec<Enqueued>> {
        if tasks.is_empty() {
            return Ok(Vec::new());
        }
        self.run(&Enqueue { tasks }).await
    }
}

pub(super) struct Enqueue<'a> {
    pub(super) tasks: &'a [NewTask],
}

impl Unit for Enqueue<'_> {
    type Answer = Vec<Enqueued>;
    const NAME: &'static str = "enqueue";

    async fn run(&self, tx: &mut Tx<'_>) -> sqlx::Result<Vec<Enqueued>> {
        let rows: Vec<_> = self.tasks.iter().map(encode).collect();
        let rows = insert(tx, json!(rows).to_string()).await?;
        let mut inserted: Vec<(i64, Option<String>)> =
            rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect::<sqlx::Result<_>>()?;
        // Ids ascend in the order of insertion, so sorting pairs those without a key with their tasks.
        inserted.sort_unstable();
        let mut created: HashSet<i64> = inserted.iter().map(|(id, _)| *id).collect();
        let mut by_key: HashMap<String, i64> = HashMap::new();
        let mut plain = Vec::new();
        for (id, key) in inserted {
            match key {
                Some(key) => drop(by_key.insert(key, id)),
                None => plain.push(id),
            }
        }
        let keys = self.tasks.iter().filter_map(|task| task.biz_key.as_ref());
        let existing: Vec<_> = keys.filter(|key| !by_key.contains_key(*key)).collect();
        if !existing.is_empty() {
            for row in
                sqlx::query(tx.sql.keyed).bind(json!(existing).to_string()).fetch_all(&mut *tx.conn).await?
            {
                by_key.insert(row.try_get(1)?, row.try_get(0)?);
            }
        }

        let mut plain = plain.into_iter();
        self.tasks
            .iter()
            .map(|task| {
                let id = match &task.biz_key {
                    Some(key) => by_key.get(key).copied(),
                    None => plain.next(),
                };
                // Its row was there when we inserted, and went away before we read it: a conflict.
                let id = id.ok_or(sqlx::Error::RowNotFound)?;
                // The first task of a key within one batch is the one that created it.
                Ok(Enqueued { id, created: created.remove(&id) })
            })
            .collect()
    }
}

/// Inserts these tasks and answers `(id, biz_key)` of those that went in.
async fn insert(tx: &mut Tx<'_>, rows: String) -> sqlx::Result<Vec<AnyRow>> {
    let sql = tx.sql;
    let insert = sqlx::query(sql.enqueue).bind(rows);
    if sql.enqueued.is_empty() {
        return insert.fetch_all(&mut *tx.conn).await;
    }
    // No RETURNING there: a trigger collects the ids in a variable of the session.
    tx.conn.execute(sql.collect).await?;
    insert.execute(&mut *tx.conn).await?;
    let inserted = sqlx::query(sql.enqueued).fetch_all(&mut *tx.conn).await?;
    tx.conn.execute(sql.collected).await?;
    Ok(inserted)
}

fn encode(task: &NewTask) -> serde_json::Value {
    let (at, delay) = match task.run_at {
        RunAt::Now => (None, 0),
        RunAt::In(delay) | RunAt::AfterCooling(delay) => (None, micros(delay)),
        RunAt::At(instant) => (Some(instant.as_microsecond()), 0),
    };
    let (expires_at, expires_in) = match task.expires {
        None => (None, None),
        Some(RunAt::Now) => (None, Some(0)),
        Some(RunAt::In(delay) | RunAt::AfterCooling(delay)) => (None, Some(micros(delay))),
        Some(RunAt::At(instant)) => (Some(instant.as_microsecond()), None),
    };
    json!({
        "kind": task.kind,
        "semaphore": task.semaphore.as_deref().unwrap_or("default"),
        "biz_key": task.biz_key,
        "payload": if task.payload.is_empty() { "{}" } else { &task.payload },
        "priority": task.priority,
        "at": at,
        "delay": delay,
        "timeout": task.timeout.map(|limit| limit.as_secs_f64()),
        "max_attempts": task.max_attempts,
        "on_abandon": task.on_abandon.map(OnAbandon::as_str),
        "source": task.source,
        "job": task.job,
        "expires_at": expires_at,
        "expires_in": expires_in,
    })
}
