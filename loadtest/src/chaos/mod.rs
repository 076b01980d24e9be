//! Everything that can go wrong, in real processes, from a seed; and a judge who was not there.
//!
//! ```text
//!   plan (from the seed alone) ──► driver ──► journal ─────────────┐
//!                                    │ kill, freeze, cut, step …   ▼
//!   8 consumers ──proxies──► database ──► rows, trigger's log ──► judge ──► verdict
//!        └──────proxies──► stub ──────────► its log of calls ──────▲
//!                                    sampler (ledger, 10 a second) ┘
//! ```
//!
//! The judge (`check`) reads what the downstream counted and what the database holds, by SQL of its own. The journal only
//! tells it what was done, for what has to be excused: a counter is wrong between an edit by hand and its repair.

mod check;
mod evidence;
mod fleet;
mod hand;
mod journal;
mod people;
mod plan;
mod report;
mod scale;
mod stage;
mod watch;

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use permitq::downstream::stub::{self, Stub, StubOptions};
use permitq::store::{Database, Dialect};
use rustix::process::Signal;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::task::{JoinHandle, JoinSet, spawn_blocking};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, sleep_until};

use evidence::{Call, Evidence};
use fleet::Fleet;
use hand::Hand;
use journal::{Book, Outage, Struck};
use plan::{Act, Line, Side};
use scale::{CAP, CAP_MOST, KIND, SEMAPHORE};
use stage::Stage;
use watch::{Sample, Watch};

use crate::{Error, Program, Target};

pub use check::{Findings, Recovery, Violation};
pub use plan::{Fault, Place, Plan};
pub use report::{Done, Report, Tasks};

impl Program {
    /// Commands that a person runs straight at the database.
    fn by_hand(&self, stage: &Stage) -> impl Fn(&[&str]) -> Command + Send + use<> {
        let (program, environment, url) = (self.clone(), stage.environment(), stage.url.clone());
        move |args| {
            let mut command = Command::new(&program.path);
            command.args(&program.args).args(args).env_clear().envs(environment.iter().cloned());
            command.env("PERMITQ_DATABASE__URL", &url);
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            command
        }
    }
}

/// One run.
#[derive(Clone, Debug)]
pub struct Chaos {
    /// Where.
    pub target: Target,
    /// For how long faults are done.
    pub time: Duration,
    /// What the plan is made from.
    pub seed: u64,
    /// One kind of fault alone.
    pub only: Option<Fault>,
    /// How consumers are started.
    pub program: Program,
    /// Tell on standard error how it stands.
    pub progress: bool,
}

/// Who carries the plan out.
struct Driver {
    stage: Stage,
    book: Arc<Book>,
    fleet: Fleet,
    enqueue: UnboundedSender<Act>,
    operate: UnboundedSender<Act>,
    meddle: UnboundedSender<Act>,
    people: JoinSet<()>,
    /// Faults that take their time.
    pending: JoinSet<()>,
    watch: Arc<Watch>,
    sampler: JoinHandle<Vec<Sample>>,
}

impl Chaos {
    /// Refuses what cannot be done, with the reason.
    ///
    /// # Errors
    /// Where this database cannot suffer the only fault that is wanted.
    pub fn refuse(&self) -> Result<(), Error> {
        match (self.only, self.target.place()) {
            (Some(Fault::Restart), Place::File) => Err("SQLite has no server to restart".into()),
            (Some(fault @ (Fault::Restart | Fault::Clock)), Place::Url) => Err(format!(
                "{} is only done to a private server: name sqlite, postgres or mariadb instead of a URL",
                fault.name()
            )
            .into()),
            _ => Ok(()),
        }
    }

    /// What will happen when.
    pub fn plan(&self) -> Plan {
        let ms = u64::try_from(self.time.as_millis()).unwrap_or(u64::MAX);
        Plan::new(self.seed, ms, self.only, self.target.place())
    }

