//! The business key of a run: by its template, so that a report of one day exists once, whoever asks for it.

use std::fmt;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::BadSchedule;
use crate::model::BIZ_KEY_MAX;

/// How the business key of a run is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyTemplate(String);

/// What stands in a template, and an example of what it becomes. Dates and times are those of the trigger's zone.
const PLACES: [(&str, &str); 5] = [
    ("{job}", ""),
    ("{instant}", "2026-12-01T08:00:00.000001Z"),
    ("{month}", "2026-12"),
    ("{date}", "2026-12-01"),
    ("{time}", "09:00:00"),
];

impl Default for KeyTemplate {
    fn default() -> Self {
        Self("{job}/{instant}".to_owned())
    }
}

impl fmt::Display for KeyTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl KeyTemplate {
    /// Reads a template for the runs of this job.
    ///
    /// # Errors
    /// A placeholder that nobody knows; a key that would be the same for every run, or too long.
    pub fn parse(template: &str, job: &str) -> Result<Self, BadSchedule> {
        let refuse = |why: String| BadSchedule::Key(template.to_owned(), why);
        let known = PLACES.map(|(place, _)| place).join(", ");
        let rest = PLACES.iter().fold(template.to_owned(), |text, (place, _)| text.replace(place, ""));
        if rest.contains(['{', '}']) {
            return Err(refuse(format!("has an unknown placeholder; there are {known}")));
        }
        if !PLACES[1..].iter().any(|(place, _)| template.contains(place)) {
            return Err(refuse(
                "gives every run the same key, so only the first would ever run; add {date} or {instant}"
                    .to_owned(),
            ));
        }
        let longest = PLACES
            .iter()
            .fold(template.replace("{job}", job), |text, (place, example)| text.replace(place, example));
        let length = longest.chars().count();
        if length > BIZ_KEY_MAX || longest.chars().any(char::is_control) {
            return Err(refuse(format!(
                "makes keys of {length} characters: they must have 1 to {BIZ_KEY_MAX}, none of them control \
                 characters"
            )));
        }
        Ok(Self(template.to_owned()))
    }

    /// The key of this job's run that is planned for this instant.
    pub fn key(&self, job: &str, planned: Timestamp, zone: &TimeZone) -> String {
        let local = planned.to_zoned_datetime(zone.clone());
        let mut key = String::new();
        let mut rest = &*self.0;
        // One pass, so that a brace in the job's name stays what it is.
        while let Some(at) = rest.find('{') {
            key.push_str(&rest[..at]);
            rest = &rest[at..];
            let (place, value) = match rest.split_once('}').map_or("", |(place, _)| place) {
                "{job" => ("{job}", job.to_owned()),
                "{instant" => ("{instant}", planned.to_string()),
                "{month" => ("{month}", local.strftime("%Y-%m").to_string()),
                "{date" => ("{date}", local.strftime("%Y-%m-%d").to_string()),
                "{time" => ("{time}", local.strftime("%H:%M:%S").to_string()),
                _ => ("{", "{".to_owned()),
            };
            key.push_str(&value);
            rest = &rest[place.len()..];
        }
        key + rest
    }
}
