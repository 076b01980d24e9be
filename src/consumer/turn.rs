//! The loop: select, build an event, hand it to one function. Everything this process knows of its claims is here and
//! is touched by this loop alone.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant as Moment, sleep_until};
use tokio_util::sync::CancellationToken;

use super::heart::{Heart, Pulse, Roster};
use super::job::{Answer, Job, Over};
use super::plan::Looking;
use super::run::{Of, run};
use super::{Consumer, Exit, Options, Services};
use crate::clock::{Clock, Instant};
use crate::event::Event;
use crate::model::{Attempt, Claim, Ended, Lease, RunAt, Signal};
use crate::shutdown::{Shutdown, Stage};
use crate::store::{Database, Error, Exchanged, Left, Recorded, Registration, Store};
use crate::wake::Wake;

/// A call under way.
#[derive(Debug)]
pub(super) struct Slot {
    /// The id it was claimed under.
    pub(super) owner: Arc<str>,
    /// Whose permit it holds.
    semaphore: String,
    /// The claim is somebody else's by now: what comes is a late answer.
    pub(super) lost: bool,
    /// Hanging up stops the downstream, so hang up before the lease can be taken.
    stops_on_disconnect: bool,
    abort: CancellationToken,
    /// It is the probe of this downstream, which is not down where the call still goes on at that moment.
    probe: Option<(String, Moment)>,
}

/// An ended claim, and the id it was claimed under.
pub(super) type End = (Arc<str>, Ended);

/// The consumer's loop and all it knows.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own, not a state in disguise")]
pub(super) struct Loop {
    pub(super) options: Options,
    pub(super) services: Services,
    pub(super) clock: Clock,
    pub(super) shutdown: Shutdown,
    /// The stage that has been acted on. The signal itself comes at any moment, also between two turns.
    acted: Stage,
    installation: Arc<str>,
    lease: Lease,
    /// The id this process is registered under; `None` between being declared gone and registering again.
    pub(super) id: Option<Arc<str>>,
    /// The store, while no job has it.
    pub(super) store: Option<Store>,
    jobs: JoinSet<Over>,
    calls: JoinSet<End>,
    pub(super) slots: BTreeMap<Attempt, Slot>,
    /// Ends that are not recorded yet.
    pub(super) ended: Vec<End>,
    /// Late answers that are not kept yet.
    pub(super) late: Vec<End>,
    /// How many ends one exchange may carry; one after a refusal, so that one bad row fails alone.
    pub(super) batch: usize,
    /// The database may have claims of ours whose answer never arrived.
    pub(super) reconcile: bool,
    /// The last exchange failed: record ends alone until one succeeds, so that finishing never depends on claiming.
    pub(super) record_only: bool,
    pub(super) looking: Looking,
    /// After trouble, no job before this moment.
    pub(super) not_before: Moment,
    trouble: Duration,
    roster: watch::Sender<Roster>,
    pulses: mpsc::Receiver<Pulse>,
    wake: Wake,
    pub(super) told_draining: bool,
    pub(super) left: bool,
    /// From then on running calls are given up.
    give_up_at: Option<Moment>,
    /// From then on nothing is waited for.
    stop_at: Option<Moment>,
    exit: Exit,
}

/// The most ends that one exchange carries.
pub(super) const BATCH: usize = 200;
/// After giving up, how long the ends may take to be recorded.
const LAST_WORDS: Duration = Database::LIMIT.saturating_mul(2);

/// A downstream that is down says so within its connect timeout and this.
const PATIENCE: Duration = Duration::from_secs(5);

/// With nothing to record, how long taking leave may take.
const LEAVE: Duration = Duration::from_secs(3);

