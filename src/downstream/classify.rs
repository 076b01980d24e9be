//! What an HTTP exchange means: for the task (done, again, never) and for the permit (free, or cooling).
//!
//! The two questions are independent. The second decides whether the cap holds, so it is answered from proof alone:
//! an end is clear only where the downstream's own answer was read to its end, or where no request can have been
//! sent. Whatever is in doubt is unclear, and its permit cools.
//!
//! | seen | task | permit |
//! |---|---|---|
//! | 2xx | succeeded | free |
//! | 503, or what `down_statuses` says | again, costing no attempt, once the downstream is up | free |
//! | 408, 425, 429, 5xx and beyond, and what `retry_statuses` adds | again, not before `Retry-After` | free |
//! | other 4xx, 3xx, and what `fail_statuses` adds | failed | free |
//! | 1xx as the last word | failed | cools: the connection now speaks something else |
//! | any status in `unclear_statuses` | as above | cools |
//! | refused, unreachable | again, costing no attempt, once the downstream is up | free: nothing was sent |
//! | unknown host, TLS failed | again | free: nothing was sent |
//! | connection broke before the answer's end | again | cools |
//! | we stopped waiting | again | cools, unless the downstream stops when we hang up |

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::fmt::rfc2822::DateTimeParser;
use reqwest::StatusCode;

use super::text::{ERROR_MAX, clean};
use crate::model::{End, Outcome, Verdict, Why};

/// Statuses that mean "still working", or come from a gateway in front of a downstream that may be.
pub const UNCLEAR_STATUSES: [u16; 9] = [202, 408, 502, 504, 520, 521, 522, 523, 524];

/// Statuses that mean "not now, whoever asks".
pub const DOWN_STATUSES: [u16; 1] = [503];

/// The most of an answer that is kept, in bytes.
pub const MAX_RESULT_BYTES: usize = 64 << 10;

/// A `Retry-After` is taken for no more than this, as RFC 9111 does with every count of seconds.
const RETRY_AFTER_MAX: u64 = 1 << 31;

/// What was seen of one HTTP exchange.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// The answer was read to its end.
    Answer {
        /// The HTTP status.
        status: u16,
        /// When the downstream wants to be asked again: see [`retry_after`].
        retry_after: Option<Duration>,
        /// The beginning of the body, as it came.
        body: Vec<u8>,
        /// There was more of the body; it was read and thrown away.
        more: bool,
    },
    /// No connection came about, so no request can have been sent.
    NotConnected(String),
    /// The same, as nobody is there who would take a connection.
    Refused(String),
    /// The connection ended before the answer did, and not by us.
    Broken {
        /// The status, where the answer's head had come.
        status: Option<u16>,
        /// What broke.
        error: String,
    },
    /// We hung up: the downstream was silent for too long.
    TimedOut {
        /// The status, where the answer's head had come.
        status: Option<u16>,
        /// What we waited for.
        error: String,
    },
}

/// What a downstream's answers mean, where downstreams differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// After these statuses the call may still run.
    pub unclear_statuses: BTreeSet<u16>,
    /// The downstream ends a call when its caller hangs up.
    pub stops_on_disconnect: bool,
    /// The most of an answer that is kept, in bytes.
    pub max_result_bytes: usize,
    /// These statuses say that the downstream as a whole is down.
    pub down_statuses: BTreeSet<u16>,
    /// After these statuses another attempt may do better, besides those of the table above.
    pub retry_statuses: BTreeSet<u16>,
    /// After these statuses none will, whatever else is said of them.
    pub fail_statuses: BTreeSet<u16>,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            unclear_statuses: UNCLEAR_STATUSES.into(),
            stops_on_disconnect: false,
            max_result_bytes: MAX_RESULT_BYTES,
            down_statuses: DOWN_STATUSES.into(),
            retry_statuses: BTreeSet::new(),
            fail_statuses: BTreeSet::new(),
        }
    }
}

