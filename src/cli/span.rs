//! Durations in batch lines: as in the configuration, and also a number of seconds.

use std::time::Duration;

use serde::de::{Deserialize, Deserializer, Error, Visitor};

use crate::config::{DURATION_MAX, HumanDuration};

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
            Ok(duration) if duration <= DURATION_MAX => Ok(HumanDuration(duration)),
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