enum Happened {
    CallEnded(End),
    JobOver(Box<Over>),
    Beat(Pulse),
    Woken,
    Shutdown,
    Turn,
    /// A loop of ours has died.
    Broken(&'static str),
}

impl Loop {
    /// Checks schema and semaphores, registers, and starts the heart.
    pub(super) async fn start(consumer: Consumer, shutdown: Shutdown) -> Result<Self, Error> {
        let Consumer { database, services, options, clock } = consumer;
        let mut store = database.store();
        let installation = store.schema().await?.installation.into();
        let names = services.semaphores();
        let look = store.look(&names).await?;
        for name in &names {
            if !look.semaphores.iter().any(|semaphore| semaphore.name == *name) {
                return Err(Error::Schema(format!(
                    "there is no semaphore {name:?}; add it with `permitq permits add {name} MAX`"
                )));
            }
        }
        let sent = clock.now();
        let registration = registration(&options, &services);
        store.register(&registration).await?;
        let id: Arc<str> = registration.id.into();
        Event::Registered { consumer: &id, slots: options.slots }.emit();

        let roster = Roster { consumer: id.clone(), calling: Arc::default(), turned: sent, stop: false };
        let (roster, watched) = watch::channel(roster);
        let (pulse, pulses) = mpsc::channel(8);
        Heart {
            database: database.clone().limit(Database::beat_limit(options.lease)),
            clock: clock.clone(),
            every: options.heartbeat,
            lease: options.lease,
            roster: watched,
            pulses: pulse,
            on_stuck: options.on_stuck,
        }
        .start()
        .map_err(|error| Error::Schema(format!("cannot start the heartbeat's thread: {error}")))?;

        Ok(Self {
            lease: Lease::new(options.lease, sent),
            looking: Looking::new(options.poll),
            wake: Wake::connect(&database),
            options,
            services,
            clock,
            shutdown,
            acted: Stage::Run,
            installation,
            id: Some(id),
            store: Some(store),
            jobs: JoinSet::new(),
            calls: JoinSet::new(),
            slots: BTreeMap::new(),
            ended: Vec::new(),
            late: Vec::new(),
            batch: BATCH,
            reconcile: false,
            record_only: false,
            not_before: Moment::now(),
            trouble: Duration::ZERO,
            roster,
            pulses,
            told_draining: false,
            left: false,
            give_up_at: None,
            stop_at: None,
            exit: Exit::Drained,
        })
    }

    /// Turns until everything has ended.
    pub(super) async fn run(mut self) -> Result<Exit, Error> {
        while !self.is_over() {
            self.begin_job();
            self.show_roster();
            let happened = self.next().await;
            if let Happened::Broken(what) = happened {
                // What we hold is as unclear as after a crash, and is treated so: the lease runs out.
                return Err(Error::Broken(what));
            }
            self.handle(happened);
            self.mind_the_time();
        }
        self.roster.send_modify(|roster| roster.stop = true);
        let unrecorded = !self.left && !self.is_done();
        Ok(if unrecorded && self.exit == Exit::Drained { Exit::HandedBack } else { self.exit })
    }

    async fn next(&mut self) -> Happened {
        let acted = self.acted;
        let turn = self.next_turn();
        tokio::select! {
            Some(end) = self.calls.join_next(), if !self.calls.is_empty() => match end {
                Ok(end) => Happened::CallEnded(end),
                // Only a bug of ours can panic here; its claim is left to its bound.
                Err(_) => Happened::Turn,
            },
            Some(over) = self.jobs.join_next(), if !self.jobs.is_empty() => match over {
                Ok(over) => Happened::JobOver(Box::new(over)),
                Err(_) => Happened::Broken("the database loop"),
            },
            pulse = self.pulses.recv() => pulse.map_or(Happened::Broken("the heartbeat"), Happened::Beat),
            () = self.wake.woken() => Happened::Woken,
            () = self.shutdown.past(acted), if acted < Stage::Now => Happened::Shutdown,
            () = sleep_until(turn) => Happened::Turn,
        }
    }

    /// The next moment at which something is due by itself; also a sign of life for the heart, several times per lease.
    fn next_turn(&self) -> Moment {
        let now = Moment::now();
        let lease = self.lease.deadline().since(self.clock.now());
        let idle = self.store.is_some();
        let due = [
            Some(now + self.options.lease / 8),
            (!lease.is_zero()).then(|| now + lease),
            (idle && self.may_claim()).then(|| self.looking.at.max(self.not_before)),
            (idle && self.not_before > now).then_some(self.not_before),
            self.give_up_at.filter(|_| self.stop_at.is_none()),
            self.stop_at,
            self.slots.values().filter_map(|slot| slot.probe.as_ref()).map(|(_, at)| *at).min(),
        ];
        let turn = due.into_iter().flatten().min().unwrap_or(now);
        // A moment that has just passed must not make the loop spin.
        turn.max(now + Duration::from_millis(1))
    }

