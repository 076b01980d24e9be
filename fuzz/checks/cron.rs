//! A cron expression that is taken reads the same again, and its instants follow each other with none between them; what is
//! refused says so on one line.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use permitq::model::schedule::{Cron, CronDialect};

/// Zones with a change of clock of an hour, of half an hour, and without any.
const ZONES: [&str; 4] = ["America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "UTC"];
/// From 1970 to 2106, in seconds.
const SPAN: i64 = 1 << 32;

pub(crate) fn check((quartz, zone, from, text): (bool, u8, i64, &str)) {
    let dialect = if quartz { CronDialect::Quartz } else { CronDialect::Unix };
    match Cron::parse(text, dialect) {
        Ok(cron) => {
            let zone = TimeZone::get(ZONES[usize::from(zone) % ZONES.len()]).unwrap();
            let again = Cron::parse(cron.expression(), dialect)
                .unwrap_or_else(|e| panic!("{text:?}: {:?}: {e}", cron.expression()));
            let mut last = Timestamp::from_second(from.rem_euclid(SPAN)).unwrap();
            for _ in 0..3 {
                let next = cron.after(last, &zone);
                assert_eq!(again.after(last, &zone), next, "{text:?} after {last}");
                let Some(next) = next else { break };
                assert!(next > last && next.subsec_nanosecond() == 0, "{text:?}: {next} after {last}");
                let between =
                    Timestamp::from_microsecond(last.as_microsecond().midpoint(next.as_microsecond()));
                let between = between.unwrap();
                assert_eq!(
                    cron.after(between, &zone),
                    Some(next),
                    "{text:?} after {between}, as after {last}"
                );
                last = next;
            }
        }
        Err(refusal) => {
            let words = refusal.to_string();
            assert!(!words.is_empty() && !words.contains(['\n', '\u{1b}', '\0']), "{text:?}: {words:?}");
        }
    }
}
