//! Ends are told to those who wait for them.
//!
//! ```text
//!  a task ends (its row is locked) ─► its open edges; who waits is locked, ids ascending
//!      succeeded, or any end will do ─► waiting_for - 1; at 0 it may run
//!      else                          ─► it fails, and its own dependents are next
//!  edges closed; parents of whom all edges are: dependents = 0
//! ```
//!
//! Whoever adds an edge sets `dependents` under the parent's lock, so an end either sees the edge or is seen by who adds it. A
//! parent counts down `waiting_for` under the child's lock, so of two that end at once the second sees the first.
//!
//! A transaction tells a bounded number. What is left shows by itself, as an end with `dependents = 1`: so does a parent that
//! was ended by other means than ours. Upkeep tells those, bounded again, until none is left.

use std::collections::BTreeMap;

use serde_json::json;
use sqlx::Row;
use sqlx::any::AnyRow;

use super::record::wake;
use super::rows::Read;
use super::unit::{How, Tx, Unit};
use super::{Result, Store};
use crate::model::{Relative, State};

/// Statements' worth of edges per transaction, and edges per statement. Each round tells one level of dependents, or part of
/// one.
const ROUNDS: usize = 20;
const EDGES: usize = 1000;

/// So many parents and children are shown.
const SHOWN: i64 = 100;

/// The start of a dependent's error; `revivable.sql` knows it, too.
const UPSTREAM: &str = "upstream failed: ";

/// A blocked task that nothing will let run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stray {
    /// It.
    pub task: i64,
    waiting_for: i64,
    parents: i64,
    gone: Option<i64>,
}

impl Stray {
    /// What is wrong with it.
    pub(super) fn words(&self) -> String {
        let Self { task, waiting_for, parents, gone } = self;
        match gone {
            Some(gone) => format!("task {task} waits for task {gone}, which is gone or over"),
            None => format!("task {task} waits for {waiting_for} tasks, but {parents} are there"),
        }
    }
}

impl Store {
    /// Tells ends that are not told to all dependents yet, of at most `limit` tasks; answers of how many.
    pub async fn tell_dependents(&mut self, limit: i64) -> Result<usize> {
        self.run(&Untold { limit }).await
    }

    /// Blocked tasks that nothing will let run, at most `limit`.
    pub async fn strays(&mut self, limit: i64) -> Result<Vec<Stray>> {
        self.run(&Strays { limit }).await
    }

    /// Lets it run, fail or wait, as its parents are.
    pub async fn mend(&mut self, stray: &Stray) -> Result<()> {
        self.run(&Mend { stray }).await
    }

    /// The tasks that this one waits for or did, and those that wait or did for it; not all where they are many.
    pub async fn family(&mut self, id: i64) -> Result<(Vec<Relative>, Vec<Relative>)> {
        self.run(&Family { id }).await
    }

    /// Blocks anew what failed because these tasks did, and whatever failed for that; answers how many.
    pub(super) async fn revive_dependents(&mut self, id: i64) -> Result<usize> {
        let (mut level, mut count) = (vec![id], 0);
        while !level.is_empty() {
            let mut next = Vec::new();
            for parents in level.chunks(EDGES) {
                next.extend(self.run(&Revive { parents }).await?);
            }
            count += next.len();
            level = next;
        }
        Ok(count)
    }
}

fn ids(rows: &[AnyRow]) -> sqlx::Result<Vec<i64>> {
    rows.iter().map(|row| row.int("id")).collect()
}

/// Locks these tasks, which must ascend, and answers their states.
pub(super) async fn lock_tasks(tx: &mut Tx<'_>, ids: &[i64]) -> sqlx::Result<BTreeMap<i64, State>> {
    let rows = sqlx::query(tx.sql.lock_tasks).bind(json!(ids).to_string()).fetch_all(&mut *tx.conn).await?;
    rows.iter().map(|row| Ok((row.int("id")?, row.word("state")?))).collect()
}

