//! What things are: states, claims, outcomes, leases, retries. Pure values and pure functions.
//!
//! Everyone calls this folder; it calls nobody. No I/O, no clock, no randomness of its own: instants and
//! random numbers are passed in.

mod claim;
mod dependency;
mod lease;
mod limits;
mod outcome;
mod pause;
mod retention;
mod retry;
pub mod schedule;
mod settle;
mod state;
mod sweep;
mod task;

pub use claim::{Attempt, Claim, Ended, Signal};
pub use dependency::{After, Parent, Relative, order};
pub use lease::{Lease, STEP_SLACK};
pub use limits::Limits;
pub use outcome::{End, Outcome, Verdict, Why};
pub use pause::{Pause, Paused, Scope};
pub use retention::Retention;
pub use retry::Retry;
pub use settle::{OnAbandon, Settlement, Standing, settle};
pub use state::State;
pub use sweep::{Moved, Sweep};
pub use task::{
    BIZ_KEY_MAX, Holder, KIND_MAX, NewTask, PAYLOAD_MAX, PermitState, Refused, RunAt, Semaphore, Task,
};
