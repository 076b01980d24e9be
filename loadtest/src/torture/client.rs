//! One client: a consumer, a reclaimer, an operator and a producer in one, with a store of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use permitq::NewTask;
use permitq::clock::Clock;
use permitq::model::{Attempt, Claim, End, Ended, OnAbandon, Outcome, Retry, Verdict, Why, settle};
use permitq::store::{Database, Exchange, Exchanged, Orphan, Policy, Recorded, Registration, Result, Store};
use tokio::task::yield_now;
use tokio::time::{Instant, timeout};

use super::tally::Tally;
use super::{HOLD, KIND, LEASE, MOST, SEMAPHORE};

pub(super) struct Client {
    store: Store,
    clock: Clock,
    tally: Arc<Tally>,
    policies: [Policy; 1],
    /// Every id it ever registered; the last is in force.
    ids: Vec<String>,
    running: Vec<Claim>,
    /// Ends whose answer was lost: they are told again.
    doubtful: Vec<Ended>,
}

/// How often everything is done, of 100.
const CHANCES: [(&str, u32); 12] = [
    ("exchange", 50),
    ("beat", 10),
    ("enqueue", 8),
    ("reconcile", 3),
    ("fence", 3),
    ("reclaim", 4),
    ("end coolings", 6),
    ("audit", 4),
    ("retune", 4),
    ("cancel", 4),
    ("retry", 2),
    ("promote", 2),
];
/// One unit in so many is dropped halfway, and its connection with it.
const DROPPED: u32 = 30;
const RETRY: Retry =
    Retry { max_attempts: 3, backoff: Duration::from_millis(20), backoff_cap: Duration::from_millis(100) };

impl Client {
    pub(super) fn new(database: &Database, tally: Arc<Tally>) -> Self {
        let policy = Policy {
            kind: KIND.to_owned(),
            hold: HOLD,
            max_attempts: 3,
            on_abandon: OnAbandon::Retry,
            downstream: "default".to_owned(),
        };
        Self {
            store: database.store(),
            clock: Clock::default(),
            tally,
            policies: [policy],
            ids: Vec::new(),
            running: Vec::new(),
            doubtful: Vec::new(),
        }
    }

    /// Works until then; answers the ids it used.
    pub(super) async fn work(mut self, end: Instant) -> Vec<String> {
        while Instant::now() < end {
            if self.ids.is_empty() {
                self.register().await;
            } else {
                self.something().await;
            }
            yield_now().await;
        }
        self.ids
    }

    fn id(&self) -> String {
        self.ids.last().cloned().unwrap_or_default()
    }

    /// Runs a unit and counts it, or drops it anywhere on its way. `None` where no answer came.
    async fn unit<T>(
        &mut self,
        what: &'static str,
        unit: impl AsyncFnOnce(&mut Store) -> Result<T>,
    ) -> Option<T> {
        let patience = if fastrand::u32(0..DROPPED) == 0 {
            Duration::from_micros(fastrand::u64(0..8_000))
        } else {
            Duration::MAX
        };
        match timeout(patience, unit(&mut self.store)).await {
            Ok(Ok(answer)) => {
                self.tally.count(what);
                Some(answer)
            }
            Ok(Err(error)) => {
                self.tally.failed(&error);
                None
            }
            Err(_) => {
                self.tally.count("units dropped");
                None
            }
        }
    }

    async fn something(&mut self) {
        let mut drawn = fastrand::u32(0..100);
        let mut chances = CHANCES.into_iter();
        let what = loop {
            let Some((what, chance)) = chances.next() else { return };
            if drawn < chance {
                break what;
            }
            drawn -= chance;
        };
        match what {
            "exchange" => self.exchange().await,
            "beat" => self.beat().await,
            "enqueue" => self.enqueue().await,
            "reconcile" => self.reconcile().await,
            "fence" => self.fence().await,
            "cancel" | "retry" => self.meddle(what).await,
            "audit" => {
                let audited =
                    self.unit("audit", async |store| store.repair(SEMAPHORE, HOLD, "auditor").await).await;
                if let Some(repair) = audited {
                    self.tally.audited(repair.drift());
                }
            }
            "reclaim" => {
                let name = self.id();
                let ended =
                    self.unit("reclaim", async |store| store.reclaim(&name, LEASE, 0, 50).await).await;
                self.tally.add("tasks reclaimed", ended.map_or(0, |ended| ended.len() as u64));
            }
            "end coolings" => {
                let end = async |store: &mut Store| {
                    let now = store.clock().await?;
                    store.end_coolings(SEMAPHORE, now, 50).await
                };
                let freed = self.unit("end coolings", end).await;
                self.tally.add("permits cooled", freed.unwrap_or_default().unsigned_abs());
            }
            "retune" => {
                let max = fastrand::i64(0..=MOST);
                self.unit("retune", async |store| store.set_max(SEMAPHORE, max, KIND).await).await;
            }
            _ => {
                self.unit("promote", async |store| store.promote(200).await).await;
            }
        }
    }