/// Whoever ends one of these tasks, locked by the caller, has to tell somebody.
pub(super) async fn expect(tx: &mut Tx<'_>, ids: &[i64]) -> sqlx::Result<()> {
    sqlx::query(tx.sql.expect).bind(json!(ids).to_string()).execute(&mut *tx.conn).await?;
    Ok(())
}

/// A blocked task waits for as many parents as it has open edges.
pub(super) async fn recount(tx: &mut Tx<'_>, id: i64) -> sqlx::Result<()> {
    sqlx::query(tx.sql.recount).bind(id).bind(id).execute(&mut *tx.conn).await?;
    Ok(())
}

/// Tells the ends of these tasks, locked by the caller or gone, to those who wait for them.
pub(super) async fn tell(tx: &mut Tx<'_>, mut ended: Vec<i64>) -> sqlx::Result<()> {
    let mut released = false;
    for _ in 0..ROUNDS {
        if ended.is_empty() {
            break;
        }
        ended.sort_unstable();
        let list = json!(ended).to_string();
        let edges = sqlx::query(tx.sql.waiters)
            .bind(&*list)
            .bind(i64::try_from(EDGES).unwrap_or(i64::MAX))
            .fetch_all(&mut *tx.conn)
            .await?;
        let failed = tell_some(tx, &edges, &mut released).await?;
        if edges.len() < EDGES {
            sqlx::query(tx.sql.told).bind(&*list).execute(&mut *tx.conn).await?;
            ended = failed;
        } else {
            // Those who failed meanwhile have not told anybody, which shows.
            ended.extend(failed);
        }
    }
    if released {
        wake(tx).await?;
    }
    Ok(())
}

/// Closes these edges; answers which tasks have failed and have dependents.
async fn tell_some(tx: &mut Tx<'_>, edges: &[AnyRow], released: &mut bool) -> sqlx::Result<Vec<i64>> {
    if edges.is_empty() {
        return Ok(Vec::new());
    }
    let mut news: BTreeMap<i64, (i64, Option<String>)> = BTreeMap::new();
    let (mut closed, mut failed) = (Vec::with_capacity(edges.len()), Vec::new());
    for edge in edges {
        let (task, parent) = (edge.int("task")?, edge.int("parent")?);
        closed.push(json!({"task": task, "parent": parent}));
        if edge.word::<State>("state")? != State::Blocked {
            continue;
        }
        let (ended, error) = news.entry(task).or_default();
        *ended += 1;
        let state: Option<State> = edge.word_or_null("parent_state")?;
        if state == Some(State::Succeeded) || edge.int("any_end")? == 1 || error.is_some() {
            continue;
        }
        *error = Some(match state {
            Some(State::Cancelled) => format!("{UPSTREAM}task {parent} was cancelled"),
            Some(_) => format!("{UPSTREAM}task {parent} failed"),
            None => format!("{UPSTREAM}task {parent} is not there any more"),
        });
        if edge.int("dependents")? == 1 {
            failed.push(task);
        }
    }
    if !news.is_empty() {
        *released |= news.values().any(|(_, error)| error.is_none());
        let news: Vec<_> = news
            .into_iter()
            .map(|(id, (ended, error))| json!({"id": id, "ended": ended, "error": error}))
            .collect();
        sqlx::query(tx.sql.tell).bind(json!(news).to_string()).execute(&mut *tx.conn).await?;
    }
    sqlx::query(tx.sql.close).bind(json!(closed).to_string()).execute(&mut *tx.conn).await?;
    Ok(failed)
}

struct Untold {
    limit: i64,
}

impl Unit for Untold {
    type Answer = usize;
    const NAME: &'static str = "tell dependents";

    async fn run(&self, tx: &mut Tx<'_>) -> sqlx::Result<usize> {
        let ended = ids(&sqlx::query(tx.sql.untold).bind(self.limit).fetch_all(&mut *tx.conn).await?)?;
        let count = ended.len();
        tell(tx, ended).await?;
        Ok(count)
    }
}

struct Strays {
    limit: i64,
}