    fn handle(&mut self, happened: Happened) {
        match happened {
            // Also of a lost claim: until the reclaimer has taken the task back, it can still be finished.
            Happened::CallEnded((owner, ended)) => {
                self.slots.remove(&ended.attempt);
                self.ended.push((owner, ended));
            }
            Happened::JobOver(over) => self.job_over(*over),
            Happened::Beat(pulse) => self.compare(&pulse),
            Happened::Woken => self.looking.woken(),
            Happened::Shutdown => self.stop_claiming(),
            Happened::Turn | Happened::Broken(_) => {}
        }
    }

    fn begin_job(&mut self) {
        if self.store.is_none() || Moment::now() < self.not_before {
            return;
        }
        let Some(job) = self.plan() else { return };
        let Some(store) = self.store.take() else { return };
        let sent = self.clock.now();
        self.jobs.spawn(job.run(store, sent));
    }

    fn job_over(&mut self, over: Over) {
        let Over { store, job, sent, answer } = over;
        self.store = Some(store);
        match answer {
            Ok(answer) => {
                self.trouble = Duration::ZERO;
                self.answered(job, sent, answer);
            }
            Err(error) => self.failed(job, &error),
        }
    }

    fn answered(&mut self, job: Job, sent: Instant, answer: Answer) {
        match (job, answer) {
            (Job::Exchange { consumer, semaphore, ended, want, probe, .. }, Answer::Exchanged(exchanged)) => {
                self.exchanged(&consumer, &semaphore, ended, want, probe.as_deref(), exchanged);
            }
            (Job::Register(registration), Answer::Registered) => {
                let id: Arc<str> = registration.id.into();
                Event::Registered { consumer: &id, slots: self.options.slots }.emit();
                self.lease = Lease::new(self.options.lease, sent);
                self.id = Some(id);
                self.looking.woken();
            }
            (Job::Late { ended, .. }, Answer::Late(kept)) => {
                Event::LateAnswer { attempt: ended.attempt, kept }.emit();
            }
            (_, Answer::Looked(look)) => {
                let held = |name: &str| self.slots.values().filter(|slot| slot.semaphore == name).count();
                self.looking.saw(look, &self.services, held, self.wake.is_connected());
            }
            (_, Answer::Promoted(promoted)) => self.looking.promoted(promoted),
            (_, Answer::Reconciled(attempts)) if attempts > 0 => Event::HandedBack { attempts }.emit(),
            (Job::Reopen { downstream, .. }, Answer::Reopened(true)) => {
                Event::Downstream { downstream: &downstream, down: false }.emit();
                self.looking.later(Duration::ZERO);
            }
            (_, Answer::Left(Left::Draining)) => self.told_draining = true,
            (_, Answer::Left(Left::Gone)) => self.left = true,
            // Each job answers in kind.
            (
                _,
                Answer::Registered
                | Answer::Exchanged(_)
                | Answer::Late(_)
                | Answer::Reconciled(_)
                | Answer::Reopened(_),
            ) => {}
        }
    }

    fn exchanged(
        &mut self,
        consumer: &Arc<str>,
        semaphore: &str,
        ended: Vec<Ended>,
        want: usize,
        probe: Option<&str>,
        exchanged: Exchanged,
    ) {
        self.record_only = false;
        let hand_over = !ended.is_empty();
        if hand_over {
            self.batch = (self.batch * 2).min(BATCH);
        }
        let claims = exchanged.claims.len();
        // First of all: each of them holds a permit by now.
        for claim in exchanged.claims {
            self.start_call(consumer, claim, probe);
        }
        for (ended, recorded) in ended.into_iter().zip(exchanged.recorded) {
            match recorded {
                Recorded::Done => {
                    if let Some(RunAt::In(delay) | RunAt::AfterCooling(delay)) = ended.settlement.run_at {
                        self.looking.later(delay);
                    }
                    Event::Ended { attempt: ended.attempt, settlement: &ended.settlement }.emit();
                    if let Some(Signal { downstream, down }) = &ended.signal {
                        Event::Downstream { downstream, down: down.is_some() }.emit();
                        // Its pause, or what waited for its end, is to be seen.
                        self.looking.later(Duration::ZERO);
                    }
                }
                Recorded::Lost => self.late.push((consumer.clone(), ended)),
            }
        }
        if !hand_over && claims > 0 {
            self.looking.keep_for_now();
        }
        if probe.is_some() {
            return;
        }
        if claims < want {
            self.looking.ran_short(semaphore, claims);
        } else if !hand_over {
            self.looking.got_all();
        }
    }