    /// Under a new id, as every start; what it held before is left to the reclaimer.
    async fn register(&mut self) {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let id = format!(
            "{KIND}-{}-{:08x}-{}",
            std::process::id(),
            fastrand::u32(..),
            NEXT.fetch_add(1, Ordering::Relaxed)
        );
        let registration = Registration {
            id: id.clone(),
            name: KIND.to_owned(),
            host: "here".to_owned(),
            pid: std::process::id(),
            slots: 5,
            serves: format!(r#"{{"{KIND}": "{SEMAPHORE}"}}"#),
            lease: LEASE,
        };
        // Perhaps registered, where no answer came; then it is a consumer that dies at once.
        self.ids.push(id);
        let registered = self.unit("register", async |store| store.register(&registration).await).await;
        self.running.clear();
        self.doubtful.clear();
        if registered.is_none() {
            self.ids.push(String::new());
        }
    }

    /// Ends some, forgets some, claims some.
    async fn exchange(&mut self) {
        let mut ended = std::mem::take(&mut self.doubtful);
        for claim in std::mem::take(&mut self.running) {
            match fastrand::u32(0..100) {
                0..3 => self.tally.count("tasks forgotten"),
                3..60 => ended.push(end(claim, self.clock.now())),
                _ => self.running.push(claim),
            }
        }
        let want = fastrand::usize(0..=5_usize.saturating_sub(self.running.len()));
        let (consumer, policies, sent) = (self.id(), self.policies.clone(), self.clock.now());
        let exchange = Exchange {
            consumer: &consumer,
            semaphore: SEMAPHORE,
            ended: &ended,
            want,
            policies: &policies,
            sent,
            probe: None,
        };
        let Some(Exchanged { recorded, claims }) =
            self.unit("exchange", async |store| store.exchange(&exchange).await).await
        else {
            self.doubtful = ended;
            return;
        };
        self.tally.add("tasks claimed", claims.len() as u64);
        self.running.extend(claims);
        for (ended, recorded) in ended.into_iter().zip(recorded) {
            match recorded {
                Recorded::Done => self.tally.count("attempts ended"),
                Recorded::Lost => self.late(&ended, &consumer).await,
            }
        }
    }

    async fn late(&mut self, ended: &Ended, consumer: &str) {
        let late = async |store: &mut Store| store.late(consumer, ended).await;
        self.unit("late answer", late).await;
    }

    async fn beat(&mut self) {
        let id = self.id();
        if self.unit("beat", async |store| store.beat(&id, LEASE).await).await == Some(None) {
            self.register().await;
        }
    }

    async fn enqueue(&mut self) {
        let tasks: Vec<_> = (0..fastrand::usize(1..=20)).map(|_| new_task()).collect();
        let n = i64::try_from(tasks.len()).unwrap_or_default();
        let enqueued = self.unit("enqueue", async |store| store.enqueue(&tasks).await).await;
        self.tally.enqueue(n, enqueued.is_some());
    }

    /// What the database thinks we run and we never heard of goes back.
    async fn reconcile(&mut self) {
        let id = self.id();
        let Some(held) = self.unit("reconcile", async |store| store.running(&id).await).await else { return };
        let known = |attempt: &Attempt| {
            self.running.iter().any(|claim| claim.attempt == *attempt)
                || self.doubtful.iter().any(|ended| ended.attempt == *attempt)
        };
        let unheard: Vec<_> =
            held.into_iter().filter(|orphan| !known(&orphan.attempt)).map(hand_back).collect();
        self.doubtful.extend(unheard);
    }

    async fn fence(&mut self) {
        let expired = self.unit("look for expired", async |store| store.expired().await).await;
        for one in expired.unwrap_or_default().into_iter().take(2) {
            self.unit("fence", async |store| store.fence(&one).await).await;
        }
    }

    /// A person cancels or retries some task, most likely one that runs.
    async fn meddle(&mut self, what: &'static str) {
        let holders = self.unit("holders", async |store| store.holders().await).await.unwrap_or_default();
        let Some(task) = fastrand::choice(holders).and_then(|holder| holder.task) else { return };
        if what == "cancel" {
            self.unit("cancel", async |store| store.cancel(task, KIND).await).await;
        } else {
            self.unit("retry", async |store| store.retry(task, KIND).await).await;
        }
    }
}

/// An end of any kind.
fn end(claim: Claim, now: permitq::clock::Instant) -> Ended {
    let error = "so it goes".to_owned();
    let outcome = match fastrand::u32(0..20) {
        0..11 => Outcome::succeeded(Some("done".to_owned())),
        11 => Outcome::failed(error),
        12..14 => Outcome::retry(error, None),
        14 => Outcome::not_started(error),
        15..17 => Outcome::unclear(Why::Timeout, error),
        17 => Outcome {
            verdict: Verdict::Succeeded { result: None },
            end: End::Unclear(Why::Status),
            status: Some(202),
        },
        18 => {
            Outcome { verdict: Verdict::HandedBack { error }, end: End::Unclear(Why::Shutdown), status: None }
        }
        _ => Outcome::unclear(Why::Connection, error).with_status(502),
    };
    claim.end(&outcome, Some(now), &RETRY, fastrand::f64())
}

fn hand_back(orphan: Orphan) -> Ended {
    Ended {
        attempt: orphan.attempt,
        semaphore: orphan.semaphore,
        called_after: None,
        status: None,
        settlement: settle(orphan.standing, &Outcome::not_started("no answer"), &RETRY, 0.0),
        signal: None,
    }
}

fn new_task() -> NewTask {
    NewTask {
        priority: fastrand::i32(0..3),
        max_attempts: Some(fastrand::u32(1..5)),
        on_abandon: fastrand::choice(OnAbandon::ALL),
        source: KIND.to_owned(),
        ..NewTask::new(KIND, "{}")
    }
}
