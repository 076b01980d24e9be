//! `pickup`: how soon an idle fleet starts a task, from the moment its enqueue is acknowledged.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use permitq::downstream::stub::{self, StubOptions};
use permitq::model::NewTask;
use serde::Serialize;
use tokio::time::{Instant, sleep};

use super::fleet::Fleet;
use super::goal::{Goal, lines};
use super::picture::Page;
use super::stats::Spread;
use super::{CAP, CONSUMERS, Error, Place, Program, Target};

/// The best median and p99 of seven other systems, on PostgreSQL, on a machine of 2 cores, in milliseconds. On another machine
/// they have to be measured again.
const BEST: (f64, f64) = (1.7, 2.9);

/// What is measured.
#[derive(Clone, Debug)]
pub struct Pickup {
    /// Where.
    pub database: Target,
    /// How many tasks, 300 to 350 ms apart.
    pub tasks: usize,
    /// Where the report with its pictures goes.
    pub html: Option<PathBuf>,
    /// How to start consumers.
    pub program: Program,
}

/// What was measured.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// From the acknowledged commit to the call's arrival downstream.
    pub from_commit: Spread,
    /// From before the enqueue.
    pub from_enqueue: Spread,
    /// What was aimed at.
    pub targets: Vec<Goal>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "from commit to call: {}", self.from_commit)?;
        write!(f, "from before the enqueue: {}", self.from_enqueue)?;
        lines(f, &self.targets)
    }
}

impl Pickup {
    /// # Errors
    /// Where something is in the way of measuring.
    pub async fn run(&self) -> Result<Report, Error> {
        let mut place = Place::open(&self.database).await?;
        let stub = stub::start(StubOptions { limit: Some(CAP), ..StubOptions::default() }).await?;
        let config = format!("[downstream.default]\nurl = \"{}\"\n", stub.url());
        let args = ["run", "--while-stdin", "--slots", "1"];
        let fleet = Fleet::start(&self.program, &mut place, CONSUMERS, &args, &config).await?;
        sleep(Duration::from_secs(2)).await;
        let mut store = place.store();
        let (mut from_commit, mut from_enqueue) = (Vec::new(), Vec::new());
        for round in 0..self.tasks {
            let before = stub.now_us();
            store.enqueue(&[NewTask::new("call", r#"{"ms": 20}"#)]).await?;
            let committed = stub.now_us();
            let deadline = Instant::now() + Duration::from_mins(1);
            while stub.summary().log.len() <= round {
                if Instant::now() > deadline {
                    return Err(format!("task {round} has not started within a minute").into());
                }
                sleep(Duration::from_millis(5)).await;
            }
            let start = stub.summary().log[round].start_us;
            // It may have started before we heard of our own commit.
            from_commit.push(start.saturating_sub(committed));
            from_enqueue.push(start - before);
            sleep(Duration::from_millis(300 + fastrand::u64(..50))).await;
        }
        fleet.stop().await?;
        let spread = Spread::of(from_commit.clone());
        let targets = vec![
            Goal::at_most("pick-up, median ms", spread.p50_ms, BEST.0),
            Goal::at_most("pick-up, p99 ms", spread.p99_ms, 1.2 * BEST.1),
        ];
        let report = Report { from_commit: spread, from_enqueue: Spread::of(from_enqueue), targets };
        if let Some(file) = &self.html {
            let page = Page::new(&format!("{} tasks to an idle fleet", self.tasks), &report);
            let page = page.goals(&report.targets).histogram("From commit to call", &from_commit);
            std::fs::write(file, page.html())?;
        }
        Ok(report)
    }
}
