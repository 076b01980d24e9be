//! `schedule add` and `schedule preview`: the same options, taken apart the same way.

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use jiff::Timestamp;
use serde_json::json;

use super::super::enqueue::on_abandon;
use super::super::fail::Failure;
use super::super::out::Out;
use super::super::who::who;
use super::super::{Global, payload, permits, place, when};
use super::{known, show};
use crate::config::HumanDuration;
use crate::model::schedule::{
    BadSchedule, Cron, CronDialect, KeyTemplate, Misfire, MisfirePolicy, NewJob, Overlap, Plan, When,
};
use crate::model::{NewTask, OnAbandon};
use crate::store::{Added, NewSchedule};

/// So many instants are shown unless another number is asked for.
const COUNT: usize = 5;

#[derive(Args, Debug)]
pub(in crate::cli) struct Options {
    /// The job
    name: String,
    #[command(flatten)]
    job: JobOptions,
    #[command(flatten)]
    trigger: TriggerOptions,
}

#[derive(Args, Debug)]
pub(in crate::cli) struct PreviewOptions {
    /// A job that is there, where no trigger is given
    #[arg(required_unless_present = "trigger")]
    name: Option<String>,
    #[command(flatten)]
    trigger: PreviewTrigger,
    /// After this instant [default: now]
    #[arg(long, value_name = "TIME", value_parser = when::parse)]
    from: Option<Timestamp>,
    /// How many instants
    #[arg(long, value_name = "N", default_value_t = COUNT)]
    count: usize,
    #[command(flatten)]
    job: JobOptions,
}

/// What its runs are. For a job that is there already, leave all of it out.
#[derive(Args, Debug)]
struct JobOptions {
    /// Which handler or downstream serves its runs
    #[arg(long)]
    kind: Option<String>,
    /// The body of each call: JSON, @FILE, or - for standard input
    #[arg(long, value_name = "JSON|@FILE|-", allow_hyphen_values = true, requires = "kind")]
    payload: Option<String>,
    /// Higher runs first
    #[arg(long, value_name = "N", default_value_t = 0, allow_negative_numbers = true, requires = "kind")]
    priority: i32,
    /// A limit of its own for one call
    #[arg(long, value_name = "DURATION", requires = "kind")]
    timeout: Option<HumanDuration>,
    /// Attempts of each run
    #[arg(long, value_name = "N", requires = "kind")]
    max_attempts: Option<u32>,
    /// What happens when a call ends unclearly
    #[arg(long, value_name = "POLICY", value_parser = on_abandon(), requires = "kind")]
    on_abandon: Option<OnAbandon>,
    /// Whose permits it needs [default: default]
    #[arg(long, value_name = "NAME", requires = "kind")]
    semaphore: Option<String>,
    /// The business key of each run, with {job}, {instant}, {date}, {time}, {month} [default: {job}/{instant}]
    #[arg(long, value_name = "TEMPLATE", requires = "kind")]
    key_template: Option<String>,
    /// What is done with instants that nobody fired in time
    #[arg(long, value_name = "POLICY", value_parser = misfire(), default_value = "fire_once", requires = "kind")]
    misfire: MisfirePolicy,
    /// From when on an instant is too late
    #[arg(long, value_name = "DURATION", default_value = "60s", requires = "kind")]
    misfire_after: HumanDuration,
    /// The most runs that `fire_all` catches up
    #[arg(long, value_name = "N", default_value_t = 100, requires = "kind")]
    misfire_max: u32,
    /// What happens when an instant comes while a run is not over
    #[arg(long, value_name = "POLICY", value_parser = overlap(), default_value = "skip", requires = "kind")]
    overlap: Overlap,
}

fn misfire() -> impl TypedValueParser<Value = MisfirePolicy> {
    PossibleValuesParser::new(MisfirePolicy::ALL.map(MisfirePolicy::as_str))
        .try_map(|word| word.parse::<MisfirePolicy>())
}

fn overlap() -> impl TypedValueParser<Value = Overlap> {
    PossibleValuesParser::new(Overlap::ALL.map(Overlap::as_str)).try_map(|word| word.parse::<Overlap>())
}

