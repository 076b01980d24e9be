//! One process of the fleet: claims tasks together with permits, calls the downstream, records the ends.
//!
//! ```text
//!             ┌──────────────────────── the loop (turn.rs) ───────────────────────┐
//!  signals ──►│ select ─► one event ─► one function; then: is the store idle? ─► │
//!  wake-ups ─►│ what is the most useful job now? (plan.rs)                        │
//!             └──┬──────────────▲───────────────────┬───────────▲────────────┬───┘
//!              claims          ends                job       answer         roster / pulse
//!             ┌──▼──────────────┴──┐         ┌──────▼───────────┴──┐    ┌────▼────────────┐
//!             │ slots: run.rs,     │         │ store: one job at a │    │ heart: thread,  │
//!             │ one task per call  │         │ time, never dropped │    │ runtime and     │
//!             └────────────────────┘         └─────────────────────┘    │ connection of   │
//!                                                                       │ its own         │
//!                                                                       └─────────────────┘
//! ```
//!
//! There is one loop that talks to the task tables, so what ended while the last exchange ran goes into the next one,
//! and at most one process meets another on the semaphore row. It must never hold a transaction or a connection through
//! a call, and never start a call whose claim is older than its start window.

mod heart;
mod job;
mod plan;
mod run;
mod services;
mod turn;

use std::time::Duration;

pub use services::{Service, Services};

use crate::clock::Clock;
use crate::shutdown::Shutdown;
use crate::store::{Database, Error};

/// How a consumer works.
#[derive(Clone, Debug)]
pub struct Options {
    /// What people call it; its id is this name and a random part, new at every start.
    pub name: String,
    /// Its host, for people.
    pub host: String,
    /// Calls at once.
    pub slots: usize,
    /// How often to look while tasks wait, or where no wake-up is connected.
    pub poll: Duration,
    /// How long claims hold without another beat; at least four beats.
    pub lease: Duration,
    /// How often to beat.
    pub heartbeat: Duration,
    /// How long a shutdown lets running calls go on.
    pub grace: Duration,
    /// Where the loop has not turned for a whole lease, or a shutdown does not come to its end.
    pub on_stuck: fn(),
}

impl Default for Options {
    fn default() -> Self {
        Self {
            name: "consumer".to_owned(),
            host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
            slots: 4,
            poll: Duration::from_secs(1),
            lease: Duration::from_mins(2),
            heartbeat: Duration::from_secs(15),
            grace: Duration::from_mins(10),
            on_stuck: || {},
        }
    }
}

/// How a consumer's run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Every call ended and is recorded.
    Drained,
    /// The grace was over; what still ran was handed back.
    HandedBack,
    /// A second signal; what still ran was handed back.
    Forced,
}

impl Exit {
    /// The process's exit code.
    pub fn code(self) -> u8 {
        match self {
            Self::Drained => 0,
            Self::HandedBack => 3,
            Self::Forced => 4,
        }
    }
}

/// A consumer that is ready to run.
pub struct Consumer {
    /// Where the tasks are.
    pub database: Database,
    /// What it serves.
    pub services: Services,
    /// How it works.
    pub options: Options,
    /// Judges leases and start windows.
    pub clock: Clock,
}

impl Consumer {
    /// Works until `shutdown` and the end of its running calls.
    ///
    /// # Errors
    /// Only at the start: no database, no schema, or a semaphore that does not exist. Later trouble is waited out.
    pub async fn run(self, shutdown: Shutdown) -> Result<Exit, Error> {
        turn::Loop::start(self, shutdown).await?.run().await
    }
}
