//! `burst`: tasks that come all at once to an idle fleet. Over how many processes do the permits go, and how soon are all in
//! use?

use std::fmt;
use std::time::Duration;

use permitq::downstream::stub::{self, StubOptions};
use permitq::model::NewTask;
use serde::Serialize;
use tokio::time::{Instant, sleep};

use super::fleet::Fleet;
use super::goal::{Goal, lines};
use super::stats::Spread;
use super::{CAP, CONSUMERS, Error, Place, Program, Target};

/// What is measured.
#[derive(Clone, Debug)]
pub struct Burst {
    /// Where.
    pub database: Target,
    /// How many bursts, one after the other.
    pub bursts: usize,
    /// Calls at once in each consumer: enough for all permits.
    pub slots: usize,
    /// How to start consumers.
    pub program: Program,
}

/// What was measured.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The most permits on one process, at the first moment at which all are taken, in the worst burst.
    pub most_on_one: i64,
    /// How often the most on one process were 1, 2, 3 and so on.
    pub bursts_by_most: Vec<usize>,
    /// From the acknowledged commit until all permits are in use downstream.
    pub full: Spread,
    /// What was aimed at.
    pub targets: Vec<Goal>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "from commit to {CAP} calls: {}", self.full)?;
        write!(f, "the most permits on one process of {CONSUMERS}:")?;
        for (most, bursts) in self.bursts_by_most.iter().enumerate().filter(|(_, bursts)| **bursts > 0) {
            write!(f, " {} in {bursts} bursts;", most + 1)?;
        }
        lines(f, &self.targets)
    }
}

/// As many tasks come at once.
const TASKS: usize = 12;

impl Burst {
    /// # Errors
    /// Where something is in the way of measuring.
    pub async fn run(&self) -> Result<Report, Error> {
        let mut place = Place::open(&self.database).await?;
        let stub = stub::start(StubOptions { limit: Some(CAP), ..StubOptions::default() }).await?;
        let config = format!("[downstream.default]\nurl = \"{}\"\n", stub.url());
        let args = ["run", "--while-stdin", "--slots", &self.slots.to_string()];
        let fleet = Fleet::start(&self.program, &mut place, CONSUMERS, &args, &config).await?;
        let mut store = place.store();
        let (mut by_most, mut full, mut last) = (vec![0; CAP as usize], Vec::new(), 0);
        for burst in 1..=self.bursts {
            // Asleep, as a fleet is before work comes.
            sleep(Duration::from_millis(500 + fastrand::u64(..250))).await;
            store.enqueue(&vec![NewTask::new("call", r#"{"ms": 200}"#); TASKS]).await?;
            let committed = stub.now_us();
            let deadline = Instant::now() + Duration::from_mins(1);
            while place.number("SELECT count(*) FROM permitq_attempt").await? < i64::try_from(burst * TASKS)?
            {
                if Instant::now() > deadline {
                    return Err(format!("burst {burst} is not over within a minute").into());
                }
                sleep(Duration::from_millis(20)).await;
            }
            let log = stub.summary().log;
            let fourth = log[(burst - 1) * TASKS + CAP as usize - 1].start_us;
            full.push(fourth.saturating_sub(committed));
            // None of the first ones has ended before the last of them is claimed.
            let permits = format!(
                "SELECT count(*) FROM (SELECT consumer FROM permitq_attempt WHERE task > {last}
                                        ORDER BY claimed_at, task LIMIT {CAP}) first GROUP BY consumer ORDER BY 1"
            );
            let most = place.numbers(&permits).await?.last().copied().unwrap_or(0);
            by_most[usize::try_from(most - 1)?] += 1;
            last = place.number("SELECT max(task) FROM permitq_attempt").await?;
        }
        fleet.stop().await?;
        let most_on_one = by_most.iter().rposition(|bursts| *bursts > 0).map_or(0, |at| at + 1);
        let most_on_one = i64::try_from(most_on_one)?;
        let bound = f64::from(CAP - 1);
        let targets = vec![Goal::at_most("permits of a burst on one process", most_on_one as f64, bound)];
        Ok(Report { most_on_one, bursts_by_most: by_most, full: Spread::of(full), targets })
    }
}
