//! Cron expressions, in the two dialects that people know. The matching is croner's; here is what stands before it.

use std::cmp::Ordering;
use std::str::FromStr;

use croner::errors::CronError;
use croner::parser::{CronParser, Seconds, Year};
use croner::{CivilDate, CivilDateTime, CivilTime, CronDateTime, Resolution, Weekday};
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{SignedDuration, Timestamp, ZonedDateTime};

use super::{BadSchedule, quartz};

/// How a cron expression is read. Never guessed from its fields: `2-6` is Monday to Friday in one, Tuesday to Saturday in
/// the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CronDialect {
    /// Five fields, Sunday is 0 or 7; both days restricted: either may match.
    Unix,
    /// Six or seven fields, seconds first and the year last, Sunday is 1; one of the days is `?`.
    Quartz,
}

impl CronDialect {
    /// The word in SQL, CLI and API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unix => "unix",
            Self::Quartz => "quartz",
        }
    }
}

impl FromStr for CronDialect {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        match word {
            "unix" => Ok(Self::Unix),
            "quartz" => Ok(Self::Quartz),
            _ => Err(format!("{word:?} is no dialect of cron")),
        }
    }
}

/// A cron expression that was read.
#[derive(Clone, Debug)]
pub struct Cron {
    expression: String,
    dialect: CronDialect,
    /// Several where the times of day are a list: each is a fixed time then, and follows its rule at a change of clock.
    parts: Vec<croner::Cron>,
}

/// More fixed times of day than this are no list that somebody thought of one by one.
const LIST_MAX: usize = 100;

impl Cron {
    /// Reads an expression.
    ///
    /// # Errors
    /// With what is wrong with it and what to write instead.
    pub fn parse(expression: &str, dialect: CronDialect) -> Result<Self, BadSchedule> {
        let refuse = |why: String| BadSchedule::Expression { expression: expression.to_owned(), why };
        let expression = expression.split_whitespace().collect::<Vec<_>>().join(" ");
        if let Some(odd) = expression.chars().find(|c| !c.is_ascii_graphic() && *c != ' ') {
            return Err(refuse(format!("no cron expression has the character {odd:?}")));
        }
        let fields = quartz::fields(&expression, dialect).map_err(refuse)?;
        let parser = CronParser::builder();
        let parser = match dialect {
            CronDialect::Unix => parser.seconds(Seconds::Disallowed).year(Year::Disallowed).build(),
            CronDialect::Quartz => {
                parser.seconds(Seconds::Required).alternative_weekdays(true).sloppy_ranges(true).build()
            }
        };
        let read =
            |fields: &[String]| parser.parse(&fields.join(" ")).map_err(|error| refuse(error.to_string()));
        // Where the date begins; before it are the times of day.
        let date = if dialect == CronDialect::Quartz { 3 } else { 2 };
        let (time, date) = fields.split_at(date);
        let parts = fixed_times(time).into_iter().map(|time| read(&[&time[..], date].concat()));
        let parts = parts.collect::<Result<_, _>>()?;
        Ok(Self { expression, dialect, parts })
    }

    /// As it was written.
    pub fn expression(&self) -> &str {
        &self.expression
    }

    /// How it is read.
    pub fn dialect(&self) -> CronDialect {
        self.dialect
    }

    /// The first instant strictly after this one; `None` where there is none any more. An expression that never matches
    /// takes a tenth of a second to tell.
    pub fn after(&self, instant: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        // croner looks at whole seconds, and at the calendar of the zone.
        let second = Timestamp::from_second(instant.as_microsecond().div_euclid(1_000_000)).ok()?;
        let from = Local(second.to_zoned_datetime(zone.clone()));
        let next = |cron: &croner::Cron| cron.find_next_occurrence(&from, false).ok();
        self.parts.iter().filter_map(next).map(|local| local.0.timestamp()).min()
    }
}

/// Every combination of second, minute and hour, where all of them are numbers; otherwise the fields as they are.
fn fixed_times(fields: &[String]) -> Vec<Vec<String>> {
    let plain = |field: &String| field.bytes().all(|byte| byte.is_ascii_digit() || byte == b',');
    let count = || fields.iter().map(|field| field.split(',').count()).product::<usize>();
    if !fields.iter().all(plain) || count() > LIST_MAX {
        return vec![fields.to_vec()];
    }
    fields.iter().fold(vec![Vec::new()], |times, field| {
        let with = |time: &Vec<String>, value: &str| {
            let mut time = time.clone();
            time.push(value.to_owned());
            time
        };
        times.iter().flat_map(|time| field.split(',').map(|value| with(time, value))).collect()
    })
}

/// croner's view of an instant in a zone.
#[derive(Clone)]
struct Local(ZonedDateTime);

impl CronDateTime for Local {
    fn to_civil(&self) -> CivilDateTime {
        let local = self.0.datetime();
        let unsigned = |part: i8| u32::from(part.unsigned_abs());
        let date =
            CivilDate::from_ymd(i32::from(local.year()), unsigned(local.month()), unsigned(local.day()));
        let time = CivilTime::from_hms_opt(
            unsigned(local.hour()),
            unsigned(local.minute()),
            unsigned(local.second()),
        );
        // jiff's parts are always in range.
        CivilDateTime::new(date.unwrap_or_else(|_| unreachable!()), time.unwrap_or(CivilTime::MIDNIGHT))
    }

    fn civil_weekday(&self) -> Weekday {
        Weekday::from_days_from_sunday(u32::from(self.0.weekday().to_sunday_zero_offset().unsigned_abs()))
    }

    fn resolve_civil(&self, civil: CivilDateTime) -> Result<Resolution<Self>, CronError> {
        let part = |part: u32| i8::try_from(part).map_err(|_| CronError::InvalidDate);
        let year = i16::try_from(civil.year()).map_err(|_| CronError::InvalidDate)?;
        let local = DateTime::new(
            year,
            part(civil.month())?,
            part(civil.day())?,
            part(civil.hour())?,
            part(civil.minute())?,
            part(civil.second())?,
            0,
        )
        .map_err(|_| CronError::InvalidDate)?;
        let ambiguous = self.0.time_zone().to_ambiguous_zoned_datetime(local);
        let invalid = |_| CronError::InvalidTime;
        Ok(match ambiguous.offset() {
            AmbiguousOffset::Unambiguous { .. } => {
                Resolution::Single(Self(ambiguous.unambiguous().map_err(invalid)?))
            }
            AmbiguousOffset::Fold { .. } => {
                let earlier = ambiguous.clone().earlier().map_err(invalid)?;
                Resolution::Ambiguous(Self(earlier), Self(ambiguous.later().map_err(invalid)?))
            }
            AmbiguousOffset::Gap { .. } => Resolution::Gap,
        })
    }

    fn checked_add_seconds(&self, seconds: i64) -> Option<Self> {
        self.0.checked_add(SignedDuration::from_secs(seconds)).ok().map(Self)
    }

    fn cmp_instant(&self, other: &Self) -> Ordering {
        self.0.timestamp().cmp(&other.0.timestamp())
    }
}
