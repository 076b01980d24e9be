//! The heartbeat: its own thread, its own runtime, its own connection. Neither a blocked handler nor a full pool nor a
//! busy runtime delays it.
//!
//! ```text
//!   consumer loop ──Roster (watch)──► heart thread ──beat──► database
//!        ▲                                 │
//!        └────────── Pulse (mpsc) ─────────┘
//! ```
//!
//! The roster is written by the consumer loop alone, at each of its turns; the heart reads it. A beat is compared with
//! the roster *as it stood when the beat was sent*, so the pulse carries that roster back. The heart beats only while the
//! loop's last turn is less than a lease ago: otherwise it would keep a dead process's claims alive.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};

use crate::clock::{Clock, Instant};
use crate::event::Event;
use crate::model::Attempt;
use crate::store::Database;

/// What the consumer loop says of itself at each turn.
#[derive(Clone, Debug)]
pub(super) struct Roster {
    /// The id it is registered under.
    pub(super) consumer: Arc<str>,
    /// What it is calling under that id, ends under way excepted.
    pub(super) calling: Arc<BTreeSet<Attempt>>,
    /// When the loop last turned.
    pub(super) turned: Instant,
    /// The last finish is committed: stop.
    pub(super) stop: bool,
}

/// A beat that the database has answered.
#[derive(Debug)]
pub(super) struct Pulse {
    /// The roster when the beat was sent.
    pub(super) roster: Roster,
    /// The instant before it was sent.
    pub(super) sent: Instant,
    /// What the database thinks this consumer runs; `None` where it is gone.
    pub(super) held: Option<BTreeSet<Attempt>>,
}

/// How the heart beats.
pub(super) struct Heart {
    pub(super) database: Database,
    pub(super) clock: Clock,
    pub(super) every: Duration,
    pub(super) lease: Duration,
    pub(super) roster: watch::Receiver<Roster>,
    pub(super) pulses: mpsc::Sender<Pulse>,
    /// What to do when the consumer loop has not turned for a whole lease. Called on the heart's thread.
    pub(super) on_stuck: fn(),
}

impl Heart {
    /// Starts the thread. It ends when the roster says so, or its sender is gone.
    pub(super) fn start(self) -> std::io::Result<std::thread::JoinHandle<()>> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        std::thread::Builder::new().name("permitq-heart".to_owned()).spawn(move || {
            runtime.block_on(self.beat());
            runtime.shutdown_timeout(Duration::from_secs(1));
        })
    }

    async fn beat(mut self) {
        let mut store = self.database.store();
        // Registration was the first beat.
        let mut pause = self.every;
        loop {
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                stopped = self.roster.wait_for(|roster| roster.stop) => {
                    drop(stopped);
                    return;
                }
            }
            let roster = self.roster.borrow().clone();
            let sent = self.clock.now();
            if sent.since(roster.turned) > self.lease {
                Event::Stuck { what: "consumer loop" }.emit();
                (self.on_stuck)();
                pause = self.every;
                continue;
            }
            match store.beat(&roster.consumer, self.lease).await {
                Ok(held) => {
                    pause = self.every;
                    let held = held.map(|held| held.into_iter().collect());
                    // A full channel means the loop is behind; the next pulse says the same.
                    drop(self.pulses.try_send(Pulse { roster, sent, held }));
                }
                Err(error) => {
                    // A missed beat is made up for quickly: the lease is worth only a few of them.
                    pause = (self.every / 8).min(Duration::from_secs(1)).mul_f64(0.5 + fastrand::f64());
                    Event::Trouble { what: "heartbeat", error: &error, again_in: pause }.emit();
                }
            }
        }
    }
}
