//! `permitq task show ID`: a task, whole.

use jiff::Timestamp;
use serde::Serialize;
use serde_json::value::RawValue;

use super::fail::Failure;
use super::history::{Event, history};
use super::out::{Out, clean, list, section};
use super::shape::{RelativeShape, TaskShape};
use super::why::{Sight, why};
use super::{payload, task, tasks, when};
use crate::model::{Relative, State, Task};
use crate::store::{AttemptLog, Store};

#[derive(Serialize)]
struct Shape<'a> {
    #[serde(flatten)]
    task: TaskShape<'a>,
    payload: Payload<'a>,
    result: Option<&'a str>,
    note: Option<&'a str>,
    parents: Vec<RelativeShape<'a>>,
    children: Vec<RelativeShape<'a>>,
    history: &'a [Event],
}

/// As it was written; as text where it is not JSON, which only a hand at the table can bring about.
#[derive(Serialize)]
#[serde(untagged)]
enum Payload<'a> {
    Json(&'a RawValue),
    Text(&'a str),
}

pub(super) async fn run(id: i64, store: &mut Store, out: &Out) -> Result<(), Failure> {
    let Some(task) = store.task(id).await? else { return Err(task::missing(id, store)) };
    let attempts = store.attempts(id).await?;
    let accept = accept(&task, &attempts);
    let history = history(&task, attempts, store.actions(id).await?);
    let (parents, children) = store.family(id).await?;
    let semaphores = store.semaphores().await?;
    let consumers = store.consumers().await?;
    let pauses = store.pauses().await?;
    let now = when::now(store).await?;
    let note = why(&task, &Sight { now, semaphores: &semaphores, consumers: &consumers, pauses: &pauses });
    let notes: Vec<_> = [note, accept].into_iter().flatten().collect();
    let note = (!notes.is_empty()).then(|| notes.join("; "));

    let text = task.payload.as_deref().unwrap_or("{}");
    let shape = Shape {
        task: TaskShape::from(&task),
        payload: serde_json::from_str(text).map_or(Payload::Text(text), Payload::Json),
        result: task.result.as_deref(),
        note: note.as_deref(),
        parents: parents.iter().map(RelativeShape::from).collect(),
        children: children.iter().map(RelativeShape::from).collect(),
        history: &history,
    };
    out.answer(&shape, || {
        let mut rows = facts(&task, now);
        rows.extend(family("after", &parents));
        rows.extend(family("before", &children));
        rows.extend(note.as_ref().map(|note| ["note".to_owned(), note.clone()]));
        let events: Vec<_> = history.iter().map(|event| [when::utc(event.at), event.words()]).collect();
        let mut parts = vec![list(&rows), section("payload", &clean(&payload::indent(text)))];
        parts.extend(task.result.as_ref().map(|result| section("result", &clean(result))));
        parts.push(section("history", &list(&events)));
        parts.join("\n\n")
    })?;
    Ok(())
}

/// Those it waits for or did, or those that wait or did for it.
fn family(role: &str, relatives: &[Relative]) -> Option<[String; 2]> {
    let words = |one: &Relative| {
        let any_end = if one.any_end { ", any end" } else { "" };
        format!("task {} ({}{any_end})", one.id, one.state())
    };
    let all: Vec<_> = relatives.iter().map(words).collect();
    (!all.is_empty()).then(|| [role.to_owned(), all.join(", ")])
}

/// A late answer that may be taken as the result.
fn accept(task: &Task, attempts: &[AttemptLog]) -> Option<String> {
    let waits = matches!(task.state, State::Scheduled | State::Pending | State::Failed);
    let done = |attempt: &&AttemptLog| attempt.late_outcome.as_deref() == Some("succeeded");
    let claim_no = attempts.iter().rev().find(done).filter(|_| waits)?.claim_no;
    let id = task.id;
    Some(format!(
        "the late answer to attempt {claim_no} says that it is done: `permitq task accept {id}` takes it as the result"
    ))
}

/// With what of it came with age.
fn priority(task: &Task) -> String {
    match task.aged {
        0 => task.priority.to_string(),
        aged => {
            format!("{} ({} and {aged} by age)", task.priority, i64::from(task.priority) - i64::from(aged))
        }
    }
}

fn facts(task: &Task, now: Timestamp) -> Vec<[String; 2]> {
    let mut rows = vec![["task".to_owned(), task.id.to_string()]];
    let mut add = |name: &str, value: Option<String>| {
        rows.extend(value.map(|value| [name.to_owned(), value]));
    };
    add("kind", Some(task.kind.clone()));
    add("key", task.biz_key.clone());
    add("state", Some(task.state.to_string()));
    add("semaphore", Some(task.semaphore.clone()));
    add("priority", Some(priority(task)));
    add("attempts", Some(tasks::attempts(task)));
    add("claim_no", (task.claim_no > 0).then(|| task.claim_no.to_string()));
    add("on_abandon", task.on_abandon.map(|policy| policy.to_string()));
    add("timeout", task.timeout.map(when::span));
    add("enqueued", Some(format!("{} by {}", when::both(now, task.created_at), task.source)));
    add("due", (!task.state.is_final()).then(|| when::both(now, task.run_at)));
    add("expires", task.expires_at.filter(|_| !task.state.is_final()).map(|at| when::both(now, at)));
    add("started", task.started_at.map(|at| when::both(now, at)));
    if task.state == State::Running {
        add("consumer", task.consumer.clone());
        add("until", task.until.map(|at| when::both(now, at)));
    }
    add("finished", task.finished_at.map(|at| when::both(now, at)));
    add("error", task.error.clone());
    rows
}
