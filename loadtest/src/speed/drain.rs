//! `drain`: no-op tasks under a cap that is far away, so that only the tables count; and the enqueue that comes before.

use std::fmt;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use permitq::clock::Clock;
use permitq::consumer::{Consumer, Options, Service, Services};
use permitq::downstream::{Call, Handler};
use permitq::model::{Limits, NewTask, Outcome};
use permitq::shutdown;
use permitq::store::Database;
use serde::Serialize;
use tokio::process::Command;
use tokio::time::{Instant, sleep};

use super::{Error, Place, Program, Target};

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
    /// The most permits held at once, as the log has it.
    pub peak: i64,
    /// Claims above the cap.
    pub overruns: u64,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "enqueued {:.0} tasks/s", self.enqueued_per_s)?;
        write!(
            f,
            "drained {:.0} tasks/s ({:.2} s), peak {} permits, overruns {}",
            self.drained_per_s, self.wall_s, self.peak, self.overruns
        )
    }
}

impl Drain {
    /// # Errors
    /// Where something is in the way of measuring.
    pub async fn run(&self) -> Result<Report, Error> {
        let mut place = Place::open(&self.database).await?;
        let mut store = place.store();
        store.set_max("default", self.cap, "loadtest").await?;
        let began = Instant::now();
        let mut left = self.tasks;
        while left > 0 {
            let batch = left.min(1000);
            store.enqueue(&vec![NewTask::new("noop", "{}"); batch]).await?;
            left -= batch;
        }
        let enqueued_per_s = self.tasks as f64 / began.elapsed().as_secs_f64();
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
        drop(consumers);
        let wall_s = place.span().await?.as_secs_f64();
        let peak = store.peak("default", 0..i64::MAX).await?;
        Ok(Report {
            enqueued_per_s,
            drained_per_s: self.tasks as f64 / wall_s,
            wall_s,
            peak: peak.peak,
            overruns: peak.overruns,
        })
    }
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
