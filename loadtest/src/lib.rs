//! What permitq must withstand: a [`proxy`] and private database [`servers`] that fail on purpose, [`tls`] that is right or
//! wrong, the [`torture`] that does everything at once, and the [`chaos`] that does it to real processes.
//!
//! permitq's own tests call this library for a few seconds at a time; the binary runs it for as long as you like.

pub mod chaos;
pub mod proxy;
pub mod rate;
pub mod servers;
pub mod speed;
mod target;
pub mod tls;
pub mod torture;

pub use target::{Program, Target};

/// Why there is no report.
pub type Error = Box<dyn std::error::Error + Send + Sync>;
