//! What keeps the tables honest: the reclaimer and the auditor, in one leaderless loop.
//!
//! ```text
//!  every 15 s, jittered:  one read: the database's clock, and is there anything to do?
//!    expired leases, read twice ─► consumer gone ─► its running tasks on_abandon, permits cool
//!    coolings past their bound  ─► permits free
//!    counters                   ─► audited, repaired without opening the cap
//!    ends not told to dependents ─► told
//!    impossible states          ─► reported; tasks that wait in vain mended
//!    what is over and old       ─► deleted (retention)
//! ```
//!
//! A pass that finds nothing to do is that one read, for every process of an idle fleet makes them. Impossible states,
//! which take longer to look for, are looked for every few minutes.
//!
//! Any consumer runs it as a role, or a process of its own does. It needs no permit, no leader and nothing but the
//! tables; several at once do no harm. It must never judge by a local wall clock, and never trust one reading.

mod prober;
mod retention;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::clock::{Clock, Instant};
use crate::event::Event;
use crate::model::{Retention, STEP_SLACK};
use crate::store::{Database, Error, Expired, Forgotten, Store};

pub use prober::Prober;
pub use retention::{Part, Walk};

/// How upkeep works.
#[derive(Clone, Debug)]
pub struct Options {
    /// Between two passes.
    pub every: Duration,
    /// The consumers' lease.
    pub lease: Duration,
    /// The consumers' beat.
    pub heartbeat: Duration,
    /// At least how long a permit cools that nothing explains.
    pub hold: Duration,
    /// How long what is over is kept.
    pub retention: Retention,
    /// How long a task waits, once due, until its priority rises by one, and again.
    pub ageing: Option<Duration>,
    /// Who it is, in the log of what it takes back and repairs.
    pub name: String,
}

/// The reclaimer and auditor.
pub struct Upkeep {
    options: Options,
    clock: Clock,
    store: Store,
    /// Consumers whose lease had passed, and when this process first read that very lease.
    suspects: BTreeMap<String, (i64, Instant)>,
    /// Both clocks at the last pass.
    clocks: Option<(i64, Instant)>,
    /// Both clocks when it began to watch them.
    began: Option<(i64, Instant)>,
    /// No cooling ends before this instant: the database's clock has stepped.
    held_until: Option<Instant>,
    reported: BTreeSet<String>,
    /// When it last looked for impossible states.
    audited: Option<Instant>,
    /// When the last walk of retention ended; the one under way, and what it has deleted.
    walked: Option<Instant>,
    walk: Option<Walk>,
    forgotten: Forgotten,
    aged: Option<Instant>,
}

/// Rows per transaction.
const BATCH: i64 = 100;
/// Between two looks for impossible states.
const AUDIT: Duration = Duration::from_mins(5);
/// Between two looks for tasks that have grown old, at most.
const AGEING: Duration = Duration::from_mins(1);

/// The pauses of a loop that passes so often, jittered; after trouble sooner.
struct Pace {
    what: &'static str,
    every: Duration,
    trouble: Duration,
}

impl Pace {
    fn new(what: &'static str, every: Duration) -> Self {
        Self { what, every, trouble: Duration::ZERO }
    }

    /// Waits for the next pass; answers whether there is one.
    async fn next(&mut self, pass: Result<(), Error>, stop: &CancellationToken) -> bool {
        let pause = match pass {
            Ok(()) => {
                self.trouble = Duration::ZERO;
                self.every
            }
            Err(error) => {
                self.trouble = (self.trouble * 2).clamp(Duration::from_millis(200), self.every);
                Event::Trouble { what: self.what, error: &error, again_in: self.trouble }.emit();
                self.trouble
            }
        };
        let pause = sleep(pause.mul_f64(0.75 + 0.5 * fastrand::f64()));
        stop.run_until_cancelled(pause).await.is_some()
    }
}

