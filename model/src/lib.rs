//! The protocol of permitq, checked over every interleaving of a small fleet.
//!
//! A [`Fleet`] is a [`stateright::Model`]: its states are [`World`]s, its steps are [`Action`]s, its properties the
//! promises of [`promise`]. A [`Fault`] is something done wrong on purpose; then a promise must break. What is modelled
//! and what is left out is said in this folder's README.

mod fault;
mod fleet;
pub mod promise;
pub mod scenes;
mod step;
mod store;
mod symmetry;
mod world;

pub use fault::Fault;
pub use fleet::Fleet;
pub use step::Action;
pub use world::{
    Attempt, Broken, Call, Cooling, Ending, Exchange, Id, Job, Lease, Phase, Process, Slot, Task, Ticks,
    Upkeep, World,
};
