//! The bookkeeping of every ended attempt, whoever ends it: log row, cooling row where the end is unclear, and the
//! task's next state, its end told to those who wait for it, in this order and in the caller's transaction. The caller has made sure that the attempts are
//! its to end, and frees the permits of the clear ends last.

use serde_json::json;
use sqlx::Executor;

use super::dependents::tell;
use super::rows::micros;
use super::unit::Tx;
use crate::model::{Ended, RunAt, Why};

/// Records these ends and answers how many of them free their permit.
///
/// # Errors
/// Where fewer tasks moved than ended: somebody changed a row that was locked for us, so nothing must be committed.
pub(super) async fn record(tx: &mut Tx<'_>, ended_by: &str, ended: &[&Ended]) -> sqlx::Result<i64> {
    if ended.is_empty() {
        return Ok(0);
    }
    let logged = log(tx, ended_by, ended, None).await?;
    if logged != ended.len() as u64 {
        return Err(moved_away(ended.len(), logged));
    }
    settle(tx, ended).await
}

/// Writes the log of those that still run under their `claim_no` (and for `owner`, where one is named), locks their tasks,
/// and answers how many there are.
pub(super) async fn log(
    tx: &mut Tx<'_>,
    ended_by: &str,
    ended: &[&Ended],
    owner: Option<&str>,
) -> sqlx::Result<u64> {
    let rows = encode(ended.iter().copied());
    Ok(sqlx::query(tx.sql.log)
        .bind(ended_by)
        .bind(rows)
        .bind(owner)
        .execute(&mut *tx.conn)
        .await?
        .rows_affected())
}

/// What follows for those that are in the log; answers how many of them free their permit.
///
/// # Errors
/// As [`record`].
pub(super) async fn settle(tx: &mut Tx<'_>, ended: &[&Ended]) -> sqlx::Result<i64> {
    if ended.is_empty() {
        return Ok(0);
    }
    let rows = encode(ended.iter().copied());
    let unclear = ended.iter().filter(|ended| ended.settlement.cooling.is_some()).count();
    if unclear > 0 {
        sqlx::query(tx.sql.cool).bind(&*rows).execute(&mut *tx.conn).await?;
    }
    let mut moved = move_on(tx, &rows, 0).await?;
    if moved < ended.len() as u64 {
        // They are locked and ours: for those that did not move, others wait.
        moved += move_on(tx, &rows, 1).await?;
        let finals = ended.iter().filter(|ended| ended.settlement.state.is_final());
        tell(tx, finals.map(|ended| ended.attempt.task).collect()).await?;
    }
    if moved != ended.len() as u64 {
        return Err(moved_away(ended.len(), moved));
    }
    if ended.iter().any(|ended| !ended.settlement.state.is_final()) {
        wake(tx).await?;
    }
    Ok(i64::try_from(ended.len() - unclear).unwrap_or(i64::MAX))
}

/// Moves those on for which nobody waits (0), or all (1).
async fn move_on(tx: &mut Tx<'_>, rows: &str, dependents: i64) -> sqlx::Result<u64> {
    let settled = sqlx::query(tx.sql.settle).bind(rows).bind(dependents).execute(&mut *tx.conn).await?;
    Ok(settled.rows_affected())
}

fn moved_away(ended: usize, moved: u64) -> sqlx::Error {
    sqlx::Error::Protocol(format!("{ended} attempts ended, but {moved} tasks moved"))
}

/// Tells idle consumers, where the database can, that a task may be claimed now or soon.
pub(super) async fn wake(tx: &mut Tx<'_>) -> sqlx::Result<()> {
    if !tx.sql.notify.is_empty() {
        tx.conn.execute(tx.sql.notify).await?;
    }
    Ok(())
}

/// Takes (+) or frees (-) permits: the last lock of a transaction.
pub(super) async fn permits(tx: &mut Tx<'_>, semaphore: &str, change: i64) -> sqlx::Result<()> {
    if change != 0 {
        sqlx::query(tx.sql.permits).bind(change).bind(semaphore).execute(&mut *tx.conn).await?;
    }
    Ok(())
}

/// A list for the statements, by ascending task: the one lock order.
pub(super) fn encode<'a>(ended: impl IntoIterator<Item = &'a Ended>) -> String {
    let mut ended: Vec<_> = ended.into_iter().collect();
    ended.sort_unstable_by_key(|ended| ended.attempt.task);
    json!(ended.into_iter().map(row).collect::<Vec<_>>()).to_string()
}

fn row(ended: &Ended) -> serde_json::Value {
    let settlement = &ended.settlement;
    let (delay, after_cooling) = match settlement.run_at {
        None => (None, 0),
        Some(RunAt::Now | RunAt::At(_)) => (Some(0), 0),
        Some(RunAt::In(delay)) => (Some(micros(delay)), 0),
        Some(RunAt::AfterCooling(delay)) => (Some(micros(delay)), 1),
    };
    json!({
        "id": ended.attempt.task,
        "claim_no": ended.attempt.claim_no,
        "called_after": ended.called_after.map(micros),
        "outcome": settlement.outcome,
        "status": ended.status,
        "why": settlement.cooling.map(Why::as_str),
        "state": settlement.state.as_str(),
        "attempts": settlement.attempts,
        "delay": delay,
        "after_cooling": after_cooling,
        "result": settlement.result.as_deref().map(clean),
        "error": settlement.error.as_deref().map(clean),
    })
}

/// A text that every database can keep: none takes a NUL, and a finish must never fail for what the downstream said.
pub(super) fn clean(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}
