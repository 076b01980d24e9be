//! Schedules as people and scripts see them.

use clap::Args;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::{Value, json};

use super::super::fail::Failure;
use super::super::out::{Out, list as pairs, section, table};
use super::super::when;
use super::known;
use crate::model::OnAbandon;
use crate::model::schedule::{COUNT_MAX, Fate, Job, PlannedInstant, Trigger, When};
use crate::store::Store;

#[derive(Args, Debug)]
pub(in crate::cli) struct Options {
    /// The job
    name: String,
    /// How many of its latest instants
    #[arg(long, value_name = "N", default_value_t = 20)]
    instants: i64,
}

/// The next instants after this one, as far as they are known without a run's end.
pub(super) fn next(when: &When, from: Timestamp, count: usize) -> Vec<Timestamp> {
    std::iter::successors(when.first(from), |last| when.after(*last)).take(count).collect()
}

/// One instant a line, in its zone and in UTC.
pub(super) fn lines(next: &[Timestamp], zone: &TimeZone) -> String {
    let local =
        |at: &Timestamp| at.to_zoned_datetime(zone.clone()).strftime("%a %Y-%m-%d %H:%M:%S %Z").to_string();
    next.iter().map(|at| format!("  {}  ({})", local(at), when::utc(*at))).collect::<Vec<_>>().join("\n")
}

pub(super) async fn list(store: &mut Store, out: &Out) -> Result<(), Failure> {
    let (jobs, triggers) = (store.jobs(None).await?, store.triggers(None).await?);
    let now = when::now(store).await?;
    let of = |job: &Job| triggers.iter().filter(|one| one.job == job.job.name).collect::<Vec<_>>();
    let answer: Vec<_> = jobs.iter().map(|job| shape(job, &of(job))).collect();
    out.answer(&json!({"jobs": answer}), || {
        let rows = jobs.iter().flat_map(|job| {
            let mut rows: Vec<_> = of(job).into_iter().map(|one| row(job, Some(one), now)).collect();
            if rows.is_empty() {
                rows.push(row(job, None, now));
            }
            rows
        });
        table(["job", "kind", "trigger", "when", "next", "running"], rows)
    })?;
    Ok(())
}

fn row(job: &Job, trigger: Option<&Trigger>, now: Timestamp) -> [String; 6] {
    [
        job.job.name.clone(),
        job.job.task.kind.clone(),
        trigger.map(|one| one.id.to_string()).unwrap_or_default(),
        trigger.map_or_else(|| "never: it has no trigger".to_owned(), in_words),
        trigger.map(|one| standing(one, now)).unwrap_or_default(),
        job.live.map(|task| format!("task {task}")).unwrap_or_default(),
    ]
}

fn in_words(trigger: &Trigger) -> String {
    trigger.when.as_ref().map_or_else(ToString::to_string, ToString::to_string)
}

fn standing(trigger: &Trigger, now: Timestamp) -> String {
    match trigger {
        Trigger { paused: true, .. } => "paused".to_owned(),
        Trigger { waits_for: Some(task), .. } => format!("after task {task}"),
        Trigger { next_fire_at: Some(at), .. } if *at <= now => format!("due since {}", when::utc(*at)),
        Trigger { next_fire_at: Some(at), .. } => when::both(now, *at),
        _ => "over".to_owned(),
    }
}

fn shape(job: &Job, triggers: &[&Trigger]) -> Value {
    let new = &job.job;
    json!({
        "name": new.name,
        "kind": new.task.kind,
        "semaphore": new.task.semaphore,
        "priority": new.task.priority,
        "timeout": new.task.timeout.map(|limit| limit.as_secs_f64()),
        "max_attempts": new.task.max_attempts,
        "on_abandon": new.task.on_abandon.map(OnAbandon::as_str),
        "key_template": new.key_template.to_string(),
        "misfire": new.misfire.policy.as_str(),
        "misfire_after": new.misfire.after.as_secs_f64(),
        "misfire_max": new.misfire.most,
        "overlap": new.overlap.as_str(),
        "created_at": job.created_at,
        "running": job.live,
        "triggers": triggers.iter().map(|one| trigger_shape(one)).collect::<Vec<_>>(),
    })
}