impl Upkeep {
    /// Upkeep of this database, on a connection of its own.
    pub fn new(database: &Database, clock: Clock, options: Options) -> Self {
        Self {
            options,
            clock,
            store: database.store(),
            suspects: BTreeMap::new(),
            clocks: None,
            began: None,
            held_until: None,
            reported: BTreeSet::new(),
            audited: None,
            walked: None,
            walk: None,
            forgotten: Forgotten::default(),
            aged: None,
        }
    }

    /// Begins to watch the database's clock: before this process registers as a consumer, so that whoever is older is
    /// somebody else.
    ///
    /// # Errors
    /// Where the database cannot be worked with.
    pub async fn begin(&mut self) -> Result<(), Error> {
        let database = self.store.clock().await?;
        self.compare_clocks(database, self.clock.now(), Duration::ZERO).await
    }

    /// Passes until `stop`. A pass that has begun is finished.
    pub async fn run(mut self, stop: CancellationToken) {
        let mut pace = Pace::new("upkeep", self.options.every);
        loop {
            let pass = self.pass().await;
            if pass.is_err() {
                // Whoever was cut off has not watched the suspects.
                self.suspects.clear();
            }
            if !pace.next(pass, &stop).await {
                return;
            }
        }
    }

    /// One pass.
    ///
    /// # Errors
    /// Where the database cannot be worked with; everything done so far is complete in itself.
    pub async fn pass(&mut self) -> Result<(), Error> {
        let before = self.clock.now();
        let check = self.store.check(self.options.lease).await?;
        let now = self.clock.now();
        self.compare_clocks(check.now, now, now.since(before)).await?;
        let mut abandoned = check.abandoned;
        if check.expired {
            abandoned |= self.fence().await?;
        } else {
            self.suspects.clear();
        }
        if abandoned {
            self.reclaim().await?;
        }
        if check.permits {
            for semaphore in self.store.semaphores().await? {
                if semaphore.cooling > 0 {
                    self.end_coolings(&semaphore.name, check.now).await?;
                }
                if semaphore.in_use != semaphore.held + semaphore.cooling {
                    self.repair(&semaphore.name).await?;
                }
            }
        }
        if check.lapsed {
            self.expire().await?;
        }
        if let Some(ageing) = self.options.ageing
            && self.aged.is_none_or(|last| now.since(last) >= (ageing / 4).min(AGEING))
        {
            self.age(ageing).await?;
            self.aged = Some(now);
        }
        if check.untold || check.lapsed {
            while self.store.tell_dependents(BATCH).await? > 0 {}
        }
        if self.audited.is_none_or(|last| now.since(last) > AUDIT) {
            for what in self.store.audit().await?.impossible {
                if self.reported.insert(what.clone()) {
                    Event::Impossible { what: &what }.emit();
                }
            }
            for stray in self.store.strays(BATCH).await? {
                self.store.mend(&stray).await?;
            }
            self.audited = Some(now);
        }
        self.prune().await;
        Ok(())
    }

    /// A step of the database's clock would end coolings early (or judge leases wrongly): hold everything that cools for
    /// as long as any permit can be held.
    /// `now` is the instant after the database's clock was read, which took so long.
    async fn compare_clocks(&mut self, database: i64, now: Instant, took: Duration) -> Result<(), Error> {
        if let Some((then, since)) = self.clocks {
            let elapsed = i64::try_from(now.since(since).as_micros()).unwrap_or(i64::MAX);
            let by_micros = (database - then) - elapsed;
            let noise = STEP_SLACK + took;
            if u128::from(by_micros.unsigned_abs()) > noise.as_micros() {
                self.suspects.clear();
                let mut hold = self.options.hold;
                for semaphore in self.store.semaphores().await? {
                    hold = hold.max(self.store.longest_hold(&semaphore.name).await?);
                }
                self.held_until = Some(now + hold);
                Event::ClockStepped { by_micros, cooling_held_for: hold }.emit();
            }
        }
        self.clocks = Some((database, now));
        self.began.get_or_insert((database, now));
        Ok(())
    }