    /// A probe that has gone on for so long that its downstream is neither refusing connections nor answering that it is
    /// down.
    pub(super) fn passed_probe(&mut self) -> Option<(String, Attempt)> {
        let now = Moment::now();
        let mut passed =
            self.slots.iter_mut().filter(|(_, slot)| slot.probe.as_ref().is_some_and(|(_, at)| *at <= now));
        passed
            .next()
            .and_then(|(attempt, slot)| slot.probe.take().map(|(downstream, _)| (downstream, *attempt)))
    }

    /// Starts the call of a claim. One that was sent under an earlier id is never started: it is the reclaimer's.
    fn start_call(&mut self, consumer: &Arc<str>, claim: Claim, probe: Option<&str>) {
        if self.id.as_ref() != Some(consumer) {
            Event::Lost { attempt: claim.attempt }.emit();
            return;
        }
        let Some(service) = self.services.of(&claim.kind).cloned() else { return };
        Event::Claimed { attempt: claim.attempt, kind: &claim.kind, semaphore: &claim.semaphore }.emit();
        let abort = CancellationToken::new();
        let passed = Moment::now() + service.limits.connect_timeout + PATIENCE;
        let slot = Slot {
            owner: consumer.clone(),
            semaphore: claim.semaphore.clone(),
            lost: false,
            stops_on_disconnect: service.limits.stops_on_disconnect,
            abort: abort.clone(),
            probe: probe.map(|downstream| (downstream.to_owned(), passed)),
        };
        self.slots.insert(claim.attempt, slot);
        let (owner, installation, clock) = (consumer.clone(), self.installation.clone(), self.clock.clone());
        let of = Of { downstream: self.services.downstream(&claim.kind).to_owned(), probe: probe.is_some() };
        self.calls
            .spawn(async move { (owner, run(claim, service, of, &installation, &clock, &abort).await) });
    }

    /// Trouble is waited out: what the job carried goes back, and the next one comes after a growing, jittered pause.
    fn failed(&mut self, job: Job, error: &Error) {
        self.trouble = (self.trouble * 2).clamp(Duration::from_millis(50), Duration::from_secs(5));
        let pause = self.trouble.mul_f64(0.5 + fastrand::f64());
        self.not_before = Moment::now() + pause;
        Event::Trouble { what: "consumer", error, again_in: pause }.emit();
        match job {
            Job::Exchange { consumer, mut ended, want, .. } => {
                // The transaction may have been committed with claims we never heard of.
                self.reconcile |= want > 0;
                self.record_only = true;
                if let (Error::Refused { reason, .. }, [one]) = (error, ended.as_mut_slice()) {
                    one.settlement.result = None;
                    one.settlement.error = Some(format!("the answer could not be stored: {reason}"));
                }
                self.batch = 1;
                self.ended.extend(ended.into_iter().map(|ended| (consumer.clone(), ended)));
            }
            Job::Late { consumer, ended } => self.late.push((consumer, ended)),
            Job::Reconcile { .. } => self.reconcile = true,
            // Whoever finds a downstream up says so again at the end of its call.
            Job::Reopen { .. } | Job::Register(_) | Job::Look(_) | Job::Promote | Job::Leave { .. } => {}
        }
    }

    /// Compares what the database thinks we run with what we ran when the beat was sent.
    fn compare(&mut self, pulse: &Pulse) {
        let Some(held) = &pulse.held else {
            Event::Fenced { consumer: &pulse.roster.consumer }.emit();
            if self.id.as_ref() == Some(&pulse.roster.consumer) {
                self.id = None;
                self.reconcile = false;
            }
            return self.lose(|owner, _| *owner == pulse.roster.consumer);
        };
        if self.id.as_ref() == Some(&pulse.roster.consumer) {
            self.lease.confirmed(pulse.sent);
        }
        self.lose(|_, attempt| pulse.roster.calling.contains(attempt) && !held.contains(attempt));
        let known = self.known(&pulse.roster.consumer);
        self.reconcile |= held.iter().any(|attempt| !known.contains(attempt));
    }