impl Unit for Strays {
    type Answer = Vec<Stray>;
    const NAME: &'static str = "look for strays";
    const HOW: How = How::Reading;

    async fn run(&self, tx: &mut Tx<'_>) -> sqlx::Result<Vec<Stray>> {
        let rows = sqlx::query(tx.sql.strays).bind(self.limit).fetch_all(&mut *tx.conn).await?;
        let stray = |row: &AnyRow| {
            Ok(Stray {
                task: row.int("id")?,
                waiting_for: row.int("waiting_for")?,
                parents: row.int("parents")?,
                gone: row.int_or_null("gone")?,
            })
        };
        rows.iter().map(stray).collect()
    }
}

struct Mend<'a> {
    stray: &'a Stray,
}

impl Unit for Mend<'_> {
    type Answer = ();
    const NAME: &'static str = "mend a stray";

    async fn run(&self, tx: &mut Tx<'_>) -> sqlx::Result<()> {
        let task = self.stray.task;
        let mut all = parents(tx, &[task]).await?;
        lock_tasks(tx, &all).await?;
        all.retain(|&parent| parent != task);
        lock_tasks(tx, &[task]).await?;
        recount(tx, task).await?;
        tell(tx, all).await?;
        wake(tx).await
    }
}

/// All that these tasks wait for, or did, ascending.
async fn parents(tx: &mut Tx<'_>, tasks: &[i64]) -> sqlx::Result<Vec<i64>> {
    let list = json!(tasks).to_string();
    let mut parents = ids(&sqlx::query(tx.sql.parents).bind(list).fetch_all(&mut *tx.conn).await?)?;
    parents.sort_unstable();
    Ok(parents)
}

struct Revive<'a> {
    parents: &'a [i64],
}

impl Unit for Revive<'_> {
    type Answer = Vec<i64>;
    const NAME: &'static str = "revive dependents";

    /// Found without a lock; then all their parents, and they themselves, are locked, and looked at again.
    async fn run(&self, tx: &mut Tx<'_>) -> sqlx::Result<Vec<i64>> {
        let list = json!(self.parents).to_string();
        let found = ids(&sqlx::query(tx.sql.revivable).bind(&*list).fetch_all(&mut *tx.conn).await?)?;
        if found.is_empty() {
            return Ok(found);
        }
        let all = parents(tx, &found).await?;
        lock_tasks(tx, &all).await?;
        lock_tasks(tx, &found).await?;
        let mut still = ids(&sqlx::query(tx.sql.revivable).bind(&*list).fetch_all(&mut *tx.conn).await?)?;
        still.retain(|id| found.contains(id));
        let list = json!(still).to_string();
        sqlx::query(tx.sql.open_edges).bind(&*list).execute(&mut *tx.conn).await?;
        sqlx::query(tx.sql.block).bind(&*list).execute(&mut *tx.conn).await?;
        expect(tx, &all).await?;
        Ok(still)
    }
}

struct Family {
    id: i64,
}

impl Unit for Family {
    type Answer = (Vec<Relative>, Vec<Relative>);
    const NAME: &'static str = "read a family";
    const HOW: How = How::Reading;

    async fn run(&self, tx: &mut Tx<'_>) -> sqlx::Result<Self::Answer> {
        let rows = sqlx::query(tx.sql.family)
            .bind(self.id)
            .bind(SHOWN)
            .bind(self.id)
            .bind(SHOWN)
            .fetch_all(&mut *tx.conn)
            .await?;
        let (mut parents, mut children) = (Vec::new(), Vec::new());
        for row in &rows {
            let task = match row.word_or_null("state")? {
                Some(state) => Some((row.text("kind")?, state, row.text_or_null("biz_key")?)),
                None => None,
            };
            let relative = Relative {
                id: row.int("id")?,
                task,
                any_end: row.int("any_end")? == 1,
                open: row.int("open")? == 1,
            };
            let role: String = row.try_get("role")?;
            if role == "parent" { parents.push(relative) } else { children.push(relative) }
        }
        Ok((parents, children))
    }
}
