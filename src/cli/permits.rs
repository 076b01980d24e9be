//! `permitq permits`: who holds the permits; and how many there are, changed while everything runs.

use clap::{Args, Subcommand};
use jiff::Timestamp;
use serde_json::json;

use super::fail::Failure;
use super::out::{Out, brief, table};
use super::shape::{HolderShape, PauseShape, SemaphoreShape};
use super::who::who;
use super::{Global, place, when};
use crate::model::{Holder, KIND_MAX, NewTask, Pause, Semaphore};
use crate::store::{Error, Store};

/// A cap beyond this is none.
const MAX: i64 = 1_000_000;

#[derive(Args, Debug)]
pub(super) struct Options {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Set the cap of a semaphore; acts within a second, interrupts nothing
    Set {
        /// How many calls may be in flight; 0 stops new ones
        #[arg(value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(i64).range(0..=MAX))]
        max: i64,
        /// Of which semaphore
        #[arg(long, value_name = "NAME", default_value = "default")]
        semaphore: String,
    },
    /// Add a semaphore for a further downstream
    Add {
        /// Its name
        name: String,
        /// How many calls may be in flight
        #[arg(value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(i64).range(0..=MAX))]
        max: i64,
    },
}

pub(super) async fn run(options: Options, global: &Global, out: &Out) -> Result<(), Failure> {
    match options.command {
        None => show(global, out).await,
        Some(Command::Set { max, semaphore }) => set(&semaphore, max, global, out).await,
        Some(Command::Add { name, max }) => add(&name, max, global, out).await,
    }
}

/// The semaphore of this name, or an error that lists those there are.
pub(super) async fn known(store: &mut Store, name: &str) -> Result<Semaphore, Failure> {
    let semaphores = store.semaphores().await?;
    let names: Vec<_> = semaphores.iter().map(|semaphore| semaphore.name.clone()).collect();
    semaphores.into_iter().find(|semaphore| semaphore.name == name).ok_or_else(|| {
        let names = names.join(", ");
        Failure::Failed(format!(
            "unknown semaphore {name:?}; there are: {names}. `permitq permits add {name} N` adds it"
        ))
    })
}

async fn show(global: &Global, out: &Out) -> Result<(), Failure> {
    let mut store = place::open(global).await?;
    let semaphores = store.semaphores().await?;
    let holders = store.holders().await?;
    let pauses = store.pauses().await?;
    let now = when::now(&mut store).await?;
    let answer = json!({
        "semaphores": semaphores.iter().map(SemaphoreShape::from).collect::<Vec<_>>(),
        "holders": holders.iter().map(HolderShape::from).collect::<Vec<_>>(),
        "paused": pauses.iter().map(PauseShape::from).collect::<Vec<_>>(),
    });
    out.answer(&answer, || human(&semaphores, &holders, &pauses, now))?;
    for semaphore in semaphores.iter().filter(|s| s.in_use != s.held + s.cooling) {
        let Semaphore { name, in_use, held, cooling, .. } = semaphore;
        let there = held + cooling;
        out.note(&format!(
            "{name}: in_use says {in_use}, but {there} are held or cooling; see `permitq audit`"
        ));
    }
    Ok(())
}

fn human(semaphores: &[Semaphore], holders: &[Holder], pauses: &[Pause], now: Timestamp) -> String {
    let header = ["semaphore", "max", "in use", "held", "cooling", "free", "waiting"];
    let rows = semaphores.iter().map(|s| {
        let more = if s.waiting >= Semaphore::WAITING_MAX { "+" } else { "" };
        let numbers = [s.max_permits, s.in_use, s.held, s.cooling, s.free()].map(|n| n.to_string());
        let [max, in_use, held, cooling, free] = numbers;
        [s.name.clone(), max, in_use, held, cooling, free, format!("{}{more}", s.waiting)]
    });
    let mut text = table(header, rows);
    if !pauses.is_empty() {
        let header = ["paused", "since", "next probe", "failures", "who", "why"];
        let rows = pauses.iter().map(|pause| {
            let probe = pause.probe.map(|probe| format!("task {}", probe.task));
            [
                super::pause::words(pause.scope, &pause.name),
                when::relative(now, pause.since),
                probe.or(pause.until.map(|at| when::relative(now, at))).unwrap_or_default(),
                if pause.failures > 0 { pause.failures.to_string() } else { String::new() },
                pause.who.clone(),
                pause.why.as_deref().map(|why| brief(why, 60)).unwrap_or_default(),
            ]
        });
        text.push_str("\n\n");
        text.push_str(&table(header, rows));
    }
    if holders.is_empty() {
        return text;
    }
    let header = ["semaphore", "task", "state", "since", "until", "consumer", "host", "pid", "lease"];
    let rows = holders.iter().map(|holder| {
        let why = holder.why.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
        [
            holder.semaphore.clone(),
            holder.task.map_or_else(|| "unknown".to_owned(), |task| task.to_string()),
            format!("{}{why}", holder.state.as_str()),
            when::relative(now, holder.since),
            when::both(now, holder.until),
            holder.consumer.clone().unwrap_or_default(),
            holder.host.clone().unwrap_or_default(),
            holder.pid.map(|pid| pid.to_string()).unwrap_or_default(),
            holder.lease_until.map(|at| lease(now, at)).unwrap_or_default(),
        ]
    });
    text.push_str("\n\n");
    text.push_str(&table(header, rows));
    text
}