    /// Declares consumers gone whose passed lease this process itself has read on two passes, far enough apart that
    /// survivors of an outage get to beat first: two beats, or the time that a heart may hang in a dead connection and
    /// one beat, where that is longer. Answers whether one was gone.
    async fn fence(&mut self) -> Result<bool, Error> {
        let limit = Database::beat_limit(self.options.lease);
        let enough = (self.options.heartbeat * 2).max(limit + self.options.heartbeat);
        let before = self.clock.now();
        let expired = self.store.expired().await?;
        let now = self.clock.now();
        if now.since(before) > limit {
            // No heart got through meanwhile, either.
            self.suspects.clear();
        }
        let suspects = std::mem::take(&mut self.suspects);
        let mut gone = false;
        for one in expired {
            let first = match suspects.get(&one.consumer) {
                Some((lease, first)) if *lease == one.lease_until => *first,
                _ => now,
            };
            if now.since(first) >= enough {
                if self.store.fence(&one).await? {
                    gone = true;
                    Event::Gone { consumer: &one.consumer }.emit();
                }
            } else {
                let Expired { consumer, lease_until } = one;
                self.suspects.insert(consumer, (lease_until, first));
            }
        }
        Ok(gone)
    }

    /// Takes back what nobody will finish, batch by batch; a row that cannot be taken back is passed by.
    async fn reclaim(&mut self) -> Result<(), Error> {
        let Options { name, lease, .. } = self.options.clone();
        let mut after = 0;
        loop {
            let attempts = self.store.reclaim(&name, lease, after, BATCH).await?;
            let Some(last) = attempts.iter().map(|attempt| attempt.task).max() else { return Ok(()) };
            for attempt in attempts {
                Event::Reclaimed { attempt }.emit();
            }
            after = last;
        }
    }

    /// Cancels what is not worth starting any more, batch by batch.
    async fn expire(&mut self) -> Result<(), Error> {
        loop {
            let tasks = self.store.expire(BATCH).await?;
            if tasks > 0 {
                Event::Expired { tasks }.emit();
            }
            if tasks < BATCH.unsigned_abs() {
                return Ok(());
            }
        }
    }

    /// Raises what has waited for long: the head of each queue, as nobody else is next.
    async fn age(&mut self, ageing: Duration) -> Result<(), Error> {
        let names: Vec<_> = self.store.semaphores().await?.into_iter().map(|one| one.name).collect();
        for semaphore in self.store.look(&names).await?.semaphores {
            for kind in &semaphore.kinds {
                self.store.age(&semaphore.name, kind, ageing).await?;
            }
        }
        Ok(())
    }

    /// Whether the clock may have stepped before this process began to watch it, and others were there who would know. It
    /// leaves coolings to them until it has watched for as long as any permit can be held; a consumer that died counts
    /// until it is gone. Where nobody is older, there is nobody to wait for.
    async fn is_too_young(&mut self, semaphore: &str) -> Result<bool, Error> {
        let Some((first, since)) = self.began else { return Ok(true) };
        let hold = self.options.hold.max(self.store.longest_hold(semaphore).await?);
        if self.clock.now().since(since) >= hold {
            return Ok(false);
        }
        let consumers = self.store.consumers().await?;
        Ok(consumers.iter().any(|one| one.started_at.as_microsecond() < first))
    }

    /// Those that were over at the instant that was compared with our own clock.
    async fn end_coolings(&mut self, semaphore: &str, as_of: i64) -> Result<(), Error> {
        if self.held_until.is_some_and(|until| self.clock.now() < until)
            || self.is_too_young(semaphore).await?
        {
            return Ok(());
        }
        loop {
            let permits = self.store.end_coolings(semaphore, as_of, BATCH).await?;
            if permits > 0 {
                Event::Cooled { semaphore, permits }.emit();
            }
            if permits < BATCH {
                return Ok(());
            }
        }
    }

    async fn repair(&mut self, semaphore: &str) -> Result<(), Error> {
        let repair = self.store.repair(semaphore, self.options.hold, &self.options.name).await?;
        if repair.drift() != 0 {
            Event::Drift { semaphore, in_use: repair.in_use, counted: repair.counted }.emit();
        }
        Ok(())
    }
}
