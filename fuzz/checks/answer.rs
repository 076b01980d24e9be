//! Whatever a downstream answers, the outcome's text fits a text column, a terminal and its bound; and only what was read
//! to its end, or never sent, frees a permit.

use std::time::Duration;

use permitq::cli::fuzzing::terminal;
use permitq::downstream::{Rules, Seen, classify, retry_after};
use permitq::model::{End, Verdict};

const ERROR_MAX: usize = 2 << 10;

pub(crate) fn check(input: (u16, u8, bool, u16, &str, &str, &[u8])) {
    let (status, shape, stops_on_disconnect, max, after, date, body) = input;
    let rules = Rules { stops_on_disconnect, max_result_bytes: usize::from(max), ..Rules::default() };
    let status = 100 + status % 900;
    let error = String::from_utf8_lossy(body).into_owned();
    let wait = retry_after(after, Some(date));
    assert!(wait.is_none_or(|wait| wait <= Duration::from_secs(1 << 31)));
    let more = shape & 8 != 0;
    let (seen, clear) = match shape % 4 {
        0 => (
            Seen::Answer { status, retry_after: wait, body: body.to_vec(), more },
            status >= 200 && !rules.unclear_statuses.contains(&status),
        ),
        1 => (Seen::NotConnected(error), true),
        2 => (Seen::Broken { status: Some(status), error }, false),
        _ => (Seen::TimedOut { status: None, error }, false),
    };
    let hung_up = matches!(seen, Seen::TimedOut { .. });
    let cut = matches!(seen, Seen::Answer { more: true, .. });
    let outcome = classify(seen, &rules);
    assert_eq!(matches!(outcome.end, End::Clear), clear, "{outcome:?}");
    assert_eq!(matches!(outcome.end, End::Stopped), hung_up && stops_on_disconnect, "{outcome:?}");
    let (text, bound) = match &outcome.verdict {
        Verdict::Succeeded { result } => (result.clone().unwrap_or_default(), rules.max_result_bytes),
        Verdict::Retry { error, .. } | Verdict::Down { error, .. } | Verdict::Failed { error } => {
            (error.clone(), ERROR_MAX)
        }
        other => panic!("{other:?}"),
    };
    assert!(text.len() <= bound, "{} of {bound}", text.len());
    assert!(text.chars().all(|c| !c.is_control() || c == '\n' || c == '\t'), "{text:?}");
    // A cut is seen, where there is room for its mark; an error without a body has none.
    if cut && bound >= 3 && matches!(outcome.verdict, Verdict::Succeeded { .. }) {
        assert!(text.ends_with('…'), "{text:?}");
    }
    let (shown, json) = terminal(&text);
    for said in [&shown, &json] {
        assert!(!said.chars().any(|c| c.is_control() && c != '\n' && c != '\t'), "{said:?}");
    }
    assert!(!json.contains(['\n', '\t']));
    assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text, "the same text, as JSON");
}