fn lease(now: Timestamp, until: Timestamp) -> String {
    let relative = when::relative(now, until);
    if until > now { relative } else { format!("over {relative}") }
}

async fn set(name: &str, max: i64, global: &Global, out: &Out) -> Result<(), Failure> {
    let mut store = place::open(global).await?;
    let old = known(&mut store, name).await?.max_permits;
    if !store.set_max(name, max, &who()).await? {
        return Err(Failure::Failed(format!("semaphore {name:?} has just been removed")));
    }
    let in_use = known(&mut store, name).await?.in_use;
    let then = consequence(max, in_use);
    let answer = json!({"name": name, "old": old, "max_permits": max, "in_use": in_use, "note": then});
    out.answer(&answer, || format!("{name}: max_permits was {old}, is {max}; {then}"))?;
    Ok(())
}

/// What happens next.
fn consequence(max: i64, in_use: i64) -> String {
    let over = in_use - max;
    match (max, over) {
        (0, 0) => "nothing is in use, and nothing starts".to_owned(),
        (0, n) => format!("{} will end by themselves; nothing new starts", calls(n)),
        (_, n) if n > 0 => format!(
            "{} will end by themselves; nothing new starts until fewer than {max} are in use",
            calls(n)
        ),
        (_, 0) => format!("all {max} are in use: the next call starts when one ends"),
        _ => format!("{in_use} in use, {} more may start now", -over),
    }
}

fn calls(n: i64) -> String {
    if n == 1 { "1 running or cooling call".to_owned() } else { format!("{n} running or cooling calls") }
}

async fn add(name: &str, max: i64, global: &Global, out: &Out) -> Result<(), Failure> {
    let named = NewTask { semaphore: Some(name.to_owned()), ..NewTask::new("x", "") };
    if named.check().is_err() {
        return Err(Failure::Usage(format!(
            "semaphore {name:?}: a name has 1 to {KIND_MAX} characters, none of them control characters"
        )));
    }
    let mut store = place::open(global).await?;
    match store.add_semaphore(name, max, &who()).await {
        Ok(()) => {}
        Err(Error::Refused { .. }) if known(&mut store, name).await.is_ok() => {
            return Err(Failure::Failed(format!(
                "semaphore {name:?} is already there; `permitq permits set {max} --semaphore {name}` changes its cap"
            )));
        }
        Err(error) => return Err(error.into()),
    }
    out.answer(&json!({"name": name, "max_permits": max}), || format!("{name}: max_permits is {max}"))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::consequence;

    #[test]
    fn a_lowered_cap_says_what_becomes_of_the_calls() {
        assert_eq!(
            consequence(2, 4),
            "2 running or cooling calls will end by themselves; nothing new starts until fewer than 2 are in use"
        );
        assert_eq!(
            consequence(3, 4),
            "1 running or cooling call will end by themselves; nothing new starts until fewer than 3 are in use"
        );
        assert_eq!(
            consequence(0, 4),
            "4 running or cooling calls will end by themselves; nothing new starts"
        );
        assert_eq!(consequence(0, 0), "nothing is in use, and nothing starts");
        assert_eq!(consequence(4, 4), "all 4 are in use: the next call starts when one ends");
        assert_eq!(consequence(6, 4), "4 in use, 2 more may start now");
    }
}
