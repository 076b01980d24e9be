//! Asks downstreams that can be asked about calls that were given up, and frees the permits of those that are over.

use std::time::Duration;

use futures_util::{StreamExt, stream};
use tokio_util::sync::CancellationToken;

use super::Pace;
use crate::downstream::{Probe, Probed, Question};
use crate::event::Event;
use crate::store::{Cooling, Database, Error, Store};

/// Coolings per pass, and questions at once: a downstream in trouble is not asked to death.
const BATCH: i64 = 20;
const AT_ONCE: usize = 4;

/// A loop of its own: a downstream that does not answer holds up no reclaim.
#[derive(Debug)]
pub struct Prober {
    store: Store,
    every: Duration,
    probes: Probes,
    /// Once it has been read.
    installation: Option<String>,
    /// The last cooling of the pass before.
    after: i64,
}

impl Prober {
    /// A prober on a connection of its own, which passes so often. A downstream without a probe is named too, or
    /// `default` would be asked for it.
    pub fn new(database: &Database, every: Duration, probes: Vec<(String, Option<Probe>)>) -> Self {
        Self { store: database.store(), every, probes, installation: None, after: 0 }
    }

    /// Whether there is anybody to ask.
    pub fn has_probes(&self) -> bool {
        self.probes.iter().any(|(_, probe)| probe.is_some())
    }

    /// Passes until `stop`.
    pub async fn run(mut self, stop: CancellationToken) {
        let mut pace = Pace::new("prober", self.every);
        while pace.next(self.pass().await, &stop).await {}
    }

    /// Asks about the next coolings.
    ///
    /// # Errors
    /// Where the database cannot be worked with.
    pub async fn pass(&mut self) -> Result<(), Error> {
        let installation = match &self.installation {
            Some(installation) => installation,
            None => self.installation.insert(self.store.schema().await?.installation),
        };
        let coolings = self.store.coolings(self.after, BATCH).await?;
        self.after = coolings.last().map_or(0, |cooling| cooling.id);
        for cooling in over(coolings, &self.probes, installation).await {
            if self.store.end_cooling(&cooling).await? {
                Event::Probed { attempt: cooling.attempt }.emit();
            }
        }
        Ok(())
    }
}

/// By the kind of task; `default` for every kind that is not named.
type Probes = Vec<(String, Option<Probe>)>;

/// Those whose calls are over, as their downstreams say.
async fn over(coolings: Vec<Cooling>, probes: &Probes, installation: &str) -> Vec<Cooling> {
    let asked = stream::iter(coolings).map(async |cooling| {
        let named = |name: &str| probes.iter().find(|(kind, _)| kind == name);
        let probe = named(&cooling.kind).or_else(|| named("default"))?.1.as_ref()?;
        let idempotency_key = format!("{installation}-{}", cooling.attempt.task);
        let question = Question {
            idempotency_key: &idempotency_key,
            claim_no: cooling.attempt.claim_no,
            only: cooling.only,
        };
        (probe.ask(&question).await == Probed::Done).then_some(cooling)
    });
    asked.buffer_unordered(AT_ONCE).filter_map(async |over| over).collect().await
}
