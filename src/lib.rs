//! permitq: a task queue in your own SQL database that caps, exactly and over the whole fleet, how many downstream
//! calls are in flight.
#![doc = ""]

pub mod clock;
#[cfg(feature = "cli")]
pub mod config;
pub mod downstream;
pub mod model;

pub use model::NewTask;
