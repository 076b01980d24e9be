//! `delayed`: one-shot tasks, each due at an instant of its own, and no-op consumers that wait for them. How late is each
//! call, and how many a second are there?
//!
//! Lateness is from the instant at which a task was due until its call began, both by the database's clock: the claim is
//! stamped there, and what passed between the claim's being sent and the call is added.

use std::fmt;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use permitq::store::Dialect;
use serde::Serialize;
use tokio::process::Command;
use tokio::time::{Instant, sleep, sleep_until};

use super::fleet::Used;
use super::goal::{Goal, lines};
use super::picture::Page;
use super::stats::{Spread, seconds};
use super::{Error, Place, Program, Target};

/// What is measured.
#[derive(Clone, Debug)]
pub struct Delayed {
    /// Where.
    pub database: Target,
    /// How many tasks.
    pub tasks: u64,
    /// Over which time they are due, evenly; zero: all at one instant.
    pub spread: Duration,
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
    /// Tasks that became due a second; `None` where all were at one instant.
    pub due_per_s: Option<f64>,
    /// Calls a second, from the first due instant to the last call.
    pub fired_per_s: f64,
    /// From the due instant to the call.
    pub lateness: Spread,
    /// How many calls were so late.
    pub histogram: Vec<Bar>,
    /// Must be 0: of all below.
    pub errors: i64,
    /// Tasks that have not succeeded.
    pub lost: i64,
    /// Attempts beyond one for each task.
    pub repeated: i64,
    /// Calls before their instant.
    pub early: i64,
    /// Claims above the cap.
    pub overruns: u64,
    /// The most permits held at once.
    pub peak: i64,
    /// CPU seconds of the consumers for 1,000 tasks.
    pub cpu_s_per_1000: f64,
    /// What was aimed at.
    pub targets: Vec<Goal>,
}

/// One bar of the histogram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Bar {
    /// Later than the bar before it, and by no more than this; `None`: later than all others.
    pub up_to_ms: Option<u64>,
    /// So many.
    pub tasks: usize,
}

const BARS: [u64; 12] = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000];

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let due = self.due_per_s.map_or_else(|| "all due at once".to_owned(), |n| format!("due {n:.0}/s"));
        writeln!(f, "{due}, fired {:.0}/s, peak {} permits", self.fired_per_s, self.peak)?;
        writeln!(f, "lateness: {}", self.lateness)?;
        let most = self.histogram.iter().map(|bar| bar.tasks).max().unwrap_or(1).max(1);
        for bar in self.histogram.iter().filter(|bar| bar.tasks > 0) {
            let name = bar.up_to_ms.map_or_else(|| "more".to_owned(), |ms| format!("≤ {ms} ms"));
            writeln!(f, "{name:>10}  {:>8}  {}", bar.tasks, "█".repeat((bar.tasks * 40).div_ceil(most)))?;
        }
        write!(
            f,
            "errors {}: lost {}, repeated {}, early {}, overruns {}; per 1,000 tasks {:.3} CPU seconds of the consumers",
            self.errors, self.lost, self.repeated, self.early, self.overruns, self.cpu_s_per_1000
        )?;
        lines(f, &self.targets)
    }
}

impl Delayed {
    /// # Errors
    /// Where something is in the way of measuring.
    pub async fn run(&self) -> Result<Report, Error> {
        let mut place = Place::open(&self.database).await?;
        place.store().set_max("default", self.cap, "loadtest").await?;
        let first = self.enqueue(&mut place).await?;
        let mut consumers = Vec::new();
        for _ in 0..self.consumers {
            let mut command = Command::new(&self.program.path);
            command.args(&self.program.args).arg(&place.url).arg(self.slots.to_string());
            consumers.push(command.stdin(Stdio::piped()).kill_on_drop(true).spawn()?);
        }
        self.wait(&mut place, first).await?;
        let mut used = Used::default();
        for consumer in &mut consumers {
            used.add(consumer.id().ok_or("a consumer has ended by itself")?)?;
            consumer.kill().await?;
        }
        self.report(&mut place, first, &used).await
    }

    /// By statements of the server's own, so that it takes no longer than it must; answers the first due instant
    /// (microseconds since 1970).
    async fn enqueue(&self, place: &mut Place) -> Result<i64, Error> {
        const BATCH: u64 = 50_000;
        let lead = Duration::from_secs(3) + Duration::from_micros(60) * u32::try_from(self.tasks)?;
        let first = place.store().clock().await? + i64::try_from(lead.as_micros())?;
        let step = i64::try_from(self.spread.as_micros())? / i64::try_from(self.tasks)?.max(1);
        let mut done = 0;
        while done < self.tasks {
            let batch = (self.tasks - done).min(BATCH);
            let from = first + step * i64::try_from(done)?;
            let (run_at, numbers) = match place.dialect() {
                Dialect::Sqlite => (
                    format!("{from} + n * {step}"),
                    format!(
                        "(WITH RECURSIVE s (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < {batch}) SELECT n FROM s)"
                    ),
                ),
                Dialect::Postgres => (
                    format!("'epoch'::timestamptz + ({from} + n * {step}) * interval '1 microsecond'"),
                    format!("generate_series(1, {batch}) s (n)"),
                ),
                Dialect::Mysql => (
                    format!("TIMESTAMPADD(MICROSECOND, {from} + n * {step}, TIMESTAMP'1970-01-01 00:00:00')"),
                    format!("(SELECT seq AS n FROM seq_1_to_{batch}) s"),
                ),
            };
            let insert =
                format!("INSERT INTO permitq_task (kind, run_at) SELECT 'noop', {run_at} FROM {numbers}");
            place.execute(&insert).await?;
            done += batch;
        }
        place.tidy().await?;
        if place.store().clock().await? + 1_500_000 > first {
            return Err("this machine enqueues too slowly: the first tasks would be due too soon".into());
        }
        Ok(first)
    }

