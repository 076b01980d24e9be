//! `permitq task show|explain|retry|cancel|accept ID`.

use clap::{Args, Subcommand};
use serde_json::json;

use super::fail::Failure;
use super::out::Out;
use super::who::who;
use super::{Global, explain, place, retry, show};
use crate::model::State;
use crate::store::{Accepted, Cancelled, Store};

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Show a task, what happened to it, and why it is not running
    Show(Which),
    /// Say why a task does not run yet, or who runs it, or how it came to its end
    Explain(Which),
    /// Make failed or cancelled tasks run again, with all their attempts: one, or all that a filter finds
    Retry(retry::Options),
    /// Call a task off, also while it runs
    Cancel(Which),
    /// Take the late answer of a lost attempt as the task's result, instead of doing the work again
    Accept(Which),
}

#[derive(Args, Debug)]
pub(super) struct Which {
    /// Its id
    id: i64,
}

#[derive(Args, Debug)]
pub(super) struct Again {
    /// Its id
    id: i64,
    /// Also what failed because it did: it waits for it again
    #[arg(long)]
    with_dependents: bool,
}

pub(super) async fn run(command: Command, global: &Global, out: &Out) -> Result<(), Failure> {
    let mut store = place::open(global).await?;
    match command {
        Command::Show(Which { id }) => show::run(id, &mut store, out).await,
        Command::Explain(Which { id }) => explain::run(id, &mut store, out).await,
        Command::Retry(options) => retry::run(options, &mut store, out).await,
        Command::Cancel(Which { id }) => cancel(id, &mut store, out).await,
        Command::Accept(Which { id }) => accept(id, &mut store, out).await,
    }
}

/// There is no such task.
pub(super) fn missing(id: i64, store: &Store) -> Failure {
    let place = store.database().masked();
    Failure::Failed(format!("there is no task {id} in {place}; `permitq tasks` lists them"))
}

async fn cancel(id: i64, store: &mut Store, out: &Out) -> Result<(), Failure> {
    let cooling = match store.cancel(id, &who()).await? {
        Cancelled::Missing => return Err(missing(id, store)),
        Cancelled::Finished(State::Cancelled) => {
            out.note(&format!("task {id} was cancelled before"));
            false
        }
        Cancelled::Finished(state) => {
            return Err(Failure::Failed(format!("task {id} is {state} already: nothing is left to cancel")));
        }
        Cancelled::Done => false,
        Cancelled::Cooling => true,
    };
    let answer = json!({"id": id, "state": State::Cancelled.as_str(), "cooling": cooling});
    out.answer(&answer, || {
        if cooling {
            format!(
                "task {id} is cancelled; its call may still run downstream, so its permit cools until that must be \
                 over (see `permitq permits`)"
            )
        } else {
            format!("task {id} is cancelled")
        }
    })?;
    Ok(())
}

async fn accept(id: i64, store: &mut Store, out: &Out) -> Result<(), Failure> {
    let claim_no = match store.accept(id, &who()).await? {
        Accepted::Missing => return Err(missing(id, store)),
        Accepted::NotWaiting(state) => {
            return Err(Failure::Failed(format!(
                "task {id} is {state}: a late answer can be accepted only while a task is scheduled, pending or failed"
            )));
        }
        Accepted::NoEvidence => {
            return Err(Failure::Failed(format!(
                "task {id} has no late answer that says it is done; `permitq task show {id}` shows what there is"
            )));
        }
        Accepted::Done(claim_no) => claim_no,
    };
    let answer = json!({"id": id, "state": State::Succeeded.as_str(), "claim_no": claim_no});
    out.answer(&answer, || format!("task {id} succeeded, with the late answer to attempt {claim_no}"))?;
    Ok(())
}
