//! `permitq enqueue`: one task from options, or a file of them ([`super::batch`]).

use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use jiff::Timestamp;
use serde_json::json;

use super::fail::Failure;
use super::out::Out;
use super::{Global, batch, payload, permits, place, when};
use crate::config::HumanDuration;
use crate::model::{After, NewTask, OnAbandon, Parent, Refused, RunAt};
use crate::store::{Enqueued, Error};

#[derive(Args, Debug)]
pub(super) struct Options {
    #[command(flatten)]
    task: One,
    /// Enqueue a file of JSON lines, `-` for standard input
    #[arg(long, value_name = "FILE", conflicts_with = "One")]
    batch: Option<PathBuf>,
}

#[derive(Args, Debug)]
struct One {
    /// Which handler or downstream serves it
    #[arg(long, required_unless_present = "batch")]
    kind: Option<String>,
    /// Business key: the same key again finds the first task
    #[arg(long)]
    key: Option<String>,
    /// The body of the call: JSON, @FILE, or - for standard input
    #[arg(long, value_name = "JSON|@FILE|-", allow_hyphen_values = true)]
    payload: Option<String>,
    /// Higher runs first
    #[arg(long, value_name = "N", default_value_t = 0, allow_negative_numbers = true)]
    priority: i32,
    /// Run it no sooner than after this long, such as 5m
    #[arg(long, value_name = "DURATION")]
    delay: Option<HumanDuration>,
    /// Run it no sooner than at this instant, such as 2026-12-01T09:00:00Z
    #[arg(long, value_name = "TIME", value_parser = when::parse, conflicts_with = "delay")]
    at: Option<Timestamp>,
    /// Not worth starting from then on, an instant or so long after now: cancelled, unless it has begun
    #[arg(long, value_name = "TIME|DURATION", value_parser = when::at_or_in)]
    expires: Option<RunAt>,
    /// Its own limit for one call
    #[arg(long, value_name = "DURATION")]
    timeout: Option<HumanDuration>,
    /// Attempts in all
    #[arg(long, value_name = "N")]
    max_attempts: Option<u32>,
    /// What happens when a call ends unclearly
    #[arg(long, value_name = "POLICY", value_parser = on_abandon())]
    on_abandon: Option<OnAbandon>,
    /// Whose permits it needs [default: default]
    #[arg(long, value_name = "NAME")]
    semaphore: Option<String>,
    /// Not before this task has succeeded; may be repeated
    #[arg(long, value_name = "ID|KEY")]
    after: Vec<String>,
    /// Not before this task has ended, however it did; may be repeated
    #[arg(long, value_name = "ID|KEY")]
    after_any: Vec<String>,
}

/// A number is an id, anything else a business key.
fn parent(text: &str) -> Parent {
    text.parse().map_or_else(|_| Parent::Key(text.to_owned()), Parent::Task)
}

pub(super) fn on_abandon() -> impl TypedValueParser<Value = OnAbandon> {
    PossibleValuesParser::new(OnAbandon::ALL.map(OnAbandon::as_str)).try_map(|word| word.parse::<OnAbandon>())
}

impl One {
    fn task(self) -> Result<NewTask, Failure> {
        let run_at = match (self.delay, self.at) {
            (Some(delay), _) => RunAt::In(delay.0),
            (None, Some(at)) => RunAt::At(at),
            (None, None) => RunAt::Now,
        };
        let task = NewTask {
            kind: self.kind.unwrap_or_default(),
            biz_key: self.key,
            payload: self.payload.as_deref().map(payload::read).transpose()?.unwrap_or_default(),
            priority: self.priority,
            run_at,
            timeout: self.timeout.map(|timeout| timeout.0),
            max_attempts: self.max_attempts,
            on_abandon: self.on_abandon,
            semaphore: self.semaphore,
            expires: self.expires,
            after: [(self.after, false), (self.after_any, true)]
                .into_iter()
                .flat_map(|(parents, any_end)| {
                    parents.into_iter().map(move |text| After { parent: parent(&text), any_end })
                })
                .collect(),
            job: None,
            source: "cli".to_owned(),
        };
        task.check().map_err(|refused| Failure::Usage(format!("{}: {refused}", option(&refused))))?;
        Ok(task)
    }
}

/// Which option a refusal is about.
pub(super) fn option(refused: &Refused) -> &'static str {
    match refused {
        Refused::Kind(_) => "--kind",
        Refused::Semaphore(_) => "--semaphore",
        Refused::BizKey(_) => "--key",
        Refused::Payload(_) | Refused::PayloadSize(_) => "--payload",
        Refused::MaxAttempts => "--max-attempts",
        Refused::Timeout => "--timeout",
    }
}

pub(super) async fn run(options: Options, global: &Global, out: &Out) -> Result<(), Failure> {
    match options.batch {
        Some(file) => batch::run(&file, global, out).await,
        None => one(&options.task.task()?, global, out).await,
    }
}

async fn one(task: &NewTask, global: &Global, out: &Out) -> Result<(), Failure> {
    let mut store = place::open_or_create(global).await?;
    let enqueued = match store.enqueue(std::slice::from_ref(task)).await {
        Ok(enqueued) => enqueued,
        Err(error) if error.is_unknown() => {
            let next = match &task.biz_key {
                Some(_) => "repeat the same command: its key keeps it from being enqueued twice".to_owned(),
                None => format!("look with `permitq tasks --kind {}` before you repeat it", task.kind),
            };
            return Err(Failure::Failed(format!("{error}; the task may be enqueued or not; {next}")));
        }
        Err(error) => {
            // The database's own words for an unknown semaphore do not list those there are.
            if matches!(error, Error::Refused { .. }) {
                permits::known(&mut store, task.semaphore.as_deref().unwrap_or("default")).await?;
            }
            return Err(error.into());
        }
    };
    let Some(&Enqueued { id, created }) = enqueued.first() else {
        return Err(Failure::Failed("the database took no task".to_owned()));
    };
    if !created {
        let key = task.biz_key.as_deref().unwrap_or_default();
        out.note(&format!("key {key:?} is already there: task {id}"));
    }
    out.answer(&json!({"id": id, "created": created}), || id.to_string()).map_err(
        |error| match Failure::from(error) {
            Failure::Failed(words) => Failure::Failed(format!("task {id} is enqueued, but: {words}")),
            failure => failure,
        },
    )
}
