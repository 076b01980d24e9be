//! `permitq tasks`: a page of tasks, newest first.

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde_json::json;

use super::fail::Failure;
use super::out::{Out, brief, table};
use super::shape::TaskShape;
use super::{Global, place, when};
use crate::model::{State, Task};
use crate::store::Filter;

#[derive(Args, Debug)]
pub(super) struct Options {
    /// Only in this state
    #[arg(long, value_parser = state())]
    state: Option<State>,
    /// Only of this kind
    #[arg(long)]
    kind: Option<String>,
    /// Only of this semaphore
    #[arg(long, value_name = "NAME")]
    semaphore: Option<String>,
    /// Only with this business key
    #[arg(long)]
    key: Option<String>,
    /// At most so many
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(i64).range(1..=1000))]
    limit: i64,
    /// Only ids below this one: the next page
    #[arg(long, value_name = "ID")]
    below: Option<i64>,
}

fn state() -> impl TypedValueParser<Value = State> {
    PossibleValuesParser::new(State::ALL.map(State::as_str)).try_map(|word| word.parse::<State>())
}

pub(super) async fn run(options: Options, global: &Global, out: &Out) -> Result<(), Failure> {
    let Options { state, kind, semaphore, key, limit, below } = options;
    let filter = Filter { state, kind, semaphore, biz_key: key, below };
    let mut store = place::open(global).await?;
    // One more than asked for tells whether there is a next page.
    let mut tasks = store.tasks(&filter, limit + 1).await?;
    let more = tasks.len() > usize::try_from(limit).unwrap_or(usize::MAX);
    tasks.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    let next = tasks.last().filter(|_| more).map(|task| task.id);
    let now = when::now(&mut store).await?;

    let shapes: Vec<_> = tasks.iter().map(TaskShape::from).collect();
    out.answer(&json!({"tasks": shapes, "next": next}), || human(&tasks, now))?;
    if tasks.is_empty() {
        out.note("no such task");
    }
    if let Some(id) = next {
        out.note(&format!("there are more: add --below {id} for the next page"));
    }
    Ok(())
}

fn human(tasks: &[Task], now: jiff::Timestamp) -> String {
    if tasks.is_empty() {
        return String::new();
    }
    let header =
        ["id", "kind", "key", "state", "when", "attempts", "priority", "semaphore", "consumer", "error"];
    let rows = tasks.iter().map(|task| {
        [
            task.id.to_string(),
            task.kind.clone(),
            task.biz_key.clone().unwrap_or_default(),
            task.state.to_string(),
            when::relative(now, moment(task)),
            attempts(task),
            task.priority.to_string(),
            task.semaphore.clone(),
            task.consumer.clone().unwrap_or_default(),
            task.error.as_deref().map(|error| brief(error, 60)).unwrap_or_default(),
        ]
    });
    table(header, rows)
}

/// The instant that matters in its state: when it is due, began, or ended.
fn moment(task: &Task) -> jiff::Timestamp {
    match task.state {
        State::Blocked => task.created_at,
        State::Scheduled | State::Pending => task.run_at,
        State::Running => task.started_at.unwrap_or(task.run_at),
        State::Succeeded | State::Failed | State::Cancelled => task.finished_at.unwrap_or(task.created_at),
    }
}

/// `1 of 3`; without a maximum until a consumer has said it.
pub(super) fn attempts(task: &Task) -> String {
    match task.max_attempts {
        Some(most) => format!("{} of {most}", task.attempts),
        None => task.attempts.to_string(),
    }
}
