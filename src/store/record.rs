//! The bookkeeping of every ended attempt, whoever ends it: log row, cooling row where the end is unclear, and the
//! task's next state, in this order and in the caller's transaction. The caller has made sure that the attempts are
//! its to end, and frees the permits of the clear ends last.

use serde_json::json;
use sqlx::Executor;

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
    let rows = json!(ended.iter().map(|ended| encode(ended)).collect::<Vec<_>>()).to_string();
    sqlx::query(tx.sql.log).bind(ended_by).bind(&*rows).execute(&mut *tx.conn).await?;
    let unclear = ended.iter().filter(|ended| ended.settlement.cooling.is_some()).count();
    if unclear > 0 {
        sqlx::query(tx.sql.cool).bind(&*rows).execute(&mut *tx.conn).await?;
    }
    let moved = sqlx::query(tx.sql.settle).bind(&*rows).execute(&mut *tx.conn).await?.rows_affected();
    if moved != ended.len() as u64 {
        return Err(sqlx::Error::Protocol(format!(
            "{} attempts ended, but {moved} tasks moved",
            ended.len()
        )));
    }
    if ended.iter().any(|ended| !ended.settlement.state.is_final()) {
        wake(tx).await?;
    }
    Ok(i64::try_from(ended.len() - unclear).unwrap_or(i64::MAX))
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

fn encode(ended: &Ended) -> serde_json::Value {
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
