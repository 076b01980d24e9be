//! Durations in options and batch lines: `90s`, `5m`, `1h 30m`. `humantime` reads `5M` as five months, which nobody
//! means in a queue.

use std::str::FromStr;
use std::time::Duration;

use serde::de::{Deserialize, Deserializer, Error, Visitor};

/// No delay or timeout is longer.
const MAX: Duration = Duration::from_hours(366 * 24);

/// A duration as people write it; in JSON also a number of seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HumanDuration(pub(super) Duration);

impl FromStr for HumanDuration {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let duration = humantime::parse_duration(text)
            .map_err(|error| format!("{text:?}: {error}; write a number and a unit, such as 90s or 5m"))?;
        for unit in text.split(|c: char| !c.is_alphabetic()) {
            if unit == "M" {
                let minutes = text.replace('M', "m");
                let months = text.trim_end_matches('M').trim_end();
                return Err(format!("{text} means {months} months; write {minutes}"));
            }
            if unit.starts_with("mo") || unit.starts_with('y') {
                return Err(format!("{text:?} is no fixed length; write days, such as 30d"));
            }
        }
        if duration > MAX { Err(format!("{text:?} is longer than 366 days")) } else { Ok(Self(duration)) }
    }
}

impl<'de> Deserialize<'de> for HumanDuration {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(SecondsOrText)
    }
}

struct SecondsOrText;

impl Visitor<'_> for SecondsOrText {
    type Value = HumanDuration;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("seconds as a number, or a text such as \"5m\"")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<HumanDuration, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_f64<E: Error>(self, seconds: f64) -> Result<HumanDuration, E> {
        match Duration::try_from_secs_f64(seconds) {
            Ok(duration) if duration <= MAX => Ok(HumanDuration(duration)),
            _ => Err(E::custom(format!("{seconds} seconds: it must be from 0 to 366 days"))),
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "exact far beyond the longest duration")]
    fn visit_u64<E: Error>(self, seconds: u64) -> Result<HumanDuration, E> {
        self.visit_f64(seconds as f64)
    }

    #[expect(clippy::cast_precision_loss, reason = "exact far beyond the longest duration")]
    fn visit_i64<E: Error>(self, seconds: i64) -> Result<HumanDuration, E> {
        self.visit_f64(seconds as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn months_are_refused_with_what_was_meant() {
        let refusal = |text: &str| text.parse::<HumanDuration>().unwrap_err();
        assert_eq!(refusal("5M"), "5M means 5 months; write 5m");
        assert!(refusal("2months").contains("write days"));
        assert!(refusal("1y").contains("write days"));
        assert!(refusal("400d").contains("longer than 366 days"));
        assert!(refusal("90").contains("such as 90s"));
        assert!(refusal("-5s").contains("such as 90s"));
    }

    #[test]
    fn numbers_are_seconds() {
        let read = |text: &str| serde_json::from_str::<HumanDuration>(text).map(|read| read.0.as_millis());
        assert_eq!(read("1.5").unwrap(), 1_500);
        assert_eq!(read("90").unwrap(), 90_000);
        assert_eq!(read("\"5m\"").unwrap(), 300_000);
        assert!(read("-1").unwrap_err().to_string().contains("from 0 to 366 days"));
        assert!(read("1e300").is_err());
        assert!(read("true").unwrap_err().to_string().contains("seconds as a number"));
    }
}
