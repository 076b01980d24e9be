//! How fast it is and what that costs: consumers as real processes, the counting stub downstream, and ratios within one run.
//!
//! | workload | asks |
//! |---|---|
//! | [`limit`] | does a permit idle while tasks wait? |
//! | [`burst`] | over how many processes do the permits go when tasks come all at once? |
//! | [`pickup`] | how soon does an idle fleet start a task? |
//! | [`idle`] | what does a fleet with nothing to do cost? |
//! | [`kill`] | what does the downstream see when holders are killed, and how soon is the capacity whole again? |
//! | [`drain`] | how fast do no-op tasks go, where only the tables count? |
//! | [`delayed`] | how late are tasks that are due at an instant? |
//! | [`soak`] | what grows? |
//! | [`history`] | does a claim cost more when the tables are long? |

#![expect(clippy::cast_precision_loss, reason = "counts and microseconds of a run fit a double")]

pub mod burst;
mod cli;
pub mod delayed;
pub mod drain;
pub mod figures;
mod fleet;
pub mod goal;
pub mod history;
pub mod idle;
pub mod kill;
pub mod limit;
pub mod pickup;
mod picture;
pub mod place;
pub mod soak;
mod stats;

pub use cli::Command;
pub use goal::Goal;
pub use place::Place;

use crate::{Error, Program, Target};

/// Consumers, and permits, of the workloads that other systems are measured by.
const CONSUMERS: usize = 8;
const CAP: u32 = 4;

/// Two decimals, for people.
fn two(number: Option<f64>) -> String {
    number.map_or_else(|| "-".to_owned(), |number| format!("{number:.2}"))
}
