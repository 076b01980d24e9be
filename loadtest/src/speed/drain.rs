//! `drain`: no-op tasks under a cap that is far away, so that only the tables count; and the enqueue that comes before.
//! Beside it the bare loop: the same statements, in batches of as many, over the bare driver; without the log; without
//! counting permits. Each drains as many tasks from the same tables, one after the other.

use std::fmt;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use permitq::clock::Clock;
use permitq::consumer::{Consumer, Options, Service, Services};
use permitq::downstream::{Call, Handler};
use permitq::model::{Limits, NewTask, Outcome};
use permitq::shutdown;
use permitq::store::{Database, Registration};
use serde::Serialize;
use tokio::process::Command;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::fleet::Used;
use super::goal::{Goal, lines};
use super::picture::Page;
use super::{Error, Place, Program, Target, two};
use crate::raw::Raw;

const KIND: &str = "noop";

/// What is measured.
#[derive(Clone, Debug)]
pub struct Drain {
    /// Where.
    pub database: Target,
    /// How many tasks.
    pub tasks: usize,
    /// Consumer processes.
    pub consumers: usize,
    /// Calls at once in each.
    pub slots: usize,
    /// Permits.
    pub cap: i64,
    /// Where the report with its pictures goes.
    pub html: Option<PathBuf>,
    /// How to start a consumer of no-ops: the arguments before the database's URL and the slots.
    pub program: Program,
}

/// What was measured.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Tasks enqueued a second, in batches of 1,000.
    pub enqueued_per_s: f64,
    /// Tasks ended a second, from the first claim to the last end.
    pub drained_per_s: f64,
    /// From the first claim to the last end.
    pub wall_s: f64,
    /// Ended a second by the bare loop.
    pub bare_per_s: f64,
    /// By the bare loop without the attempt log.
    pub without_log_per_s: f64,
    /// By the bare loop that counts no permits.
    pub without_cap_per_s: f64,
    /// `drained_per_s` over `bare_per_s`.
    pub of_bare: f64,
    /// CPU seconds of the consumers for 1,000 tasks.
    pub cpu_s_per_1000: f64,
    /// The largest consumer's resident set at the end, in MiB.
    pub rss_mib: f64,
    /// Transactions of the consumers for a task, starting them included; on SQLite those that wrote.
    pub transactions_per_task: Option<f64>,
    /// The most permits held at once, as the log has it.
    pub peak: i64,
    /// Claims above the cap.
    pub overruns: u64,
    /// What was aimed at.
    pub targets: Vec<Goal>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "enqueued {:.0} tasks/s", self.enqueued_per_s)?;
        writeln!(
            f,
            "drained {:.0} tasks/s ({:.2} s), peak {} permits, overruns {}",
            self.drained_per_s, self.wall_s, self.peak, self.overruns
        )?;
        let share = |per_s: f64| (1.0 - self.bare_per_s / per_s) * 100.0;
        writeln!(
            f,
            "bare loop {:.0}; without the log {:.0}, which costs {:.0} % of its time; without the cap {:.0}, which costs {:.0} %",
            self.bare_per_s,
            self.without_log_per_s,
            share(self.without_log_per_s),
            self.without_cap_per_s,
            share(self.without_cap_per_s)
        )?;
        write!(
            f,
            "per 1,000 tasks {:.3} CPU seconds of the consumers; {} transactions per task; {:.1} MiB resident",
            self.cpu_s_per_1000,
            two(self.transactions_per_task),
            self.rss_mib
        )?;
        lines(f, &self.targets)
    }
}

impl Drain {
    /// # Errors
    /// Where something is in the way of measuring.
    pub async fn run(&self) -> Result<Report, Error> {
        let mut place = Place::open(&self.database).await?;
        place.store().set_max("default", self.cap, "loadtest").await?;
        let enqueued_per_s = self.enqueue(&mut place).await?;
        let before = place.transactions().await?;
        let used = self.consume(&mut place).await?;
        let transactions = place.transactions().await?.zip(before).map(|(now, before)| now - before);
        let wall_s = place.span().await?.as_secs_f64();
        let peak = place.store().peak("default", 0..i64::MAX).await?;
        let ends = place.micros("ended_at");
        let ends = place.numbers(&format!("SELECT {ends} FROM permitq_attempt ORDER BY 1")).await?;

        let bare_per_s = self.bare(&mut place, true, true).await?;
        let without_log_per_s = self.bare(&mut place, false, true).await?;
        let without_cap_per_s = self.bare(&mut place, true, false).await?;
        let drained_per_s = self.tasks as f64 / wall_s;
        let of_bare = drained_per_s / bare_per_s;
        let report = Report {
            enqueued_per_s,
            drained_per_s,
            wall_s,
            bare_per_s,
            without_log_per_s,
            without_cap_per_s,
            of_bare,
            cpu_s_per_1000: used.cpu_s / self.tasks as f64 * 1000.0,
            rss_mib: used.rss_mib,
            transactions_per_task: transactions.map(|n| n as f64 / self.tasks as f64),
            peak: peak.peak,
            overruns: peak.overruns,
            targets: vec![Goal::at_least("drain over the bare loop", of_bare, 0.8)],
        };
        if let Some(file) = &self.html {
            let page = Page::new(&format!("{} no-op tasks, cap {}", self.tasks, self.cap), &report);
            let page = page.goals(&report.targets).line("Tasks ended", "a second", &per_second(&ends), None);
            std::fs::write(file, page.html())?;
        }
        Ok(report)
    }