/// How the attempt ended. Texts in the outcome are cleaned of control characters and bounded.
pub fn classify(seen: Seen, rules: &Rules) -> Outcome {
    match seen {
        Seen::Answer { status, retry_after, body, more } => {
            let unclear = rules.unclear_statuses.contains(&status) || status < 200;
            Outcome {
                verdict: verdict(status, retry_after, &body, more, unclear, rules),
                end: if unclear { End::Unclear(Why::Status) } else { End::Clear },
                status: Some(status),
            }
        }
        Seen::NotConnected(error) => again(&error, End::Clear, None),
        Seen::Refused(error) => Outcome::down(clean(error.as_bytes(), false, ERROR_MAX), None),
        Seen::Broken { status, error } => again(&error, End::Unclear(Why::Connection), status),
        Seen::TimedOut { status, error } => {
            let end = if rules.stops_on_disconnect { End::Stopped } else { End::Unclear(Why::Timeout) };
            again(&error, end, status)
        }
    }
}

fn verdict(
    status: u16,
    after: Option<Duration>,
    body: &[u8],
    more: bool,
    unclear: bool,
    rules: &Rules,
) -> Verdict {
    // RFC 9110, 15: a status beyond 599 is invalid and treated like a 5xx.
    let again = matches!(status, 408 | 425 | 429 | 500..) || rules.retry_statuses.contains(&status);
    match status {
        200..=299 => {
            let result = clean(body, more, rules.max_result_bytes);
            Verdict::Succeeded { result: Some(result).filter(|text| !text.is_empty()) }
        }
        _ if rules.fail_statuses.contains(&status) => Verdict::Failed { error: error(status, body, more) },
        // Where the call may still run, it was taken on.
        _ if rules.down_statuses.contains(&status) && !unclear => {
            Verdict::Down { error: error(status, body, more), after }
        }
        _ if again => Verdict::Retry { error: error(status, body, more), after },
        _ => Verdict::Failed { error: error(status, body, more) },
    }
}

fn again(error: &str, end: End, status: Option<u16>) -> Outcome {
    let error = clean(error.as_bytes(), false, ERROR_MAX);
    Outcome { verdict: Verdict::Retry { error, after: None }, end, status }
}

/// `HTTP 404 Not Found: no such report`.
fn error(status: u16, body: &[u8], more: bool) -> String {
    let reason = StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason());
    let mut text = match reason {
        Some(reason) => format!("HTTP {status} {reason}"),
        None => format!("HTTP {status}"),
    };
    if (300..400).contains(&status) {
        text.push_str(" (redirects are not followed)");
    }
    let said = body.trim_ascii();
    if !said.is_empty() {
        text.push_str(": ");
        text.push_str(&clean(said, more, ERROR_MAX - text.len()));
    }
    text
}

/// The wait that a `Retry-After` header asks for: whole seconds, or an HTTP date in its one current form, which
/// counts from the answer's own `Date` so that nobody's clock needs to agree with ours. Anything else is ignored.
///
/// ```
/// use std::time::Duration;
/// use permitq::downstream::retry_after;
///
/// assert_eq!(retry_after("120", None), Some(Duration::from_secs(120)));
/// let date = Some("Mon, 30 Nov 2026 12:00:00 GMT");
/// assert_eq!(retry_after("Mon, 30 Nov 2026 12:01:00 GMT", date), Some(Duration::from_secs(60)));
/// assert_eq!(retry_after("Mon, 30 Nov 2026 12:01:00 GMT", None), None);
/// assert_eq!(retry_after("-1", None), None);
/// ```
pub fn retry_after(value: &str, date: Option<&str>) -> Option<Duration> {
    let seconds = if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
        // So many digits that they overflow ask for a long wait, not for none.
        value.parse().unwrap_or(RETRY_AFTER_MAX)
    } else {
        // A date that has passed means now.
        u64::try_from(http_date(value)? - http_date(date?)?).unwrap_or_default()
    };
    Some(Duration::from_secs(seconds.min(RETRY_AFTER_MAX)))
}