#[derive(Args, Debug)]
#[group(id = "when", required = true, multiple = false, args = ["cron", "quartz", "every", "after_end", "at"])]
struct TriggerOptions {
    #[command(flatten)]
    is: Trigger,
}

#[derive(Args, Debug)]
#[group(id = "trigger", multiple = false, args = ["cron", "quartz", "every", "after_end", "at"])]
struct PreviewTrigger {
    #[command(flatten)]
    is: Trigger,
}

/// When it is due.
#[derive(Args, Debug)]
struct Trigger {
    /// Five fields: minute, hour, day, month, weekday
    #[arg(long, value_name = "EXPR")]
    cron: Option<String>,
    /// Quartz's six or seven fields, seconds first
    #[arg(long, value_name = "EXPR")]
    quartz: Option<String>,
    /// Again and again after so long, whatever the runs take
    #[arg(long, value_name = "DURATION")]
    every: Option<HumanDuration>,
    /// So long after each run has ended
    #[arg(long, value_name = "DURATION")]
    after_end: Option<HumanDuration>,
    /// Once, at this instant
    #[arg(long, value_name = "TIME", value_parser = when::parse)]
    at: Option<Timestamp>,
    /// Time zone of the expression, and of dates in keys
    #[arg(long, value_name = "ZONE", default_value = "UTC")]
    tz: String,
    /// Not due before this instant; an interval's first one
    #[arg(long, value_name = "TIME", value_parser = when::parse, conflicts_with = "at")]
    start: Option<Timestamp>,
    /// Not due after this instant
    #[arg(long, value_name = "TIME", value_parser = when::parse)]
    end: Option<Timestamp>,
}

impl Trigger {
    fn is_given(&self) -> bool {
        self.cron.is_some()
            || self.quartz.is_some()
            || self.every.is_some()
            || self.after_end.is_some()
            || self.at.is_some()
    }

    fn when(&self, now: Timestamp) -> Result<When, Failure> {
        let refuse = |refused: BadSchedule| Failure::Usage(format!("{}: {refused}", self.option(&refused)));
        let cron = |text: &str, dialect| Cron::parse(text, dialect).map(Plan::Cron).map_err(refuse);
        let plan = match self {
            Self { cron: Some(text), .. } => cron(text, CronDialect::Unix)?,
            Self { quartz: Some(text), .. } => cron(text, CronDialect::Quartz)?,
            Self { every: Some(every), .. } => Plan::Interval(every.0),
            Self { after_end: Some(delay), .. } => Plan::FixedDelay(delay.0),
            _ => Plan::Once,
        };
        // An interval's first run is one interval from now.
        let start = self.at.or(self.start).or_else(|| now.checked_add(plan.every().unwrap_or_default()).ok());
        let zone = When::zone(&self.tz).map_err(refuse)?;
        let when = When { plan, zone, start: start.unwrap_or(now), end: self.end };
        when.check(now).map_err(refuse)?;
        Ok(when)
    }

    /// Which option a refusal is about.
    fn option(&self, refused: &BadSchedule) -> &'static str {
        match refused {
            BadSchedule::Zone(_) => "--tz",
            BadSchedule::End(_) => "--end",
            _ if self.cron.is_some() => "--cron",
            _ if self.quartz.is_some() => "--quartz",
            _ if self.every.is_some() => "--every",
            _ if self.after_end.is_some() => "--after-end",
            _ => "--at",
        }
    }
}