    /// These claims are somebody else's. Their calls go on, unless hanging up stops the downstream.
    fn lose(&mut self, is_lost: impl Fn(&Arc<str>, &Attempt) -> bool) {
        for (attempt, slot) in &mut self.slots {
            if !slot.lost && is_lost(&slot.owner, attempt) {
                slot.lost = true;
                Event::Lost { attempt: *attempt }.emit();
                if slot.stops_on_disconnect {
                    slot.abort.cancel();
                }
            }
        }
    }

    /// Every attempt of this id that we call or have not recorded yet.
    pub(super) fn known(&self, consumer: &Arc<str>) -> BTreeSet<Attempt> {
        let calling =
            self.slots.iter().filter(|(_, slot)| slot.owner == *consumer).map(|(attempt, _)| *attempt);
        let ended = self.ended.iter().filter(|(owner, _)| owner == consumer).map(|(_, ended)| ended.attempt);
        calling.chain(ended).collect()
    }

    fn show_roster(&self) {
        let turned = self.clock.now();
        let calling: BTreeSet<Attempt> = match &self.id {
            Some(id) => self
                .slots
                .iter()
                .filter(|(_, slot)| slot.owner == *id && !slot.lost)
                .map(|(attempt, _)| *attempt)
                .collect(),
            None => BTreeSet::new(),
        };
        self.roster.send_modify(|roster| {
            roster.turned = turned;
            if let Some(id) = &self.id {
                roster.consumer = id.clone();
            }
            if *roster.calling != calling {
                roster.calling = Arc::new(calling);
            }
        });
    }

    pub(super) fn may_claim(&self) -> bool {
        self.id.is_some() && self.shutdown.stage() == Stage::Run && self.clock.now() < self.lease.deadline()
    }

    /// Slots that hold no permit: none for a call, and none for an end that is not recorded yet.
    pub(super) fn free_slots(&self) -> usize {
        self.options.slots.saturating_sub(self.slots.len() + self.ended.len())
    }

    fn stop_claiming(&mut self) {
        let now = Moment::now();
        self.acted = self.shutdown.stage();
        match self.acted {
            Stage::Run => {}
            Stage::Drain => {
                Event::Draining { running: self.slots.len() }.emit();
                self.give_up_at = Some(now + self.options.grace);
            }
            Stage::Now => self.give_up(Exit::Forced),
        }
    }

    fn give_up(&mut self, exit: Exit) {
        if self.stop_at.is_some() {
            return;
        }
        self.stop_at = Some(Moment::now() + LAST_WORDS);
        if !self.slots.is_empty() {
            Event::GivingUp { running: self.slots.len() }.emit();
            self.exit = exit;
        }
        for slot in self.slots.values() {
            slot.abort.cancel();
        }
    }

    /// What is due by the clock alone.
    fn mind_the_time(&mut self) {
        let draining = self.give_up_at.is_some();
        if self.give_up_at.is_some_and(|at| Moment::now() >= at) {
            self.give_up(Exit::HandedBack);
        } else if draining && self.is_done() && self.stop_at.is_none() {
            // Only taking leave is left; nobody is hurt by a row that stays for a lease.
            self.stop_at = Some(Moment::now() + LEAVE);
        }
        if self.clock.now() >= self.lease.deadline() {
            for slot in self.slots.values().filter(|slot| slot.stops_on_disconnect) {
                slot.abort.cancel();
            }
        }
    }

    pub(super) fn is_done(&self) -> bool {
        self.slots.is_empty() && self.ended.is_empty() && self.late.is_empty() && !self.reconcile
    }

    fn is_over(&self) -> bool {
        self.left || self.stop_at.is_some_and(|at| Moment::now() >= at)
    }
}

/// What this process says of itself, under a new id.
pub(super) fn registration(options: &Options, services: &Services) -> Registration {
    let unique = uuid::Uuid::now_v7().simple().to_string();
    Registration {
        id: format!("{}-{}", options.name, &unique[20..]),
        name: options.name.clone(),
        host: options.host.clone(),
        pid: std::process::id(),
        slots: options.slots,
        serves: services.describe(),
        lease: options.lease,
    }
}