    /// Does it all, waits until all is done, and judges.
    ///
    /// # Errors
    /// Where the database cannot be had, or holds tasks of others.
    pub async fn run(&self) -> Result<Report, Error> {
        let plan = self.plan();
        let stage = Stage::open(&self.target, plan.has(|act| matches!(act, Act::Clock(_)))).await?;
        let database = Database::new(&stage.url)?.create().limit(Duration::from_secs(2));
        let mut hand = Hand::new(&stage.url)?;
        database.store().migrate().await?;
        let [foreign, first, cap_before] = hand.numbers(&before()).await?;
        if foreign > 0 {
            return Err(format!(
                "this database holds {foreign} tasks that are not over; name one that may be hurt"
            )
            .into());
        }
        hand.drop_changes().await;
        hand.keep_changes().await?;
        hand.execute(&format!("UPDATE permitq_semaphore SET max_permits = {CAP} WHERE name = '{SEMAPHORE}'"))
            .await?;

        let limit = u32::try_from(CAP_MOST).ok();
        let stub = stub::start(StubOptions { limit, log_max: 10_000_000, ..StubOptions::default() }).await?;
        let zero = Instant::now();
        let book = Arc::new(Book::new(zero, CAP));
        let [clock] = hand.numbers(hand.clock()).await?;
        let clock = clock - i64::try_from(book.now())?;

        let mut driver = Driver::start(self, stage, &hand, stub.addr, book.clone()).await?;
        driver.carry_out(&plan, &stub, self.progress).await?;
        let idle = if driver.stage.dialect == Dialect::Sqlite { u64::MAX } else { scale::IDLE };
        let mut evidence =
            Evidence { zero: clock, idle, ..driver.wait_for_the_rest(&stub, self.progress).await? };
        evidence.codes = driver.fleet.stop().await;
        evidence.samples = driver.finish().await?;
        // The old connection may have met a restart.
        let mut hand = hand.another();
        evidence.read(&mut hand, first).await?;
        evidence.journal = book.write().clone();
        let summary = stub.shutdown().await;
        evidence.calls = summary.log.iter().map(|entry| Call::of(entry, 0)).collect();
        hand.drop_changes().await;
        let restore =
            format!("UPDATE permitq_semaphore SET max_permits = {cap_before} WHERE name = '{SEMAPHORE}'");
        hand.execute(&restore).await?;

        let findings = check::check(&evidence);
        let holds = findings.violations.is_empty();
        let folder = driver.stage.folder.clone();
        if !holds {
            std::fs::write(folder.path().join("evidence.txt"), format!("{plan}\n\n{evidence:#?}\n"))?;
        }
        let dialect = driver.stage.dialect;
        drop(driver);
        // The driver was the last to use it.
        let logs =
            (!holds).then(|| Arc::into_inner(folder).map(|folder| folder.keep().display().to_string()));
        let ended = |how: &str| evidence.tasks.iter().filter(|task| task.state == how).count();
        Ok(Report {
            holds,
            database: name(dialect).to_owned(),
            seed: self.seed,
            seconds: self.time.as_secs_f64(),
            calls: summary.calls,
            max_in_flight: summary.max_in_flight,
            cap_most: evidence.journal.caps.iter().map(|cap| cap.max).max().unwrap_or_default(),
            tasks: Tasks {
                succeeded: ended("succeeded"),
                failed: ended("failed"),
                cancelled: ended("cancelled"),
            },
            done: done(&evidence.journal),
            findings,
            logs: logs.flatten(),
        })
    }
}

/// Tasks of others that are not over, the last task, and the cap.
fn before() -> String {
    format!(
        "SELECT (SELECT count(*) FROM permitq_task WHERE state NOT IN ('succeeded', 'failed', 'cancelled')),
                (SELECT max(id) FROM permitq_task),
                (SELECT max_permits + 0 FROM permitq_semaphore WHERE name = '{SEMAPHORE}')"
    )
}