fn trigger_shape(trigger: &Trigger) -> Value {
    let when = trigger.when.as_ref();
    let cron = when.ok().and_then(|when| when.plan.cron());
    json!({
        "id": trigger.id,
        "type": when.ok().map(|when| when.plan.kind()),
        "expression": cron.map(|(expression, _)| expression),
        "dialect": cron.map(|(_, dialect)| dialect.as_str()),
        "zone": when.ok().and_then(|when| when.zone.iana_name()),
        "every": when.ok().and_then(|when| when.plan.every()).map(|every| every.as_secs_f64()),
        "start": when.ok().map(|when| when.start),
        "end": when.ok().and_then(|when| when.end),
        "paused": trigger.paused,
        "next_fire_at": trigger.next_fire_at,
        "waits_for": trigger.waits_for,
        "error": when.err().map(ToString::to_string),
    })
}

pub(super) async fn run(options: &Options, store: &mut Store, out: &Out) -> Result<(), Failure> {
    let Options { name, instants } = options;
    let job = known(name, store).await?;
    let triggers = store.triggers(Some(name)).await?;
    let instants = store.instants(name, *instants).await?;
    let now = when::now(store).await?;
    let mut answer = shape(&job, &triggers.iter().collect::<Vec<_>>());
    answer["payload"] = serde_json::from_str(&job.job.task.payload).unwrap_or_default();
    answer["instants"] = instants.iter().map(instant_shape).collect();
    out.answer(&answer, || human(&job, &triggers, &instants, now))?;
    Ok(())
}

fn instant_shape(one: &PlannedInstant) -> Value {
    json!({
        "trigger": one.trigger,
        "planned_at": one.planned.first,
        "last_at": one.planned.last,
        "instants": one.planned.count,
        "fate": one.fate.as_str(),
        "task": one.task,
        "at": one.at,
    })
}

fn human(job: &Job, triggers: &[Trigger], instants: &[PlannedInstant], now: Timestamp) -> String {
    let new = &job.job;
    let misfire = format!(
        "{} (late by more than {})",
        new.misfire.policy.as_str(),
        humantime::format_duration(new.misfire.after)
    );
    let rows = [
        ["job", &*new.name],
        ["kind", &new.task.kind],
        ["semaphore", new.task.semaphore.as_deref().unwrap_or_default()],
        ["key", &new.key_template.to_string()],
        ["misfire", &misfire],
        ["overlap", new.overlap.as_str()],
        ["payload", &new.task.payload],
        ["running", &job.live.map_or_else(|| "no".to_owned(), |task| format!("task {task}"))],
    ];
    let mut text = pairs(&rows.map(|row| row.map(str::to_owned)));
    let rows = triggers.iter().map(|one| [one.id.to_string(), in_words(one), standing(one, now)]);
    text.push_str("\n\n");
    text.push_str(&table(["trigger", "when", "next"], rows));
    for one in triggers {
        if let (Ok(when), false, Some(at)) = (&one.when, one.paused, one.next_fire_at) {
            text.push_str("\n\n");
            let next = next(when, at, 5);
            text.push_str(&section(&format!("next of trigger {}", one.id), &lines(&next, &when.zone)));
        }
    }
    if !instants.is_empty() {
        let rows = instants.iter().map(|one| {
            let last = if one.planned.count > 1 {
                format!(" to {}", when::utc(one.planned.last))
            } else {
                String::new()
            };
            [
                format!("{}{last}", when::utc(one.planned.first)),
                one.trigger.map_or_else(|| "by hand".to_owned(), |id| id.to_string()),
                fate(one),
            ]
        });
        text.push_str("\n\n");
        text.push_str(&table(["planned", "trigger", "what became of it"], rows));
    }
    text
}

fn fate(one: &PlannedInstant) -> String {
    let task = one.task.map_or_else(String::new, |task| format!("task {task}"));
    let count = match one.planned.count {
        1 => String::new(),
        COUNT_MAX => format!("{COUNT_MAX} or more instants "),
        count => format!("{count} instants "),
    };
    match one.fate {
        Fate::Fired => task,
        Fate::Overlap => format!("{count}skipped: {task} was not over"),
        Fate::Misfired => format!("{count}missed: nobody fired in time"),
        Fate::Exists => format!("{task} had its key already"),
        Fate::Paused => format!("{count}passed while paused"),
    }
}
