//! When a trigger is due.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::{BadSchedule, Cron, CronDialect};

/// How its instants follow each other.
#[derive(Clone, Debug)]
pub enum Plan {
    /// By the calendar of its time zone.
    Cron(Cron),
    /// At its start, and every so long after it, whatever the runs take.
    Interval(Duration),
    /// At its start, and so long after each of its runs has ended.
    FixedDelay(Duration),
    /// At its start, and never again.
    Once,
}

impl Plan {
    /// The word in SQL, CLI and API.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Cron(_) => "cron",
            Self::Interval(_) => "interval",
            Self::FixedDelay(_) => "fixed_delay",
            Self::Once => "once",
        }
    }

    /// The expression and its dialect.
    pub fn cron(&self) -> Option<(&str, CronDialect)> {
        match self {
            Self::Cron(cron) => Some((cron.expression(), cron.dialect())),
            _ => None,
        }
    }

    /// The interval or delay.
    pub fn every(&self) -> Option<Duration> {
        match self {
            Self::Interval(every) | Self::FixedDelay(every) => Some(*every),
            Self::Cron(_) | Self::Once => None,
        }
    }
}

/// When a trigger is due: its plan, in a time zone, between a start and an end.
#[derive(Clone, Debug)]
pub struct When {
    /// How its instants follow each other.
    pub plan: Plan,
    /// Whose calendar it follows; also the day in a business key.
    pub zone: TimeZone,
    /// Not due before; the first instant of everything but cron.
    pub start: Timestamp,
    /// Not due after.
    pub end: Option<Timestamp>,
}

/// The shortest and the longest time between two runs.
const EVERY: std::ops::RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_hours(366 * 24);

impl When {
    /// A time zone by its IANA name.
    ///
    /// # Errors
    /// Where there is none of this name.
    pub fn zone(name: &str) -> Result<TimeZone, BadSchedule> {
        TimeZone::get(name).map_err(|_| BadSchedule::Zone(name.to_owned()))
    }

    /// Whether it is ever due after `now`, and what is wrong where not.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn check(&self, now: Timestamp) -> Result<(), BadSchedule> {
        if self.plan.every().is_some_and(|every| !EVERY.contains(&every)) {
            return Err(BadSchedule::Every);
        }
        if let Some(end) = self.end.filter(|end| *end < self.start) {
            return Err(BadSchedule::End(end));
        }
        if self.first(now).is_some() {
            return Ok(());
        }
        let why = match (&self.plan, self.end) {
            (Plan::Once, _) => {
                format!("it is {now} by the database's clock; name an instant that is yet to come")
            }
            (_, Some(end)) => format!("its first instant would come after its end, {end}; name a later end"),
            (Plan::Cron(cron), None) if cron.dialect() == CronDialect::Quartz => {
                "no such day will come; look at day, month and year".to_owned()
            }
            (_, None) => "no such day will come; look at day and month".to_owned(),
        };
        Err(BadSchedule::Never(self.to_string(), why))
    }

    /// The first instant not before `now`. A fixed delay that waits for no run is due at its start, or at once.
    pub fn first(&self, now: Timestamp) -> Option<Timestamp> {
        match self.plan {
            Plan::FixedDelay(_) => self.ending(self.start.max(now)),
            _ => self.after(before(now)),
        }
    }

    /// The first instant strictly after this one. That of a fixed delay follows from its run, so there is none here.
    pub fn after(&self, instant: Timestamp) -> Option<Timestamp> {
        let next = match &self.plan {
            _ if instant < self.start && !matches!(self.plan, Plan::Cron(_)) => Some(self.start),
            Plan::Cron(cron) => cron.after(instant.max(before(self.start)), &self.zone),
            Plan::Interval(every) => {
                let every = i64::try_from(every.as_micros()).ok()?;
                let steps = (instant.as_microsecond() - self.start.as_microsecond()).div_euclid(every) + 1;
                let micros = every.checked_mul(steps)?.checked_add(self.start.as_microsecond())?;
                Timestamp::from_microsecond(micros).ok()
            }
            Plan::FixedDelay(_) | Plan::Once => None,
        }?;
        self.ending(next)
    }

    /// The instant that follows from the end of a fixed delay's run.
    pub fn after_end(&self, ended: Timestamp) -> Option<Timestamp> {
        let Plan::FixedDelay(every) = self.plan else { return None };
        self.ending(ended.checked_add(every).ok()?)
    }

    /// The same planned instant, or none where it is over by then.
    fn ending(&self, instant: Timestamp) -> Option<Timestamp> {
        // What every database can keep.
        const LAST: i64 = 253_402_300_799;
        let most = self.end.map_or(LAST, |end| end.as_second().min(LAST));
        (self.end.is_none_or(|end| instant <= end) && instant.as_second() <= most).then_some(instant)
    }
}

/// The last instant before this one, as databases count.
pub(super) fn before(instant: Timestamp) -> Timestamp {
    Timestamp::from_microsecond(instant.as_microsecond() - 1).unwrap_or(Timestamp::MIN)
}

impl fmt::Display for When {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let zone = self.zone.iana_name().unwrap_or("UTC");
        match &self.plan {
            Plan::Cron(cron) => {
                let quartz = if cron.dialect() == CronDialect::Quartz { "quartz " } else { "" };
                write!(f, "{quartz}{} ({zone})", cron.expression())
            }
            Plan::Interval(every) => write!(f, "every {}", humantime::format_duration(*every)),
            Plan::FixedDelay(every) => write!(f, "{} after the end", humantime::format_duration(*every)),
            Plan::Once => write!(f, "at {}", self.start),
        }
    }
}