impl Driver {
    async fn start(
        chaos: &Chaos,
        stage: Stage,
        hand: &Hand,
        stub: std::net::SocketAddr,
        book: Arc<Book>,
    ) -> Result<Self, Error> {
        let watch = Arc::new(Watch::default());
        let fleet = Fleet::new(&chaos.program, &stage, stub, book.clone()).await?;
        let sampler = tokio::spawn(watch::watch(hand.another(), book.clone(), watch.clone()));
        let ((enqueue, tasks), (operate, orders), (meddle, wishes)) =
            (unbounded_channel(), unbounded_channel(), unbounded_channel());
        let mut people = JoinSet::new();
        // Keys of this run alone, so that a database may be used again.
        let run = format!("{KIND}-{:08x}-", fastrand::u32(..));
        people.spawn(people::enqueue(hand.another(), book.clone(), run, watch.open.clone(), tasks));
        people.spawn(people::operate(hand.another(), book.clone(), orders));
        people.spawn(people::meddle(hand.another(), book.clone(), chaos.program.by_hand(&stage), wishes));
        let pending = JoinSet::new();
        Ok(Self { stage, book, fleet, enqueue, operate, meddle, people, pending, watch, sampler })
    }

    /// Step by step; minds the fleet meanwhile.
    async fn carry_out(&mut self, plan: &Plan, stub: &Stub, progress: bool) -> Result<(), Error> {
        let mut told = Instant::now();
        for step in &plan.steps {
            self.mind_until(self.book.moment(step.at)).await?;
            self.act(step.act)?;
            if progress && told.elapsed() > Duration::from_secs(5) {
                told = Instant::now();
                self.tell(stub);
            }
        }
        while let Some(ended) = self.pending.join_next().await {
            ended?;
        }
        Ok(())
    }

