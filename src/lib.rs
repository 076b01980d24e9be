//! permitq: a task queue in your own SQL database that caps, exactly and over the whole fleet, how many downstream
//! calls are in flight.

#[cfg(feature = "cli")]
pub mod cli;
pub mod clock;
#[cfg(feature = "cli")]
pub mod config;
pub mod consumer;
pub mod downstream;
pub mod event;
pub mod model;
pub mod schedule;
pub mod shutdown;
pub mod store;
pub mod upkeep;
mod wake;

pub use model::NewTask;
