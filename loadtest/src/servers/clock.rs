//! A wall clock that can be stepped while those who believe it run. Their monotonic clocks stay the host's.

use std::fs;
use std::path::{Path, PathBuf};

use super::install;

/// A clock in a file, for processes that are started with its [environment](Clock::environment).
#[derive(Clone, Debug)]
pub struct Clock(PathBuf);

impl Clock {
    /// Kept in this file, and right at first.
    pub fn new(file: PathBuf) -> Self {
        let clock = Self(file);
        clock.set(0);
        clock
    }

    /// Steps it to so many milliseconds ahead (+) of the host's, or behind (-). Felt at the next look at the clock.
    pub fn set(&self, ahead_ms: i64) {
        let new = self.0.with_extension("new");
        let sign = if ahead_ms < 0 { '-' } else { '+' };
        let ms = ahead_ms.unsigned_abs();
        fs::write(&new, format!("{sign}{}.{:03}\n", ms / 1000, ms % 1000)).unwrap();
        fs::rename(&new, &self.0).unwrap();
    }

    /// What a process needs in its environment to believe this clock.
    pub fn environment(&self) -> [(&'static str, &Path); 4] {
        static LIBRARY: std::sync::LazyLock<PathBuf> = std::sync::LazyLock::new(install::faketime);
        [
            ("LD_PRELOAD", &LIBRARY),
            ("FAKETIME_TIMESTAMP_FILE", &self.0),
            ("FAKETIME_NO_CACHE", Path::new("1")),
            ("FAKETIME_DONT_FAKE_MONOTONIC", Path::new("1")),
        ]
    }
}
