//! `idle`: what eight consumers with nothing to do cost.

use std::fmt;
use std::time::Duration;

use permitq::downstream::stub::{self, StubOptions};
use permitq::store::Dialect;
use serde::Serialize;
use tokio::time::sleep;

use super::fleet::Fleet;
use super::goal::{Goal, lines};
use super::{CONSUMERS, Error, Place, Program, Target, two};

/// What is measured.
#[derive(Clone, Debug)]
pub struct Idle {
    /// Where.
    pub database: Target,
    /// For how long.
    pub time: Duration,
    /// How to start consumers.
    pub program: Program,
}

/// What was measured.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Of all together; on SQLite those that wrote.
    pub transactions_per_s: Option<f64>,
    /// CPU seconds a minute of all consumers together.
    pub cpu_s_per_minute: f64,
    /// The largest consumer's resident set, in MiB.
    pub rss_mib: f64,
    /// Sessions of each consumer at the server; none on SQLite.
    pub connections: f64,
    /// What was aimed at.
    pub targets: Vec<Goal>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{CONSUMERS} consumers: {} transactions a second, {:.3} CPU seconds a minute; each {:.1} MiB resident, {:.1} sessions",
            two(self.transactions_per_s),
            self.cpu_s_per_minute,
            self.rss_mib,
            self.connections
        )?;
        lines(f, &self.targets)
    }
}

/// PostgreSQL's sessions hand their counts in after so long at the latest, when they idle.
const COUNTED: Duration = Duration::from_secs(11);

impl Idle {
    /// # Errors
    /// Where something is in the way of measuring.
    pub async fn run(&self) -> Result<Report, Error> {
        let mut place = Place::open(&self.database).await?;
        let stub = stub::start(StubOptions::default()).await?;
        let config = format!("[downstream.default]\nurl = \"{}\"\n", stub.url());
        let args = ["run", "--while-stdin"];
        let fleet = Fleet::start(&self.program, &mut place, CONSUMERS, &args, &config).await?;
        // Each heart has beaten once, and every connection is open.
        sleep(Duration::from_secs(16) + COUNTED).await;
        let (before, used) = (place.transactions().await?, fleet.used()?);
        sleep(self.time).await;
        let after = place.transactions().await?;
        let (now, seconds) = (fleet.used()?, self.time.as_secs_f64());
        let connections = place.sessions().await? as f64 / CONSUMERS as f64;
        fleet.stop().await?;
        let transactions_per_s = after.zip(before).map(|(after, before)| (after - before) as f64 / seconds);
        let (cpu_s_per_minute, rss_mib) = ((now.cpu_s - used.cpu_s) / seconds * 60.0, now.rss_mib);
        // SQLite's clients look at a file; the work of the others is the server's.
        let cpu_bound = if place.dialect() == Dialect::Sqlite { 0.3 } else { 0.1 };
        let mut targets = vec![
            Goal::at_most("CPU seconds a minute of 8 idle consumers", cpu_s_per_minute, cpu_bound),
            Goal::at_most("MiB resident of an idle consumer", rss_mib, 10.0),
        ];
        if let Some(per_s) = transactions_per_s {
            targets.push(Goal::at_most("transactions a second of 8 idle consumers", per_s, 1.5));
        }
        Ok(Report { transactions_per_s, cpu_s_per_minute, rss_mib, connections, targets })
    }
}