/// Seconds since 1970 of an IMF-fixdate such as `Sun, 06 Nov 1994 08:49:37 GMT` (RFC 9110, 5.6.7).
fn http_date(text: &str) -> Option<i64> {
    const FORM: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
    if text.len() != FORM.len() || !text.ends_with(" GMT") {
        return None;
    }
    DateTimeParser::new().parse_timestamp(text).ok().map(jiff::Timestamp::as_second)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, body: &str) -> Seen {
        let retry_after = Some(Duration::from_secs(7));
        Seen::Answer { status, retry_after, body: body.as_bytes().to_vec(), more: false }
    }

    /// `succeeded`, `retry` with the downstream's wait, `failed`.
    fn word(outcome: &Outcome) -> &'static str {
        match &outcome.verdict {
            Verdict::Succeeded { .. } => "succeeded",
            Verdict::Retry { after: Some(after), .. } if after.as_secs() == 7 => "retry after 7 s",
            Verdict::Retry { after: None, .. } => "retry",
            Verdict::Failed { .. } => "failed",
            Verdict::Down { after: Some(after), .. } if after.as_secs() == 7 => "down for 7 s",
            other => panic!("no answer leads to {other:?}"),
        }
    }

    #[test]
    fn every_status_has_its_verdict_and_its_end() {
        let (clear, cools) = (End::Clear, End::Unclear(Why::Status));
        let table = [
            (100..=199, "failed", cools),
            (200..=201, "succeeded", clear),
            (202..=202, "succeeded", cools),
            (203..=299, "succeeded", clear),
            (300..=399, "failed", clear),
            (400..=407, "failed", clear),
            (408..=408, "retry after 7 s", cools),
            (409..=424, "failed", clear),
            (425..=425, "retry after 7 s", clear),
            (426..=428, "failed", clear),
            (429..=429, "retry after 7 s", clear),
            (430..=499, "failed", clear),
            (500..=501, "retry after 7 s", clear),
            (502..=502, "retry after 7 s", cools),
            (503..=503, "down for 7 s", clear),
            (504..=504, "retry after 7 s", cools),
            (505..=519, "retry after 7 s", clear),
            (520..=524, "retry after 7 s", cools),
            (525..=999, "retry after 7 s", clear),
        ];
        let mut next = 100;
        for (statuses, verdict, end) in table {
            assert_eq!(*statuses.start(), next, "the table has no gap");
            next = statuses.end() + 1;
            for status in statuses {
                // A downstream that stops on disconnect says nothing about answers: nobody hung up.
                for stops_on_disconnect in [false, true] {
                    let rules = Rules { stops_on_disconnect, ..Rules::default() };
                    let outcome = classify(answer(status, "said"), &rules);
                    assert_eq!((word(&outcome), outcome.end), (verdict, end), "{status}");
                    assert_eq!(outcome.status, Some(status));
                }
            }
        }
        assert_eq!(next, 1000, "the table is complete");
    }

    #[test]
    fn unclear_statuses_are_the_downstreams_to_name() {
        let rules = Rules { unclear_statuses: [200, 500].into(), ..Rules::default() };
        let ends = [200, 202, 404, 500, 504].map(|status| classify(answer(status, ""), &rules).end);
        let (clear, cools) = (End::Clear, End::Unclear(Why::Status));
        assert_eq!(ends, [cools, clear, clear, cools, clear]);
    }

    #[test]
    fn a_downstream_may_say_otherwise() {
        let rules = Rules {
            down_statuses: [529].into(),
            retry_statuses: [404].into(),
            fail_statuses: [500, 529].into(),
            ..Rules::default()
        };
        let words = [404, 409, 500, 501, 503, 529].map(|status| word(&classify(answer(status, ""), &rules)));
        let again = "retry after 7 s";
        assert_eq!(words, [again, "failed", "failed", again, again, "failed"]);
        // Where the call may still run, it was taken on.
        let rules = Rules { unclear_statuses: [503].into(), ..Rules::default() };
        assert_eq!(word(&classify(answer(503, ""), &rules)), again);
        let refused = classify(Seen::Refused("no".to_owned()), &rules);
        assert_eq!(refused, Outcome::down("no", None));
    }

    #[test]
    fn only_what_was_never_sent_or_hung_up_on_is_clear_without_an_answer() {
        let e = || "why".to_owned();
        let (clear, broken, silent) = (End::Clear, End::Unclear(Why::Connection), End::Unclear(Why::Timeout));
        // What was seen, the end by default, the end where the downstream stops on disconnect.
        let table = [
            (Seen::NotConnected(e()), clear, clear),
            (Seen::Broken { status: None, error: e() }, broken, broken),
            (Seen::Broken { status: Some(200), error: e() }, broken, broken),
            (Seen::Broken { status: Some(404), error: e() }, broken, broken),
            (Seen::TimedOut { status: None, error: e() }, silent, End::Stopped),
            (Seen::TimedOut { status: Some(200), error: e() }, silent, End::Stopped),
        ];
        for (seen, end, end_if_it_stops) in table {
            for (stops_on_disconnect, end) in [(false, end), (true, end_if_it_stops)] {
                let rules = Rules { stops_on_disconnect, ..Rules::default() };
                let outcome = classify(seen.clone(), &rules);
                assert_eq!(outcome.end, end, "{seen:?}, stops: {stops_on_disconnect}");
                assert_eq!(outcome.verdict, Verdict::Retry { error: e(), after: None }, "{seen:?}");
            }
        }
    }

    #[test]
    fn results_and_errors_are_cleaned_and_bounded() {
        let rules = Rules { max_result_bytes: 16, ..Rules::default() };
        let result = |seen| match classify(seen, &rules).verdict {
            Verdict::Succeeded { result } => result,
            other => panic!("{other:?}"),
        };
        assert_eq!(result(answer(200, "")), None);
        assert_eq!(result(answer(200, "{\"a\":\0}")).unwrap(), "{\"a\":\u{fffd}}");
        assert_eq!(result(answer(200, &"ä".repeat(99))).unwrap(), "ääääää…");

        let error = |seen| match classify(seen, &rules).verdict {
            Verdict::Failed { error } | Verdict::Retry { error, .. } | Verdict::Down { error, .. } => error,
            other => panic!("{other:?}"),
        };
        assert_eq!(error(answer(404, " no such report\r\n")), "HTTP 404 Not Found: no such report");
        assert_eq!(error(answer(503, "")), "HTTP 503 Service Unavailable");
        assert_eq!(error(answer(599, "")), "HTTP 599");
        assert_eq!(error(answer(302, "")), "HTTP 302 Found (redirects are not followed)");
        let long = "\u{1b}€".repeat(ERROR_MAX);
        for seen in [answer(500, &long), Seen::NotConnected(long.clone())] {
            let text = error(seen);
            assert!((ERROR_MAX - 3..=ERROR_MAX).contains(&text.len()), "{}", text.len());
            assert!(text.ends_with('…') && !text.contains('\u{1b}'));
        }
    }

    #[test]
    fn retry_after_is_read_strictly() {
        let date = "Sun, 06 Nov 1994 08:49:37 GMT";
        let table = [
            ("0", Some(0)),
            ("120", Some(120)),
            ("0120", Some(120)),
            ("99999999999999999999999999", Some(RETRY_AFTER_MAX)),
            ("4294967296", Some(RETRY_AFTER_MAX)),
            ("", None),
            ("+5", None),
            ("-5", None),
            ("5.5", None),
            ("5 ", None),
            ("5s", None),
            ("٣", None),
            ("soon", None),
            ("Sun, 06 Nov 1994 08:50:37 GMT", Some(60)),
            ("Sun, 06 Nov 1994 08:49:37 GMT", Some(0)),
            ("Sun, 06 Nov 1994 08:00:00 GMT", Some(0)),
            ("Mon, 06 Nov 1994 08:50:37 GMT", None),
            ("Sun, 06 Nov 1994 08:50:37 UTC", None),
            ("Sun, 06 Nov 1994 08:50:37 +00", None),
            ("Sun, 6 Nov 1994 08:50:37 GMT", None),
            ("Sun, 31 Nov 1994 08:50:37 GMT", None),
            ("Sunday, 06-Nov-94 08:50:37 GMT", None),
            ("Sun Nov  6 08:50:37 1994", None),
        ];
        for (value, seconds) in table {
            assert_eq!(retry_after(value, Some(date)), seconds.map(Duration::from_secs), "{value:?}");
        }
        assert_eq!(retry_after("Sun, 06 Nov 1994 08:50:37 GMT", None), None);
        assert_eq!(retry_after("Sun, 06 Nov 1994 08:50:37 GMT", Some("yesterday")), None);
    }
}
