//! permitq: a task queue in your own SQL database that caps, exactly and over the whole fleet, how many downstream
//! calls are in flight.

#[cfg(feature = "cli")]
pub mod cli;
pub mod clock;
pub mod downstream;
pub mod model;
pub mod store;

pub use model::NewTask;
