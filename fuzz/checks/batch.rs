//! A file of tasks of any bytes is taken whole, and then every task may be enqueued, or every refusal names a line.

use permitq::cli::fuzzing::batch;
use permitq::model::PAYLOAD_MAX;

pub(crate) fn check(bytes: &[u8]) {
    let lines = bytes.split(|byte| *byte == b'\n').count();
    match batch(bytes) {
        Ok(tasks) => {
            for (line, task) in &tasks {
                assert!((1..=lines).contains(line));
                task.check().unwrap();
                assert!(task.payload.len() <= PAYLOAD_MAX && !task.payload.contains('\n'));
                if !task.payload.is_empty() {
                    serde_json::from_str::<serde::de::IgnoredAny>(&task.payload).unwrap();
                }
            }
            assert!(tasks.is_sorted_by(|(a, _), (b, _)| a < b));
        }
        Err(words) => {
            let (first, rest) = words.split_once('\n').expect("at least one line is named");
            assert!(first.contains("bad line"), "{words}");
            for line in rest.split('\n') {
                let number = line.trim_start().strip_prefix("file:").and_then(|rest| rest.split(':').next());
                let named =
                    number.and_then(|number| number.parse().ok()).is_some_and(|n| (1..=lines).contains(&n));
                assert!(named || line.trim_start().starts_with("and "), "{line:?} in {words:?}");
            }
        }
    }
}
