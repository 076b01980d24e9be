//! Durations as people write them: `90s`, `5m`, `1h 30m`, `7d`.
//!
//! A newtype over `humantime`, so that its reason for refusing a text is kept, and so that `5M`, which it reads as five
//! *months*, is refused: nobody means that in a queue's configuration.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// The longest duration that is accepted.
pub const DURATION_MAX: Duration = Duration::from_hours(366 * 24);

/// Longer texts and longer numbers are no durations, and could overflow the parser's sums.
const TEXT_MAX: usize = 64;
const DIGITS_MAX: usize = 11;

/// A duration that reads and prints as people write it; also for command line options.
///
/// ```
/// use permitq::config::HumanDuration;
/// let lease: HumanDuration = "1h 30m".parse().unwrap();
/// assert_eq!(lease.0.as_secs(), 5400);
/// assert!("5M".parse::<HumanDuration>().unwrap_err().to_string().contains("5 months"));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct HumanDuration(pub Duration);

/// Why a text is no duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoDuration {
    /// A number alone.
    #[error("{0} has no unit; write {0}s for seconds")]
    Bare(String),
    /// `M`, which is easily taken for minutes.
    #[error("{number}M means {number} months; write {number}m for minutes", number = .0.escape_debug())]
    Months(String),
    /// Months and years differ in length.
    #[error("{0:?} is no fixed length; write days, such as 30d")]
    Calendar(String),
    /// `none`, `never` and the like.
    #[error("{0:?} is no duration: nothing here may be without a bound")]
    Unbounded(String),
    /// Before zero.
    #[error("{} is negative", .0.escape_debug())]
    Negative(String),
    /// Neither a unit of ours nor of the calendar.
    #[error("unknown unit {0:?}; the units are ms, s, m, h, d, w")]
    Unit(String),
    /// Above [`DURATION_MAX`].
    #[error("longer than 366 days")]
    TooLong,
    /// Anything else; the reason is the parser's own.
    #[error("{text:?} is no duration: {reason}; write a number and a unit, such as 90s, 5m or 1h 30m")]
    Malformed {
        /// What was written.
        text: String,
        /// What is wrong with it.
        reason: String,
    },
}

impl FromStr for HumanDuration {
    type Err = NoDuration;

    fn from_str(text: &str) -> Result<Self, NoDuration> {
        let text = text.trim();
        if text.len() > TEXT_MAX
            || text.split(|c: char| !c.is_ascii_digit()).any(|run| run.len() > DIGITS_MAX)
        {
            return Err(NoDuration::TooLong);
        }
        if text.starts_with('-') {
            return Err(NoDuration::Negative(text.to_owned()));
        }
        if ["none", "never", "off", "infinite", "infinity", "unlimited"]
            .contains(&text.to_ascii_lowercase().as_str())
        {
            return Err(NoDuration::Unbounded(text.to_owned()));
        }
        if let Some(refusal) = calendar(text) {
            return Err(refusal);
        }
        let duration = humantime::parse_duration(text).map_err(|error| match error {
            humantime::DurationError::UnknownUnit { unit, value, .. } if unit.is_empty() => {
                NoDuration::Bare(value.to_string())
            }
            humantime::DurationError::UnknownUnit { unit, .. } => NoDuration::Unit(unit),
            other => NoDuration::Malformed { text: text.to_owned(), reason: other.to_string() },
        })?;
        if duration > DURATION_MAX { Err(NoDuration::TooLong) } else { Ok(Self(duration)) }
    }
}

/// The refusal of the first calendar unit in a text that otherwise looks like a duration.
fn calendar(text: &str) -> Option<NoDuration> {
    if !text.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let mut number = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let same = |c: char| c.is_alphabetic() == first.is_alphabetic();
        let (run, tail) = rest.split_at(rest.find(|c| !same(c)).unwrap_or(rest.len()));
        rest = tail;
        match run {
            "M" if !number.is_empty() => return Some(NoDuration::Months(number)),
            "M" | "month" | "months" | "y" | "yr" | "yrs" | "year" | "years" => {
                return Some(NoDuration::Calendar(format!("{number}{run}")));
            }
            _ => run.trim().clone_into(&mut number),
        }
    }
    None
}

impl fmt::Display for HumanDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Written out here, because `humantime` prints 60 days as months, which are refused when read.
        const UNITS: [(u128, &str); 7] = [
            (86_400_000_000_000, "d"),
            (3_600_000_000_000, "h"),
            (60_000_000_000, "m"),
            (1_000_000_000, "s"),
            (1_000_000, "ms"),
            (1_000, "us"),
            (1, "ns"),
        ];
        let mut rest = self.0.as_nanos();
        if rest == 0 {
            return f.write_str("0s");
        }
        let mut gap = "";
        for (length, unit) in UNITS {
            if rest >= length {
                write!(f, "{gap}{}{unit}", rest / length)?;
                rest %= length;
                gap = " ";
            }
        }
        Ok(())
    }
}

impl From<HumanDuration> for Duration {
    fn from(duration: HumanDuration) -> Self {
        duration.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_people_write_is_read() {
        for (text, millis) in [
            ("0", 0),
            ("0s", 0),
            ("250ms", 250),
            ("1.5s", 1_500),
            (" 90s ", 90_000),
            ("5m", 300_000),
            ("5 minutes", 300_000),
            ("1h30m", 5_400_000),
            ("7d", 604_800_000),
            ("366d", 31_622_400_000),
        ] {
            let read: HumanDuration = text.parse().unwrap();
            assert_eq!(read.0, Duration::from_millis(millis), "{text}");
            assert_eq!(read.to_string().parse(), Ok(read), "{text}");
        }
    }

    #[test]
    fn a_refusal_says_why_and_what_to_write() {
        for (text, words) in [
            ("5M", "5M means 5 months; write 5m for minutes"),
            ("5 M", "write 5m for minutes"),
            ("1h 5M", "5M means 5 months"),
            ("2months", "no fixed length"),
            ("1y", "write days, such as 30d"),
            ("90", "write 90s for seconds"),
            ("1h 30", "30 has no unit"),
            ("-5s", "-5s is negative"),
            ("-5\n\u{1b}[2Js", "-5\\n\\u{1b}[2Js is negative"),
            ("5\u{1b}M", "5\\u{1b}M means"),
            ("none", "without a bound"),
            ("Never", "without a bound"),
            ("367d", "longer than 366 days"),
            ("99999999999999999999s", "longer than 366 days"),
            ("5S", "unknown unit \"S\"; the units are ms, s, m, h, d, w"),
            ("", "value was empty"),
            ("PT5M", "expected number at 0"),
            ("soon", "such as 90s, 5m or 1h 30m"),
        ] {
            let refusal = text.parse::<HumanDuration>().unwrap_err().to_string();
            assert!(refusal.contains(words), "{text}: {refusal}");
        }
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read(millis in 0..=31_622_400_000u64, nanos in 0..1_000_000u64) {
            for duration in [Duration::from_millis(millis), Duration::from_nanos(nanos)] {
                prop_assert_eq!(HumanDuration(duration).to_string().parse(), Ok(HumanDuration(duration)));
            }
        }

        #[test]
        fn no_text_breaks_the_parser(text in "[0-9a-zA-Zµ. -]{0,70}") {
            if let Ok(read) = text.parse::<HumanDuration>() {
                prop_assert!(read.0 <= DURATION_MAX);
            }
        }
    }
}
