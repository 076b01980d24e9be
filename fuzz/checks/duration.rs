//! A duration that is taken is written in a way that is taken as the same; what is refused says so on one line.

use permitq::config::{DURATION_MAX, HumanDuration};

pub(crate) fn check(text: &str) {
    match text.parse::<HumanDuration>() {
        Ok(HumanDuration(read)) => {
            assert!(read <= DURATION_MAX, "{text:?}");
            let written = HumanDuration(read).to_string();
            let again: HumanDuration =
                written.parse().unwrap_or_else(|e| panic!("{text:?}: {written:?}: {e}"));
            assert_eq!(again.0, read, "{text:?}: {written:?}");
            let json = serde_json::to_string(&text).unwrap();
            assert_eq!(serde_json::from_str::<HumanDuration>(&json).map(|read| read.0).ok(), Some(read));
        }
        Err(refusal) => {
            let words = refusal.to_string();
            assert!(!words.is_empty() && !words.contains(['\n', '\u{1b}', '\0']), "{text:?}: {words:?}");
        }
    }
}
