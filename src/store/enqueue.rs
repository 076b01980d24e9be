//! Putting tasks in: one or many, idempotent by business key.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use serde_json::json;
use sqlx::any::AnyRow;
use sqlx::{Executor, Row};

use super::dependents::{expect, lock_tasks, recount, tell};
use super::rows::micros;
use super::unit::{Tx, Unit};
use super::{Result, Store};
use crate::model::{NewTask, OnAbandon, Parent, RunAt, State};

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
        check_order(tasks)?;
        self.run(&Enqueue { tasks }).await
    }
}

impl Store {
    /// Which of these ids and business keys are there.
    pub async fn known(&mut self, ids: &[i64], keys: &[String]) -> Result<(Vec<i64>, Vec<String>)> {
        let mut known = (Vec::new(), Vec::new());
        for ids in ids.chunks(SOME) {
            known.0.extend(self.run(&KnownIds { ids }).await?);
        }
        for keys in keys.chunks(SOME) {
            known.1.extend(self.run(&KnownKeys { keys }).await?);
        }
        Ok(known)
    }
}

/// So many are looked up at once.
const SOME: usize = 1000;

struct KnownIds<'a> {
    ids: &'a [i64],
}

impl Unit for KnownIds<'_> {
    type Answer = Vec<i64>;
    const NAME: &'static str = "look up tasks";

    async fn run(&self, tx: &mut Tx<'_>) -> sqlx::Result<Vec<i64>> {
        Ok(lock_tasks(tx, self.ids).await?.into_keys().collect())
    }
}

struct KnownKeys<'a> {
    keys: &'a [String],
}

impl Unit for KnownKeys<'_> {
    type Answer = Vec<String>;
    const NAME: &'static str = "look up keys";

    async fn run(&self, tx: &mut Tx<'_>) -> sqlx::Result<Vec<String>> {
        let rows =
            sqlx::query(tx.sql.keyed).bind(json!(self.keys).to_string()).fetch_all(&mut *tx.conn).await?;
        rows.iter().map(|row| row.try_get(1)).collect()
    }
}

pub(super) struct Enqueue<'a> {
    pub(super) tasks: &'a [NewTask],
}

impl Unit for Enqueue<'_> {
    type Answer = Vec<Enqueued>;
    const NAME: &'static str = "enqueue";

    async fn run(&self, tx: &mut Tx<'_>) -> sqlx::Result<Vec<Enqueued>> {
        if self.tasks.iter().all(|task| task.after.is_empty()) {
            return self.insert(tx).await;
        }
        let mut parents = self.others(tx).await?;
        let enqueued = self.insert(tx).await?;
        self.link(tx, &enqueued, &mut parents).await?;
        Ok(enqueued)
    }
}

/// Tasks that are there already and are waited for.
struct Others {
    keys: HashMap<String, i64>,
    states: BTreeMap<i64, State>,
}

impl Enqueue<'_> {
    /// Locks what is there already and will be waited for, before anything is written.
    async fn others(&self, tx: &mut Tx<'_>) -> sqlx::Result<Others> {
        let all = || self.tasks.iter().flat_map(|task| &task.after).map(|after| &after.parent);
        let wanted: BTreeSet<_> =
            all().filter_map(|parent| if let Parent::Key(key) = parent { Some(key) } else { None }).collect();
        let mut keys = HashMap::new();
        if !wanted.is_empty() {
            let list = json!(wanted).to_string();
            for row in sqlx::query(tx.sql.keyed).bind(list).fetch_all(&mut *tx.conn).await? {
                keys.insert(row.try_get(1)?, row.try_get(0)?);
            }
        }
        if let Some(key) = wanted.iter().find(|key| !keys.contains_key(**key)) {
            return Err(no_parent(&format!("with the business key {key:?}")));
        }
        let mut ids: BTreeSet<i64> = keys.values().copied().collect();
        ids.extend(all().filter_map(|parent| if let Parent::Task(id) = parent { Some(*id) } else { None }));
        let ids: Vec<_> = ids.into_iter().collect();
        let states = if ids.is_empty() { BTreeMap::new() } else { lock_tasks(tx, &ids).await? };
        if let Some(id) = ids.iter().find(|id| !states.contains_key(id)) {
            return Err(no_parent(&id.to_string()));
        }
        Ok(Others { keys, states })
    }

    /// Adds the edges of what is new, and tells it the ends that are there already.
    async fn link(&self, tx: &mut Tx<'_>, enqueued: &[Enqueued], others: &mut Others) -> sqlx::Result<()> {
        let mut edges: BTreeMap<(i64, i64), i64> = BTreeMap::new();
        let mut same = Vec::new();
        for (task, new) in self.tasks.iter().zip(enqueued).filter(|(_, new)| new.created) {
            let before = edges.len();
            for after in &task.after {
                let parent = match &after.parent {
                    Parent::Task(id) => *id,
                    Parent::Key(key) => others.keys.get(key).copied().ok_or(sqlx::Error::RowNotFound)?,
                    Parent::Nth(n) => enqueued.get(*n).ok_or(sqlx::Error::RowNotFound)?.id,
                };
                // Of two edges to one parent the stricter counts.
                let any_end = edges.entry((new.id, parent)).or_insert(1);
                *any_end = (*any_end).min(i64::from(after.any_end));
            }
            if edges.len() - before < task.after.len() {
                same.push(new.id);
            }
        }
        let parents: BTreeSet<i64> = edges.keys().map(|(_, parent)| *parent).collect();
        let inner: Vec<_> = parents.iter().copied().filter(|id| !others.states.contains_key(id)).collect();
        if !inner.is_empty() {
            others.states.extend(lock_tasks(tx, &inner).await?);
        }
        // One that had the key of a task of this call, and went away since: a conflict.
        if !parents.iter().all(|id| others.states.contains_key(id)) {
            return Err(sqlx::Error::RowNotFound);
        }
        if parents.is_empty() {
            return Ok(());
        }
        let edges: Vec<_> = edges
            .into_iter()
            .map(|((task, parent), any_end)| json!({"task": task, "parent": parent, "any_end": any_end}))
            .collect();
        expect(tx, &parents.iter().copied().collect::<Vec<_>>()).await?;
        sqlx::query(tx.sql.depend).bind(json!(edges).to_string()).execute(&mut *tx.conn).await?;
        for id in same {
            recount(tx, id).await?;
        }
        let over =
            parents.into_iter().filter(|id| others.states.get(id).is_some_and(|state| state.is_final()));
        tell(tx, over.collect()).await
    }

    async fn insert(&self, tx: &mut Tx<'_>) -> sqlx::Result<Vec<Enqueued>> {
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

/// Said before anything is written.
fn no_parent(which: &str) -> sqlx::Error {
    sqlx::Error::InvalidArgument(format!("there is no task {which} to wait for"))
}

/// Whether each task stands behind those of its call that it waits for.
fn check_order(tasks: &[NewTask]) -> Result<()> {
    for (n, task) in tasks.iter().enumerate() {
        let late = |parent: &Parent| matches!(parent, Parent::Nth(other) if *other >= n);
        if task.after.iter().any(|after| late(&after.parent)) {
            let reason = format!("task {n} of the call waits for one that does not stand before it");
            return Err(super::Error::Refused { unit: Enqueue::NAME, reason });
        }
    }
    Ok(())
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
        "waiting_for": task.after.len(),
    })
}
