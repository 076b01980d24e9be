//! What permitq must withstand: a [`proxy`] and private database [`servers`] that fail on purpose, [`tls`] that is right or
//! wrong, the [`torture`] that does everything at once, and the [`chaos`] that does it to real processes.
//!
//! permitq's own tests call this library for a few seconds at a time; the binary runs it for as long as you like.

pub mod chaos;
pub mod proxy;
pub mod rate;
mod raw;
pub mod servers;
pub mod speed;
mod target;
pub mod tls;
pub mod torture;

pub use target::{Program, Target};

/// A number of minutes that a run may take.
///
/// # Errors
/// Where it is none.
pub fn minutes(word: &str) -> Result<f64, String> {
    match word.parse() {
        Ok(minutes) if (0.05..=1440.0).contains(&minutes) => Ok(minutes),
        _ => Err("use a number of minutes from 0.05 to 1440".to_owned()),
    }
}

/// Why there is no report.
pub type Error = Box<dyn std::error::Error + Send + Sync>;
