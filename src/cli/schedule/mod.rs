//! `permitq schedule …`: jobs and when they are due.

mod add;
mod show;

use clap::{Args, Subcommand};
use serde_json::json;

use super::fail::Failure;
use super::out::Out;
use super::who::who;
use super::{Global, place};
use crate::model::schedule::Job;
use crate::store::{Enqueued, RanByHand, Store};

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Add a trigger, and its job where that is new
    Add(Box<add::Options>),
    /// List jobs, their triggers, and when they are due next
    List,
    /// Show a job, its triggers, and what became of its instants
    Show(show::Options),
    /// Show when a job, or a trigger with these options, would be due
    Preview(Box<add::PreviewOptions>),
    /// Pause a job's triggers, or one of them
    Pause(Which),
    /// Let paused triggers go on, with their next instants
    Resume(Which),
    /// Run a job now
    Run(RunOptions),
    /// Remove a job with its triggers, or one trigger; runs under way go on
    Remove(Which),
}

#[derive(Args, Debug)]
pub(super) struct Which {
    /// The job
    name: String,
    /// One of its triggers alone
    #[arg(long, value_name = "ID")]
    trigger: Option<i64>,
}

#[derive(Args, Debug)]
pub(super) struct RunOptions {
    /// The job
    name: String,
    /// Also beside a run that is not over
    #[arg(long)]
    force: bool,
}

pub(super) async fn run(command: Command, global: &Global, out: &Out) -> Result<(), Failure> {
    match command {
        Command::Add(options) => add::run(&options, global, out).await,
        Command::Preview(options) => add::preview(&options, global, out).await,
        Command::List => show::list(&mut place::open(global).await?, out).await,
        Command::Show(options) => show::run(&options, &mut place::open(global).await?, out).await,
        Command::Pause(which) => switch(&which, true, &mut place::open(global).await?, out).await,
        Command::Resume(which) => switch(&which, false, &mut place::open(global).await?, out).await,
        Command::Run(options) => run_now(&options, &mut place::open(global).await?, out).await,
        Command::Remove(which) => remove(&which, &mut place::open(global).await?, out).await,
    }
}

/// The job of this name, or an error that says how to find the others.
async fn known(name: &str, store: &mut Store) -> Result<Job, Failure> {
    let place = store.database().masked();
    let job = store.jobs(Some(name)).await?.into_iter().next();
    job.ok_or_else(|| {
        Failure::Failed(format!("there is no job {name:?} in {place}; `permitq schedule list` lists them"))
    })
}

/// The same, and that the trigger is one of its own.
async fn known_trigger(which: &Which, store: &mut Store) -> Result<(), Failure> {
    let Which { name, trigger } = which;
    known(name, store).await?;
    let triggers = store.triggers(Some(name)).await?;
    match trigger {
        Some(id) if !triggers.iter().any(|one| one.id == *id) => Err(Failure::Failed(format!(
            "job {name:?} has no trigger {id}; `permitq schedule show {name}` shows those it has"
        ))),
        _ => Ok(()),
    }
}

fn list(ids: &[i64]) -> String {
    ids.iter().map(i64::to_string).collect::<Vec<_>>().join(", ")
}

async fn switch(which: &Which, pause: bool, store: &mut Store, out: &Out) -> Result<(), Failure> {
    known_trigger(which, store).await?;
    let Which { name, trigger } = which;
    let (switched, done) = if pause {
        (store.pause(name, *trigger, &who()).await?, "paused")
    } else {
        (store.resume(name, *trigger, &who()).await?, "resumed")
    };
    out.answer(&json!({"job": name, "triggers": switched}), || match &*switched {
        [] => format!("{name}: there was nothing to be {done}"),
        ids => format!("{name}: {done} trigger {}", list(ids)),
    })?;
    Ok(())
}

async fn run_now(options: &RunOptions, store: &mut Store, out: &Out) -> Result<(), Failure> {
    let RunOptions { name, force } = options;
    let job = known(name, store).await?;
    match store.run_by_hand(name, *force, &who()).await? {
        RanByHand::NoJob => Err(Failure::Failed(format!("job {name:?} has just been removed"))),
        RanByHand::Running(task) => Err(Failure::Failed(format!(
            "already running: task {task}; `permitq task show {task}` shows it, --force runs {name} beside it"
        ))),
        RanByHand::Task(Enqueued { id, created }) => {
            if !created {
                let template = job.job.key_template;
                out.note(&format!("a task of its key ({template}) is already there: task {id}"));
            }
            out.answer(&json!({"job": name, "task": id, "created": created}), || id.to_string())?;
            Ok(())
        }
    }
}

async fn remove(which: &Which, store: &mut Store, out: &Out) -> Result<(), Failure> {
    known_trigger(which, store).await?;
    let Which { name, trigger } = which;
    let removed = store.remove_schedule(name, *trigger, &who()).await?;
    out.answer(&json!({"job": name, "trigger": trigger, "removed": removed}), || match trigger {
        Some(id) => format!("{name}: removed trigger {id}"),
        None => format!("removed {name}"),
    })?;
    Ok(())
}
