//! Instants and spans as people read them. "Now" is always the database's clock: this host's may be wrong.

use std::time::Duration;

use jiff::Timestamp;

use super::fail::Failure;
use crate::config::HumanDuration;
use crate::model::RunAt;
use crate::store::Store;

/// Now, by the database's clock.
pub(super) async fn now(store: &mut Store) -> Result<Timestamp, Failure> {
    let micros = store.clock().await?;
    Timestamp::from_microsecond(micros)
        .map_err(|error| Failure::Failed(format!("the database's clock says {micros}: {error}")))
}

/// An instant that an option or a batch line names.
pub(super) fn parse(text: &str) -> Result<Timestamp, String> {
    let instant: Timestamp = text.trim().parse().map_err(|_| {
        format!(
            "{text:?} is no instant; write one with its offset, such as 2026-12-01T09:00:00Z or \
             2026-12-01T10:00:00+01:00"
        )
    })?;
    // Not every database keeps instants before its epoch.
    if instant < Timestamp::UNIX_EPOCH { Err(format!("{text:?} is before 1970")) } else { Ok(instant) }
}

/// An instant, or a span from now on, that an option or a batch line names.
pub(super) fn at_or_in(text: &str) -> Result<RunAt, String> {
    match text.trim().parse::<Timestamp>() {
        Ok(_) => parse(text).map(RunAt::At),
        Err(_) => match text.parse::<HumanDuration>() {
            Ok(span) => Ok(RunAt::In(span.0)),
            Err(_) => Err(format!(
                "{text:?} is neither an instant such as 2026-12-01T09:00:00Z nor a span such as 30m"
            )),
        },
    }
}

/// In UTC, to the second.
pub(super) fn utc(instant: Timestamp) -> String {
    instant.strftime("%Y-%m-%d %H:%M:%S UTC").to_string()
}

/// `12 s ago`, `in 3 m`, `now`.
pub(super) fn relative(now: Timestamp, instant: Timestamp) -> String {
    let distance = span(now.duration_until(instant).unsigned_abs());
    match distance.as_str() {
        "0 s" => "now".to_owned(),
        _ if instant > now => format!("in {distance}"),
        _ => format!("{distance} ago"),
    }
}

/// Both.
pub(super) fn both(now: Timestamp, instant: Timestamp) -> String {
    format!("{} ({})", relative(now, instant), utc(instant))
}

/// The two largest units of a span: `12 s`, `3 m 5 s`, `2 d 4 h`.
pub(super) fn span(span: Duration) -> String {
    const UNITS: [(u64, &str); 4] = [(86_400, "d"), (3_600, "h"), (60, "m"), (1, "s")];
    let seconds = span.as_secs();
    let Some(first) = UNITS.iter().position(|(length, _)| seconds >= *length) else {
        return "0 s".to_owned();
    };
    let (length, unit) = UNITS[first];
    let text = format!("{} {unit}", seconds / length);
    match UNITS.get(first + 1).map(|(next, unit)| (seconds % length / next, unit)) {
        None | Some((0, _)) => text,
        Some((rest, unit)) => format!("{text} {rest} {unit}"),
    }
}

/// A span whose parts of a second may matter: `80 ms`, `2.4 s`, `3 m 5 s`.
pub(super) fn short(span: Duration) -> String {
    match span.as_millis() {
        millis @ ..1000 => format!("{millis} ms"),
        ..10_000 => format!("{:.1} s", span.as_secs_f64()),
        _ => self::span(span),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_have_two_units() {
        for (seconds, text) in [
            (0, "0 s"),
            (12, "12 s"),
            (180, "3 m"),
            (185, "3 m 5 s"),
            (7_500, "2 h 5 m"),
            (3_601, "1 h"),
            (187_200, "2 d 4 h"),
        ] {
            assert_eq!(span(Duration::from_secs(seconds)), text);
        }
    }

    #[test]
    fn short_spans_have_their_parts_of_a_second() {
        let short = |millis| short(Duration::from_millis(millis));
        assert_eq!([short(0), short(80), short(2449), short(10_900)], ["0 ms", "80 ms", "2.4 s", "10 s"]);
    }

    #[test]
    fn before_and_after() {
        let now: Timestamp = "2026-12-01T09:00:00Z".parse().unwrap();
        let at = |text: &str| relative(now, text.parse().unwrap());
        assert_eq!(at("2026-12-01T08:59:48Z"), "12 s ago");
        assert_eq!(at("2026-12-01T09:03:00Z"), "in 3 m");
        assert_eq!(at("2026-12-01T09:00:00.4Z"), "now");
        assert_eq!(both(now, now), "now (2026-12-01 09:00:00 UTC)");
    }

    #[test]
    fn an_instant_needs_its_offset() {
        assert!(parse("2026-12-01T10:00:00+01:00").is_ok());
        for text in ["tomorrow", "2026-12-01", "2026-12-01T10:00:00", ""] {
            assert!(parse(text).unwrap_err().contains("with its offset"), "{text}");
        }
        assert!(parse("1969-12-31T00:00:00Z").unwrap_err().contains("before 1970"));
    }
}