    /// Tasks a second, in batches of 1,000.
    async fn enqueue(&self, place: &mut Place) -> Result<f64, Error> {
        let mut store = place.store();
        let began = Instant::now();
        let mut left = self.tasks;
        while left > 0 {
            let batch = left.min(1000);
            store.enqueue(&vec![NewTask::new(KIND, "{}"); batch]).await?;
            left -= batch;
        }
        let per_s = self.tasks as f64 / began.elapsed().as_secs_f64();
        place.tidy().await?;
        Ok(per_s)
    }

    /// By consumers; what they have used by then.
    async fn consume(&self, place: &mut Place) -> Result<Used, Error> {
        let mut consumers = Vec::new();
        for _ in 0..self.consumers {
            let mut command = Command::new(&self.program.path);
            command.args(&self.program.args).arg(&place.url).arg(self.slots.to_string());
            consumers.push(command.stdin(Stdio::piped()).kill_on_drop(true).spawn()?);
        }
        let left = "SELECT count(*) FROM permitq_task WHERE state IN ('pending', 'running')";
        let deadline = Instant::now() + Duration::from_mins(10);
        while place.number(left).await? > 0 {
            if Instant::now() > deadline {
                return Err("tasks are left after ten minutes".into());
            }
            sleep(Duration::from_millis(100)).await;
        }
        let mut used = Used::default();
        for consumer in &mut consumers {
            used.add(consumer.id().ok_or("a consumer has ended by itself")?)?;
            consumer.kill().await?;
        }
        Ok(used)
    }

    /// By as many clients as there are consumers, over the bare driver.
    async fn bare(&self, place: &mut Place, log: bool, cap: bool) -> Result<f64, Error> {
        self.enqueue(place).await?;
        let mut clients = JoinSet::new();
        let mut raws = Vec::new();
        for _ in 0..self.consumers {
            let consumer = format!("bare-{:x}", fastrand::u64(..));
            let registration = Registration {
                id: consumer.clone(),
                name: "bare".to_owned(),
                host: "here".to_owned(),
                pid: std::process::id(),
                slots: self.slots,
                serves: "{}".to_owned(),
                lease: Duration::from_hours(1),
            };
            place.store().register(&registration).await?;
            let (url, dialect) = (place.url.clone(), place.dialect());
            raws.push(Raw { url, dialect, consumer, kind: KIND, batch: self.slots, log, cap });
        }
        let began = Instant::now();
        for raw in raws {
            clients.spawn(async move { raw.drain().await });
        }
        let mut drained = 0;
        while let Some(done) = clients.join_next().await {
            drained += done??;
        }
        if drained != self.tasks {
            return Err(format!("the bare loop drained {drained} of {} tasks", self.tasks).into());
        }
        Ok(drained as f64 / began.elapsed().as_secs_f64())
    }
}

/// Ends a second, in 50 steps.
fn per_second(ends: &[i64]) -> Vec<(f64, f64)> {
    const STEPS: u32 = 50;
    let (Some(first), Some(last)) = (ends.first(), ends.last()) else { return Vec::new() };
    let step = ((last - first) / i64::from(STEPS) + 1) as f64 / 1e6;
    let mut counts = [0_u32; STEPS as usize];
    for end in ends {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "below STEPS")]
        let at = ((end - first) as f64 / 1e6 / step) as usize;
        counts[at.min(STEPS as usize - 1)] += 1;
    }
    counts.iter().enumerate().map(|(at, n)| ((at + 1) as f64 * step, f64::from(*n) / step)).collect()
}

/// Does nothing.
struct Noop;

#[async_trait]
impl Handler for Noop {
    async fn call(&self, _call: &Call) -> Outcome {
        Outcome::succeeded(None)
    }
}

/// A consumer of no-ops, for as long as the process lives.
///
/// # Errors
/// Where the database cannot be worked with.
pub async fn consume(url: &str, slots: usize) -> Result<(), Error> {
    let mut services = Services::default();
    let handler = Arc::new(Noop);
    services.add_rest(Service { semaphore: "default".to_owned(), limits: Limits::default(), handler });
    let options = Options { slots, ..Options::default() };
    let consumer = Consumer { database: Database::new(url)?, services, options, clock: Clock::default() };
    let (_trigger, shutdown) = shutdown::channel();
    consumer.run(shutdown).await?;
    Ok(())
}
