//! One thing that the loop has the store do. A job runs in a task of its own, with the store inside, and is never
//! dropped: the loop gets the store back with the answer.

use std::sync::Arc;

use crate::clock::Instant;
use crate::model::{Attempt, Ended, Outcome, Retry};
use crate::store::{Error, Exchange, Exchanged, Left, Look, Policy, Recorded, Registration, Store};

/// What the store is to do.
#[derive(Debug)]
pub(super) enum Job {
    /// Register a new id.
    Register(Registration),
    /// One read: may there be something to claim?
    Look(Vec<String>),
    /// Make due what is due.
    Promote,
    /// End some claims, take others.
    Exchange {
        consumer: Arc<str>,
        semaphore: String,
        ended: Vec<Ended>,
        want: usize,
        policies: Vec<Policy>,
        probe: Option<String>,
    },
    /// A probe goes on for so long that its downstream cannot be down.
    Reopen { downstream: String, probe: Attempt },
    /// Hand back whatever the database thinks we run and we do not know: the answer to its claim never arrived.
    Reconcile { consumer: Arc<str>, known: Vec<Attempt> },
    /// Keep the late answer of a lost claim.
    Late { consumer: Arc<str>, ended: Ended },
    /// Drain or go.
    Leave { consumer: Arc<str>, how: Left },
}

/// What came of it.
#[derive(Debug)]
pub(super) enum Answer {
    Registered,
    Looked(Look),
    Promoted(u64),
    Exchanged(Exchanged),
    Reconciled(usize),
    Late(bool),
    Left(Left),
    Reopened(bool),
}

/// A job that is over.
pub(super) struct Over {
    pub(super) store: Store,
    pub(super) job: Job,
    /// The instant before it began.
    pub(super) sent: Instant,
    pub(super) answer: Result<Answer, Error>,
}

/// How many scheduled tasks one promotion makes due.
pub(super) const PROMOTION: u64 = 500;

impl Job {
    /// Does it, to its end.
    pub(super) async fn run(self, mut store: Store, sent: Instant) -> Over {
        let answer = match &self {
            Self::Register(registration) => store.register(registration).await.map(|()| Answer::Registered),
            Self::Look(semaphores) => store.look(semaphores).await.map(Answer::Looked),
            Self::Promote => store.promote(PROMOTION.cast_signed()).await.map(Answer::Promoted),
            Self::Exchange { consumer, semaphore, ended, want, policies, probe } => {
                let probe = probe.as_deref();
                let exchange = Exchange { consumer, semaphore, ended, want: *want, policies, sent, probe };
                store.exchange(&exchange).await.map(Answer::Exchanged)
            }
            Self::Reopen { downstream, probe } => {
                store.reopen(downstream, *probe).await.map(Answer::Reopened)
            }
            Self::Reconcile { consumer, known } => reconcile(&mut store, consumer, known, sent).await,
            Self::Late { consumer, ended } => store.late(consumer, ended).await.map(Answer::Late),
            Self::Leave { consumer, how } => store.leave(consumer, *how).await.map(|()| Answer::Left(*how)),
        };
        Over { store, job: self, sent, answer }
    }
}

/// Nothing of ours is in flight while this runs, so what the database has and we do not know was never started.
async fn reconcile(
    store: &mut Store,
    consumer: &str,
    known: &[Attempt],
    sent: Instant,
) -> Result<Answer, Error> {
    let mut handed_back = 0;
    let outcome = Outcome::not_started("the answer to its claim never arrived");
    for orphan in store.running(consumer).await? {
        if known.contains(&orphan.attempt) {
            continue;
        }
        let ended = Ended {
            attempt: orphan.attempt,
            semaphore: orphan.semaphore.clone(),
            called_after: None,
            status: None,
            settlement: crate::model::settle(orphan.standing, &outcome, &Retry::default(), 0.0),
            signal: None,
        };
        let exchange = Exchange {
            consumer,
            semaphore: &orphan.semaphore,
            ended: &[ended],
            want: 0,
            policies: &[],
            sent,
            probe: None,
        };
        let done = store.exchange(&exchange).await?;
        handed_back += done.recorded.iter().filter(|recorded| **recorded == Recorded::Done).count();
    }
    Ok(Answer::Reconciled(handed_back))
}