    async fn mind_until(&mut self, moment: Instant) -> Result<(), Error> {
        let mut ticks = interval(Duration::from_millis(20));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = sleep_until(moment) => return Ok(()),
                _ = ticks.tick() => self.fleet.mind(&self.stage.url)?,
            }
        }
    }

    fn tell(&self, stub: &Stub) {
        let done = done(&self.book.write());
        let seen = stub.summary();
        anstream::eprintln!(
            "{:>4} s  {} calls, {} in flight (at most {}); {} tasks open; {} kills, {} freezes, {} cuts, {} restarts",
            self.book.now() / 1000,
            seen.calls,
            seen.in_flight,
            seen.max_in_flight,
            self.watch.open.load(Ordering::Relaxed),
            done.kills,
            done.freezes,
            done.cuts + done.downstream_cuts,
            done.restarts,
        );
    }

    fn struck(&self, what: Fault, member: Option<usize>, length: u64) {
        let at = self.book.now();
        self.book.write().struck.push(Struck { at, until: at + length, what, member });
    }

    fn act(&mut self, act: Act) -> Result<(), Error> {
        match act {
            Act::Kill(member) | Act::Terminate(member) => {
                let (fault, signal) = match act {
                    Act::Kill(_) => (Fault::Kill, Signal::KILL),
                    _ => (Fault::Terminate, Signal::TERM),
                };
                if self.fleet.end(member, signal) {
                    self.struck(fault, Some(member), 0);
                }
            }
            Act::Freeze(member, length) => {
                if self.fleet.signal(member, Signal::STOP) {
                    self.struck(Fault::Freeze, Some(member), length);
                }
            }
            Act::Thaw(member) => drop(self.fleet.signal(member, Signal::CONT)),
            Act::Start(member) => self.fleet.start(member),
            Act::Line(member, side, line, length) => {
                self.fleet.line(member, side, line);
                let fault = if side == Side::Database { Fault::Cut } else { Fault::Downstream };
                self.struck(fault, Some(member), if line == Line::Cut { 0 } else { length });
            }
            Act::Mend(member, side) => self.fleet.mend(member, side),
            Act::Lock(length) => self.lock(length)?,
            Act::Restart { kill } => self.restart(kill),
            Act::Clock(ahead) => {
                if let Some(clock) = &self.stage.clock {
                    clock.set(ahead);
                    self.struck(Fault::Clock, None, 0);
                    let at = self.book.now();
                    self.book.write().steps.push((at, ahead));
                }
            }
            Act::Enqueue(..) => self.enqueue.send(act)?,
            Act::Retune(_) | Act::Edit(_) => self.operate.send(act)?,
            Act::Cancel { .. } | Act::Retry => self.meddle.send(act)?,
        }
        Ok(())
    }

    /// Somebody else writes to the file for so long.
    fn lock(&mut self, length: u64) -> Result<(), Error> {
        let (mut hand, book) = (Hand::new(&self.stage.url)?, self.book.clone());
        self.pending.spawn(async move {
            if hand.execute("BEGIN IMMEDIATE").await.is_err() {
                return;
            }
            let from = book.now();
            sleep(Duration::from_millis(length)).await;
            // Its end with the connection is as good.
            drop(hand.execute("ROLLBACK").await);
            let until = book.now();
            let mut journal = book.write();
            journal.outages.push(Outage { from, until });
            journal.struck.push(Struck { at: from, until, what: Fault::Cut, member: None });
        });
        Ok(())
    }

    fn restart(&mut self, kill: bool) {
        let Some(server) = self.stage.server.clone() else { return };
        let book = self.book.clone();
        self.pending.spawn(async move {
            let from = book.now();
            let restarted = spawn_blocking(move || {
                let mut server = server.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                if kill {
                    server.kill9();
                }
                server.restart();
            });
            drop(restarted.await);
            let until = book.now();
            let mut journal = book.write();
            journal.outages.push(Outage { from, until });
            journal.struck.push(Struck { at: from, until, what: Fault::Restart, member: None });
        });
    }

    /// The faults are over. Waits until every task is final and every permit free, as long as that may take.
    async fn wait_for_the_rest(&mut self, stub: &Stub, progress: bool) -> Result<Evidence, Error> {
        let end = self.book.now();
        let rest = self.open_tasks().await;
        let deadline = Instant::now() + Duration::from_millis(scale::drain(rest));
        let mut told = Instant::now();
        let mut settled = None;
        let mut quiet_since = None;
        while Instant::now() < deadline {
            self.mind_until(Instant::now() + Duration::from_millis(100)).await?;
            let quiet = self.watch.open.load(Ordering::Relaxed) == 0
                && self.watch.in_use.load(Ordering::Relaxed) == 0
                && stub.summary().in_flight == 0;
            // Not a sample from before the last enqueue.
            let since = *quiet_since.get_or_insert_with(|| self.book.now());
            if !quiet {
                quiet_since = None;
            } else if self.book.now() - since >= 500 {
                settled = Some(since);
                break;
            }
            if progress && told.elapsed() > Duration::from_secs(5) {
                told = Instant::now();
                self.tell(stub);
            }
        }
        Ok(Evidence { end, settled, rest, ..Evidence::default() })
    }

    /// Once everything that was ordered has been done.
    async fn open_tasks(&mut self) -> usize {
        let (closed, _) = unbounded_channel();
        self.enqueue = closed.clone();
        self.operate = closed.clone();
        self.meddle = closed;
        while self.people.join_next().await.is_some() {}
        usize::try_from(self.watch.open.load(Ordering::Relaxed)).unwrap_or_default()
    }

    async fn finish(&mut self) -> Result<Vec<Sample>, Error> {
        self.watch.stop.store(true, Ordering::Relaxed);
        Ok((&mut self.sampler).await?)
    }
}

fn name(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Sqlite => "sqlite",
        Dialect::Postgres => "postgres",
        Dialect::Mysql => "mariadb",
    }
}

fn done(journal: &journal::Journal) -> Done {
    let count = |what| journal.struck.iter().filter(|struck| struck.what == what).count();
    let long = |struck: &&Struck| struck.what == Fault::Freeze && struck.until - struck.at > scale::LEASE;
    Done {
        kills: count(Fault::Kill),
        freezes: count(Fault::Freeze),
        freezes_past_the_lease: journal.struck.iter().filter(long).count(),
        terminations: count(Fault::Terminate),
        cuts: count(Fault::Cut),
        downstream_cuts: count(Fault::Downstream),
        restarts: count(Fault::Restart),
        retunes: count(Fault::Retune),
        edits: count(Fault::Edit),
        clock_steps: count(Fault::Clock),
        cancels: journal.cancels,
        retries: journal.retried.len(),
    }
}
