//! `idle`: what eight consumers with nothing to do cost.

use std::fmt;
use std::time::Duration;

use permitq::downstream::stub::{self, StubOptions};
use permitq::store::Dialect;
use serde::Serialize;
use tokio::time::sleep;

use super::fleet::Fleet;
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
    /// Of all together, as the server counts them (PostgreSQL).
    pub transactions_per_s: Option<f64>,
    /// CPU seconds a minute of all consumers together.
    pub cpu_s_per_minute: f64,
    /// The largest consumer's resident set, in MiB.
    pub rss_mib: f64,
    /// Connections of each consumer.
    pub connections: Option<f64>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{CONSUMERS} consumers: {} transactions a second, {:.3} CPU seconds a minute; each {:.1} MiB resident, {} connections",
            two(self.transactions_per_s),
            self.cpu_s_per_minute,
            self.rss_mib,
            two(self.connections)
        )
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
        let sessions = match place.dialect() {
            Dialect::Sqlite => None,
            Dialect::Postgres => {
                Some("SELECT count(*) - 1 FROM pg_stat_activity WHERE datname = current_database()")
            }
            Dialect::Mysql => {
                Some("SELECT count(*) - 1 FROM information_schema.processlist WHERE db = database()")
            }
        };
        let connections = match sessions {
            Some(query) => Some(place.number(query).await? as f64 / CONSUMERS as f64),
            None => None,
        };
        fleet.stop().await?;
        Ok(Report {
            transactions_per_s: before.zip(after).map(|(before, after)| (after - before) as f64 / seconds),
            cpu_s_per_minute: (now.cpu_s - used.cpu_s) / seconds * 60.0,
            rss_mib: now.rss_mib,
            connections,
        })
    }
}
