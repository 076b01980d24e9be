//! `permitq task retry`: one task, or all that a filter finds, after a look at them.

use std::io::{BufRead, IsTerminal, Write};

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use jiff::Timestamp;
use serde_json::json;

use super::fail::Failure;
use super::out::{Out, brief, table};
use super::shape::TaskShape;
use super::who::who;
use super::{task, when};
use crate::model::{State, Task};
use crate::store::{Retried, Retryable, Store};

/// So many of those found are shown.
const SHOWN: usize = 10;

#[derive(Args, Debug)]
pub(super) struct Options {
    /// Its id; or, instead, what to look for
    #[arg(required_unless_present_any = ["state", "kind", "error", "since", "until"])]
    id: Option<i64>,
    #[command(flatten)]
    filter: Filter,
    /// The tasks that failed because it did wait for it again
    #[arg(long, requires = "id")]
    with_dependents: bool,
    /// Do not ask: for scripts
    #[arg(long, conflicts_with = "id")]
    yes: bool,
}

#[derive(Args, Debug)]
#[group(multiple = true, conflicts_with = "id")]
struct Filter {
    /// All that are failed, or cancelled; both unless one is named
    #[arg(long, value_parser = finished())]
    state: Option<State>,
    /// Of this kind
    #[arg(long)]
    kind: Option<String>,
    /// Whose error has this text in it
    #[arg(long, value_name = "TEXT")]
    error: Option<String>,
    /// That ended at this instant or later, such as 2026-12-01T09:00:00Z
    #[arg(long, value_name = "TIME", value_parser = when::parse)]
    since: Option<Timestamp>,
    /// That ended before this instant
    #[arg(long, value_name = "TIME", value_parser = when::parse)]
    until: Option<Timestamp>,
    /// At most so many, oldest first
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(i64).range(1..=100_000))]
    limit: i64,
}

fn finished() -> impl TypedValueParser<Value = State> {
    PossibleValuesParser::new([State::Failed, State::Cancelled].map(State::as_str))
        .try_map(|word| word.parse::<State>())
}

pub(super) async fn run(options: Options, store: &mut Store, out: &Out) -> Result<(), Failure> {
    match options.id {
        Some(id) => one(id, options.with_dependents, store, out).await,
        None => many(options.filter, options.yes, store, out).await,
    }
}

async fn one(id: i64, with_dependents: bool, store: &mut Store, out: &Out) -> Result<(), Failure> {
    let (retried, dependents) = if with_dependents {
        let (retried, dependents) = store.retry_with_dependents(id, &who()).await?;
        (retried, Some(dependents))
    } else {
        (store.retry(id, &who()).await?, None)
    };
    let (state, run_at, words) = match retried {
        Retried::Missing => return Err(task::missing(id, store)),
        Retried::NotFinished(state) if dependents.is_none_or(|count| count == 0) => {
            return Err(Failure::Failed(format!(
                "task {id} is {state}: only a failed or cancelled task can be retried"
            )));
        }
        Retried::NotFinished(state) => (state, None, format!("task {id} is {state} already")),
        Retried::Done => (State::Pending, None, format!("task {id} is pending again")),
        Retried::AfterCooling(at) => {
            let now = when::now(store).await?;
            let state = if at > now { State::Scheduled } else { State::Pending };
            let at_words = when::both(now, at);
            let words =
                format!("task {id} runs again {at_words}, when the call that was given up must be over");
            (state, Some(at), words)
        }
    };
    if dependents.is_none() {
        let (_, children) = store.family(id).await?;
        let failed = children.iter().filter(|child| child.failed_upstream()).count();
        if failed > 0 {
            out.note(&format!(
                "{failed} tasks that waited for it stay failed; `permitq task retry {id} --with-dependents` makes them wait again"
            ));
        }
    }
    let mut answer = json!({"id": id, "state": state.as_str()});
    if let Some(at) = run_at {
        answer["run_at"] = json!(at.to_string());
    }
    if let Some(count) = dependents {
        answer["dependents"] = json!(count);
    }
    out.answer(&answer, || match dependents {
        Some(count) => format!("{words}; {count} dependents wait for it again"),
        None => words,
    })?;
    Ok(())
}

async fn many(filter: Filter, yes: bool, store: &mut Store, out: &Out) -> Result<(), Failure> {
    let Filter { state, kind, error, since, until, limit } = filter;
    let tasks = store.retryable(&Retryable { state, kind, error, since, until }, limit).await?;
    let now = when::now(store).await?;
    let found = tasks.len();
    if !yes && found > 0 {
        let shown: Vec<_> = tasks.iter().take(SHOWN).map(TaskShape::from).collect();
        let answer = json!({"matching": found, "retried": 0, "tasks": shown});
        if !std::io::stdin().is_terminal() {
            out.answer(&answer, || preview(&tasks, now))?;
            return Err(Failure::Usage(format!("nothing was retried: add --yes to retry these {found}")));
        }
        out.note(&preview(&tasks, now));
        if !asked(found)? {
            out.answer(&answer, || "nothing was retried".to_owned())?;
            return Ok(());
        }
    }
    let mut retried = 0;
    for task in &tasks {
        // Somebody else may have been faster.
        let again = store.retry(task.id, &who()).await.map_err(|error| {
            Failure::Failed(format!(
                "{error}; {retried} of {found} were retried: the same command does the rest"
            ))
        })?;
        retried += usize::from(matches!(again, Retried::Done | Retried::AfterCooling(_)));
    }
    out.answer(&json!({"matching": found, "retried": retried}), || format!("{retried} tasks run again"))?;
    if found == usize::try_from(limit).unwrap_or(usize::MAX) {
        out.note("there may be more: --limit");
    }
    Ok(())
}

fn preview(tasks: &[Task], now: Timestamp) -> String {
    let header = ["id", "kind", "key", "state", "ended", "error"];
    let rows = tasks.iter().take(SHOWN).map(|task| {
        [
            task.id.to_string(),
            task.kind.clone(),
            task.biz_key.clone().unwrap_or_default(),
            task.state.to_string(),
            task.finished_at.map(|at| when::relative(now, at)).unwrap_or_default(),
            task.error.as_deref().map(|error| brief(error, 60)).unwrap_or_default(),
        ]
    });
    let more = match tasks.len().saturating_sub(SHOWN) {
        0 => String::new(),
        n => format!("\nand {n} more"),
    };
    format!("{}{more}", table(header, rows))
}

fn asked(found: usize) -> Result<bool, Failure> {
    let mut stderr = std::io::stderr();
    write!(stderr, "Retry these {found}? [y/N] ").and_then(|()| stderr.flush())?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