impl JobOptions {
    fn job(&self, name: &str) -> Result<Option<NewJob>, Failure> {
        let Some(kind) = &self.kind else { return Ok(None) };
        let usage = |option: &str, refused: BadSchedule| Failure::Usage(format!("{option}: {refused}"));
        let payload = self.payload.as_deref().map(payload::read).transpose()?;
        let key_template = self.key_template.as_deref().map(|text| KeyTemplate::parse(text, name));
        let job = NewJob {
            name: name.to_owned(),
            task: NewTask {
                kind: kind.clone(),
                payload: payload.unwrap_or_else(|| "{}".to_owned()),
                priority: self.priority,
                timeout: self.timeout.map(|timeout| timeout.0),
                max_attempts: self.max_attempts,
                on_abandon: self.on_abandon,
                semaphore: Some(self.semaphore.clone().unwrap_or_else(|| "default".to_owned())),
                ..NewTask::default()
            },
            key_template: key_template
                .transpose()
                .map_err(|refused| usage("--key-template", refused))?
                .unwrap_or_default(),
            misfire: Misfire { policy: self.misfire, after: self.misfire_after.0, most: self.misfire_max },
            overlap: self.overlap,
        };
        job.check().map_err(|refused| {
            let option = match &refused {
                BadSchedule::Task(refused) => super::super::enqueue::option(refused),
                BadSchedule::MisfireAfter => "--misfire-after",
                BadSchedule::MisfireMax => "--misfire-max",
                _ => "NAME",
            };
            usage(option, refused)
        })?;
        Ok(Some(job))
    }
}

pub(super) async fn run(options: &Options, global: &Global, out: &Out) -> Result<(), Failure> {
    let Options { name, job, trigger } = options;
    let trigger = &trigger.is;
    let job = job.job(name)?;
    let mut store = place::open_or_create(global).await?;
    if let Some(semaphore) = job.as_ref().and_then(|job| job.task.semaphore.as_deref()) {
        permits::known(&mut store, semaphore).await?;
    }
    let now = when::now(&mut store).await?;
    let when = trigger.when(now)?;
    let new = NewSchedule {
        name,
        job: job.as_ref(),
        when: &when,
        start_is_given: trigger.start.is_some(),
        first: when.first(now),
        who: &who(),
    };
    let (id, created) = match store.add_schedule(&new).await? {
        Added::Trigger { id, created } => (id, created),
        Added::NoJob => {
            return Err(Failure::Usage(format!("job {name:?} is new: --kind says which handler serves it")));
        }
        Added::Differs(differences) => {
            return Err(Failure::Failed(format!(
                "job {name:?} is there already, and another: {}. Leave out what its runs are to add a trigger, or \
                 `permitq schedule remove {name}` first",
                differences.join(", ")
            )));
        }
    };
    if !created {
        out.note(&format!("{name} has this trigger already: trigger {id}"));
    }
    let next = show::next(&when, now, COUNT);
    out.answer(&json!({"job": name, "trigger": id, "created": created, "next": next}), || {
        format!("{name}: trigger {id}, {when}; next:\n{}", show::lines(&next, &when.zone))
    })?;
    Ok(())
}

pub(super) async fn preview(options: &PreviewOptions, global: &Global, out: &Out) -> Result<(), Failure> {
    let PreviewOptions { name, trigger, from, count, job } = options;
    let trigger = &trigger.is;
    let (next, zone) = match name {
        Some(name) if !trigger.is_given() => {
            let mut store = place::open(global).await?;
            known(name, &mut store).await?;
            let from = match from {
                Some(from) => *from,
                None => when::now(&mut store).await?,
            };
            let mut whens = Vec::new();
            for one in store.triggers(Some(name)).await? {
                whens
                    .push(one.when.map_err(|error| Failure::Failed(format!("trigger {}: {error}", one.id)))?);
            }
            let mut next: Vec<_> = whens.iter().flat_map(|when| show::next(when, from, *count)).collect();
            next.sort_unstable();
            next.dedup();
            next.truncate(*count);
            (next, whens.into_iter().next().map(|when| when.zone))
        }
        _ => {
            job.job(name.as_deref().unwrap_or("preview"))?;
            // Nothing is stored, and no database needed: this host's clock will do.
            #[expect(clippy::disallowed_methods, reason = "a look at the calendar, which no row depends on")]
            let from = from
                .unwrap_or_else(|| Timestamp::from_second(Timestamp::now().as_second()).unwrap_or_default());
            let when = trigger.when(from)?;
            (show::next(&when, from, *count), Some(when.zone))
        }
    };
    let zone = zone.unwrap_or(jiff::tz::TimeZone::UTC);
    out.answer(&json!({"next": next}), || show::lines(&next, &zone))?;
    Ok(())
}
