//! Jobs and triggers as they stand in the tables.

use std::str::FromStr;
use std::time::Duration;

use jiff::Timestamp;

use super::{BadSchedule, KeyTemplate, Misfire, Passed, Plan, When};
use crate::model::{KIND_MAX, NewTask, OnAbandon, RunAt};

/// What happens when an instant comes while a run of the job is not over, whichever trigger or person it came from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Overlap {
    /// The instant is skipped, and recorded.
    #[default]
    Skip,
    /// It waits for the end of that run; by then it may be a misfire.
    Queue,
    /// They run side by side, as far as there are permits.
    Allow,
}

impl Overlap {
    /// Every policy.
    pub const ALL: [Self; 3] = [Self::Skip, Self::Queue, Self::Allow];

    /// The word in SQL, CLI and API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Skip => "skip",
            Self::Queue => "queue",
            Self::Allow => "allow",
        }
    }
}

impl FromStr for Overlap {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|policy| policy.as_str() == word);
        known.ok_or_else(|| format!("{word:?} is no overlap policy"))
    }
}

/// A job to be added: what its runs are.
#[derive(Clone, Debug, PartialEq)]
pub struct NewJob {
    /// Its name.
    pub name: String,
    /// What each run is; key, instant and source are made for each.
    pub task: NewTask,
    /// The business key of a run.
    pub key_template: KeyTemplate,
    /// What is done with instants that nobody fired in time.
    pub misfire: Misfire,
    /// What happens when an instant comes while a run is not over.
    pub overlap: Overlap,
}

impl NewJob {
    /// Whether the database would take it.
    ///
    /// # Errors
    /// The first reason where not.
    pub fn check(&self) -> Result<(), BadSchedule> {
        let name = &self.name;
        if !(1..=KIND_MAX).contains(&name.chars().count()) || name.chars().any(char::is_control) {
            return Err(BadSchedule::Name(name.clone()));
        }
        if self.misfire.after > Duration::from_hours(366 * 24) {
            return Err(BadSchedule::MisfireAfter);
        }
        if !(1..=1000).contains(&self.misfire.most) {
            return Err(BadSchedule::MisfireMax);
        }
        KeyTemplate::parse(&self.key_template.to_string(), name)?;
        Ok(self.task.check()?)
    }

    /// The task of a run.
    pub fn run(&self, planned: Timestamp, zone: &jiff::tz::TimeZone, source: String) -> NewTask {
        NewTask {
            biz_key: Some(self.key_template.key(&self.name, planned, zone)),
            run_at: RunAt::At(planned),
            job: Some(self.name.clone()),
            source,
            ..self.task.clone()
        }
    }

    /// What differs from another job of this name, in words for a person.
    pub fn differences(&self, other: &Self) -> Vec<String> {
        let (a, b) = (&self.task, &other.task);
        let text = |abandon: Option<OnAbandon>| abandon.map_or("default", OnAbandon::as_str).to_owned();
        let pairs = [
            ("kind", a.kind.clone(), b.kind.clone()),
            ("payload", a.payload.clone(), b.payload.clone()),
            ("priority", a.priority.to_string(), b.priority.to_string()),
            ("semaphore", format!("{:?}", a.semaphore), format!("{:?}", b.semaphore)),
            ("timeout", format!("{:?}", a.timeout), format!("{:?}", b.timeout)),
            ("max-attempts", format!("{:?}", a.max_attempts), format!("{:?}", b.max_attempts)),
            ("on-abandon", text(a.on_abandon), text(b.on_abandon)),
            ("key-template", self.key_template.to_string(), other.key_template.to_string()),
            ("misfire", self.misfire.policy.as_str().to_owned(), other.misfire.policy.as_str().to_owned()),
            ("misfire-after", format!("{:?}", self.misfire.after), format!("{:?}", other.misfire.after)),
            ("misfire-max", self.misfire.most.to_string(), other.misfire.most.to_string()),
            ("overlap", self.overlap.as_str().to_owned(), other.overlap.as_str().to_owned()),
        ];
        let differ = pairs.into_iter().filter(|(_, a, b)| a != b);
        differ.map(|(name, a, b)| format!("--{name} is {b}, not {a}")).collect()
    }
}

/// A job as it stands in the table.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Job {
    /// What its runs are.
    pub job: NewJob,
    /// When it was added.
    pub created_at: Timestamp,
    /// Its newest run that is not over.
    pub live: Option<i64>,
}

/// A trigger as it stands in the table.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Trigger {
    /// Made by the database.
    pub id: i64,
    /// Whose.
    pub job: String,
    /// When it is due, or why that cannot be read: a hand at the table may have written anything.
    pub when: Result<When, BadSchedule>,
    /// Not fired while it is paused.
    pub paused: bool,
    /// Due next; `None` where it is over, or waits for the end of a run.
    pub next_fire_at: Option<Timestamp>,
    /// The run whose end a fixed delay waits for.
    pub waits_for: Option<i64>,
}

impl Trigger {
    /// What should stand for a next instant that its plan does not have, or not yet: it was computed when the clock, or the
    /// rules of its time zone, were others. `None` where it is right, or due.
    pub fn corrected(&self, now: Timestamp) -> Option<Option<Timestamp>> {
        let (Some(next), Ok(when)) = (self.next_fire_at, &self.when) else { return None };
        if next <= now {
            return None;
        }
        let right = match when.plan {
            Plan::FixedDelay(_) => {
                let latest = when.after_end(now).map(|at| at.max(when.start));
                latest.filter(|latest| next > *latest).or(Some(next))
            }
            _ => when.after(now),
        };
        (right != Some(next)).then_some(right)
    }
}

/// What became of a planned instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It has its task.
    Fired,
    /// A run was not over.
    Overlap,
    /// Nobody fired it in time.
    Misfired,
    /// A task of its key was there already.
    Exists,
    /// Its trigger was paused.
    Paused,
}

impl Fate {
    /// Every fate.
    pub const ALL: [Self; 5] = [Self::Fired, Self::Overlap, Self::Misfired, Self::Exists, Self::Paused];

    /// The word in SQL, CLI and API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Fired => "fired",
            Self::Overlap => "overlap",
            Self::Misfired => "misfired",
            Self::Exists => "exists",
            Self::Paused => "paused",
        }
    }
}

impl FromStr for Fate {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|fate| fate.as_str() == word);
        known.ok_or_else(|| format!("{word:?} is no fate of an instant"))
    }
}

/// Planned instants and what became of them: one, or several in a row with one fate.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlannedInstant {
    /// Which trigger; `None` for a manual run.
    pub trigger: Option<i64>,
    /// Which instants.
    pub planned: Passed,
    /// What became of them.
    pub fate: Fate,
    /// The run: the one they have, or the one that stood in their way.
    pub task: Option<i64>,
    /// When that was decided.
    pub at: Timestamp,
}
