//! A consumer as the store sees it.

use std::time::Duration;

use permitq::clock::Clock;
use permitq::model::{Attempt, Claim, End, Ended, Limits, OnAbandon, Outcome, Retry, Standing, Why, settle};
use permitq::store::{Exchange, Exchanged, Policy, Recorded, Result, Store};

pub(crate) struct Consumer {
    pub(crate) id: String,
    pub(crate) store: Store,
    pub(crate) semaphore: String,
    pub(crate) policies: Vec<Policy>,
    pub(crate) clock: Clock,
    /// The downstream that its next claim is to probe.
    pub(crate) probe: Option<String>,
}

impl Consumer {
    /// Serves kind `call` of semaphore `default`. Does not register it.
    pub(crate) fn new(id: &str, store: Store) -> Self {
        Self {
            id: id.to_owned(),
            store,
            semaphore: "default".to_owned(),
            policies: vec![policy("call")],
            clock: Clock::default(),
            probe: None,
        }
    }

    pub(crate) async fn try_exchange(&mut self, ended: &[Ended], want: usize) -> Result<Exchanged> {
        let exchange = Exchange {
            consumer: &self.id,
            semaphore: &self.semaphore,
            ended,
            want,
            policies: &self.policies,
            sent: self.clock.now(),
            probe: self.probe.as_deref(),
        };
        self.store.exchange(&exchange).await
    }

    pub(crate) async fn exchange(&mut self, ended: &[Ended], want: usize) -> Exchanged {
        self.try_exchange(ended, want).await.unwrap()
    }

    pub(crate) async fn claim(&mut self, want: usize) -> Vec<Claim> {
        self.exchange(&[], want).await.claims
    }

    /// The one task that is to be had.
    pub(crate) async fn claim_one(&mut self) -> Claim {
        self.claim(1).await.pop().expect("a due task and a free permit")
    }

    pub(crate) async fn finish(&mut self, ended: &[Ended]) -> Vec<Recorded> {
        self.exchange(ended, 0).await.recorded
    }
}

/// Three attempts, runnable again at once when abandoned.
pub(crate) fn policy(kind: &str) -> Policy {
    Policy {
        kind: kind.to_owned(),
        hold: Limits::default().hold(),
        max_attempts: 3,
        on_abandon: OnAbandon::Retry,
        downstream: "default".to_owned(),
    }
}

/// What the downstream said to a call whose claim was lost. The call itself is over, or (`clear` is false) may not be.
pub(crate) fn late(attempt: Attempt, said: &str, clear: bool) -> Ended {
    let end = if clear { End::Clear } else { End::Unclear(Why::Status) };
    let outcome = Outcome { end, ..Outcome::succeeded(Some(said.to_owned())).with_status(200) };
    let standing = Standing { attempts: 1, max_attempts: 3, on_abandon: OnAbandon::Retry };
    Ended {
        attempt,
        semaphore: "default".to_owned(),
        called_after: None,
        status: outcome.status,
        settlement: settle(standing, &outcome, &Retry::default(), 1.0),
        signal: None,
    }
}

/// A claim's end, two seconds after it called; a failure waits for exactly five seconds.
pub(crate) fn ended(claim: Claim, outcome: &Outcome) -> Ended {
    let called = claim.sent + Duration::from_secs(2);
    claim.end(outcome, Some(called), &Retry::default(), 1.0)
}