    /// Until the last task has ended; looks only once all are due, so as not to be in the way.
    async fn wait(&self, place: &mut Place, first: i64) -> Result<(), Error> {
        let mut store = place.store();
        let left = u64::try_from(first - store.clock().await?).unwrap_or_default();
        let due = Instant::now() + Duration::from_micros(left) + self.spread;
        sleep_until(due).await;
        loop {
            let look = store.look(&["default".to_owned()]).await?;
            let waiting = look.next_due.is_some() || look.semaphores.iter().any(|one| !one.kinds.is_empty());
            if !waiting
                && place.number("SELECT count(*) FROM permitq_task WHERE state = 'running'").await? == 0
            {
                return Ok(());
            }
            if Instant::now() > due + Duration::from_mins(10) {
                return Err("tasks are left ten minutes after the last was due".into());
            }
            sleep(Duration::from_millis(200)).await;
        }
    }

    async fn report(&self, place: &mut Place, first: i64, used: &Used) -> Result<Report, Error> {
        let (called, due) = (place.micros("coalesce(a.called_at, a.ended_at)"), place.micros("t.run_at"));
        let late = format!(
            "SELECT {called} - {due} FROM permitq_attempt a JOIN permitq_task t ON t.id = a.task ORDER BY a.task"
        );
        let late = place.numbers(&late).await?;
        let called = place.micros("max(coalesce(called_at, ended_at))");
        let until = place.number(&format!("SELECT {called} FROM permitq_attempt")).await?;
        let lost = place.number("SELECT count(*) FROM permitq_task WHERE state <> 'succeeded'").await?;
        let peak = place.store().peak("default", 0..i64::MAX).await?;

        let tasks = self.tasks as f64;
        let early = i64::try_from(late.iter().filter(|late| **late < 0).count())?;
        let repeated = i64::try_from(late.len())? - i64::try_from(self.tasks)?;
        let late: Vec<u64> = late.into_iter().map(|late| u64::try_from(late).unwrap_or_default()).collect();
        let fired_per_s = tasks / seconds(u64::try_from(until - first)?);
        let lateness = Spread::of(late.clone());
        let due_per_s = (!self.spread.is_zero()).then(|| tasks / self.spread.as_secs_f64());
        let report = Report {
            due_per_s,
            fired_per_s,
            lateness,
            histogram: histogram(&late),
            errors: lost + repeated.abs() + early + i64::try_from(peak.overruns)?,
            lost,
            repeated,
            early,
            overruns: peak.overruns,
            peak: peak.peak,
            cpu_s_per_1000: used.cpu_s / tasks * 1000.0,
            targets: targets(due_per_s, fired_per_s, &lateness),
        };
        if let Some(file) = &self.html {
            let page = Page::new(&format!("{} delayed tasks, cap {}", self.tasks, self.cap), &report);
            let page = page.goals(&report.targets).histogram("From the due instant to the call", &late);
            std::fs::write(file, page.html())?;
        }
        Ok(report)
    }
}

/// Few tasks are to be on time; many, as fast and as punctual as the system of the field report with 4 cores and Redis beside
/// its database.
fn targets(due_per_s: Option<f64>, fired_per_s: f64, lateness: &Spread) -> Vec<Goal> {
    match due_per_s {
        Some(due) if due < 1000.0 => vec![
            Goal::at_most("lateness, median ms", lateness.p50_ms, 20.0),
            Goal::at_most("lateness, p99 ms", lateness.p99_ms, 100.0),
        ],
        Some(_) => vec![
            Goal::at_least("fired a second", fired_per_s, 8200.0),
            Goal::at_most("lateness, p99 ms", lateness.p99_ms, 180.0),
        ],
        None => vec![Goal::at_least("fired a second", fired_per_s, 8200.0)],
    }
}

fn histogram(late: &[u64]) -> Vec<Bar> {
    let bars = BARS.into_iter().map(Some).chain([None]);
    let mut bars: Vec<_> = bars.map(|up_to_ms| Bar { up_to_ms, tasks: 0 }).collect();
    for late in late {
        let at = BARS.iter().position(|ms| *late <= ms * 1000).unwrap_or(BARS.len());
        bars[at].tasks += 1;
    }
    bars
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_call_is_in_one_bar() {
        let bars = histogram(&[0, 1_000, 1_001, 19_999, 5_000_001]);
        let full: Vec<_> =
            bars.iter().filter(|bar| bar.tasks > 0).map(|bar| (bar.up_to_ms, bar.tasks)).collect();
        assert_eq!(full, [(Some(1), 2), (Some(2), 1), (Some(20), 1), (None, 1)]);
    }
}
