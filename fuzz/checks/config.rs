//! A configuration file of any bytes is taken, or every problem names its place and shows no secret.

use std::path::PathBuf;
use std::sync::LazyLock;

use permitq::config::{Config, Sources};

static FILE: LazyLock<PathBuf> =
    LazyLock::new(|| PathBuf::from(format!("/dev/shm/permitq-fuzz-{}.toml", std::process::id())));
const SECRET: &str = "correct horse";

/// Answers whether these bytes were worth a look.
pub(crate) fn check(bytes: &[u8]) -> bool {
    // Files that a reference names would be read.
    if bytes.windows(5).any(|five| five == b"file:") {
        return false;
    }
    std::fs::write(&*FILE, bytes).unwrap();
    let env = [("TOKEN".to_owned(), SECRET.to_owned())].into();
    let sources = Sources { file: Some(FILE.clone()), env, ..Sources::default() };
    let written = bytes.windows(SECRET.len()).any(|part| part == SECRET.as_bytes());
    match Config::load(&sources) {
        Ok(config) => {
            assert!(config.validate().is_ok(), "what was taken is taken again");
            let shown = format!("{config:?}{:?}", config.explain());
            assert!(!shown.contains(SECRET) || written);
            assert!(!config.database.url.is_empty() && config.consumer.slots > 0);
            for downstream in config.downstream.values() {
                assert!(!downstream.limits.call_timeout.is_zero());
                assert!(downstream.limits.hold() > downstream.limits.call_timeout);
            }
        }
        Err(problems) => {
            assert!(problems.iter().count() > 0);
            for problem in &problems {
                // The place: this file and a key in it, or a line, or the whole where nothing is wrong in one place.
                assert!(!problem.what.is_empty() && !problem.remedy.is_empty(), "{problem}");
                assert!(problem.key.is_some() || problem.origin == FILE.display().to_string(), "{problem}");
                assert!(!problem.to_string().contains(SECRET) || written);
                assert!(!problem.to_string().contains(['\n', '\u{1b}', '\0']), "one line, steering nothing");
            }
        }
    }
    let _ = std::fs::remove_file(&*FILE);
    true
}
