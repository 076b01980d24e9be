//! The workloads as subcommands of the binary.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use serde::Serialize;
use serde_json::{Value, json};

use super::burst::Burst;
use super::delayed::Delayed;
use super::drain::{self, Drain};
use super::figures;
use super::history::History;
use super::idle::Idle;
use super::kill::Kill;
use super::limit::Limit;
use super::pickup::Pickup;
use super::soak::Soak;
use super::{CAP, CONSUMERS, Error, Program, Target};
use crate::minutes;

/// Workloads that measure.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Measure how well permits are used: 8 consumers, cap 4, calls of one length, beside a loop without any database
    Limit {
        #[command(flatten)]
        common: Common,
        /// How long a call takes, in milliseconds
        #[arg(long, value_name = "MS", default_value_t = 50)]
        ms: u64,
        /// How many calls
        #[arg(long, value_name = "N", default_value_t = 1000)]
        tasks: usize,
        /// Permits
        #[arg(long, value_name = "N", default_value_t = CAP)]
        cap: u32,
        /// Consumer processes
        #[arg(long, value_name = "N", default_value_t = CONSUMERS)]
        consumers: usize,
        /// Calls at once in each
        #[arg(long, value_name = "N", default_value_t = 1)]
        slots: usize,
        /// Write a page with pictures of the run
        #[arg(long, value_name = "FILE")]
        html: Option<PathBuf>,
    },
    /// Measure how fast no-op tasks are enqueued and drained under a real cap that is far away
    Drain {
        #[command(flatten)]
        common: Common,
        /// How many tasks
        #[arg(long, value_name = "N", default_value_t = 20_000)]
        tasks: usize,
        /// Consumer processes
        #[arg(long, value_name = "N", default_value_t = 2)]
        consumers: usize,
        /// Calls at once in each
        #[arg(long, value_name = "N", default_value_t = 200)]
        slots: usize,
        /// Permits
        #[arg(long, value_name = "N", default_value_t = 1000)]
        cap: i64,
        /// Write a page with pictures of the run
        #[arg(long, value_name = "FILE")]
        html: Option<PathBuf>,
    },
    /// Measure how late delayed no-op tasks are called, and how many a second
    ///
    /// Exit code 1 where a task was lost, called twice or early, or the cap broke.
    Delayed {
        #[command(flatten)]
        common: Common,
        /// How many tasks
        #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
        tasks: u64,
        /// Over how many seconds they are due; 0: all at once
        #[arg(long, value_name = "SECONDS", default_value_t = 60)]
        spread: u64,
        /// Consumer processes
        #[arg(long, value_name = "N", default_value_t = 2)]
        consumers: usize,
        /// Calls at once in each
        #[arg(long, value_name = "N", default_value_t = 500)]
        slots: usize,
        /// Permits
        #[arg(long, value_name = "N", default_value_t = 1000)]
        cap: i64,
        /// Write a page with pictures of the run
        #[arg(long, value_name = "FILE")]
        html: Option<PathBuf>,
    },
    /// Measure over how many of 8 idle consumers a burst of tasks goes
    Burst {
        #[command(flatten)]
        common: Common,
        /// How many bursts
        #[arg(long, value_name = "N", default_value_t = 20)]
        bursts: usize,
        /// Calls at once in each consumer
        #[arg(long, value_name = "N", default_value_t = 4)]
        slots: usize,
    },
    /// Load a fleet steadily for long, with failures and retries, and see what grows
    ///
    /// Exit code 1 where a promise does not hold; what grows is told, not judged.
    Soak {
        #[command(flatten)]
        common: Common,
        /// For how long
        #[arg(long, value_name = "N", default_value_t = 60.0, value_parser = minutes)]
        minutes: f64,
        /// Tasks a second
        #[arg(long, value_name = "N", default_value_t = 40)]
        rate: usize,
        /// Write a page with pictures of the run
        #[arg(long, value_name = "FILE")]
        html: Option<PathBuf>,
    },
    /// Measure how soon an idle fleet of 8 starts a task
    Pickup {
        #[command(flatten)]
        common: Common,
        /// How many tasks, 300 to 350 ms apart
        #[arg(long, value_name = "N", default_value_t = 50)]
        tasks: usize,
        /// Write a page with pictures of the run
        #[arg(long, value_name = "FILE")]
        html: Option<PathBuf>,
    },
    /// Measure what 8 consumers with nothing to do cost
    Idle {
        #[command(flatten)]
        common: Common,
        /// For how long
        #[arg(long, value_name = "N", default_value_t = 60)]
        seconds: u64,
    },
    /// Kill two of four holders of long calls, and measure what the downstream sees and when the capacity is whole again
    ///
    /// Exit code 1 where a promise does not hold.
    Kill {
        #[command(flatten)]
        common: Common,
        /// How long a call takes
        #[arg(long, value_name = "N", default_value_t = 12)]
        seconds: u64,
        /// How many tasks
        #[arg(long, value_name = "N", default_value_t = 12)]
        tasks: usize,
        /// Write a page with pictures of the run
        #[arg(long, value_name = "FILE")]
        html: Option<PathBuf>,
    },
    /// Measure what a claim and a finish cost in empty and in long tables
    History {
        #[command(flatten)]
        common: Common,
        /// Finished tasks, in millions
        #[arg(long, value_name = "N", default_value_t = 10)]
        finished: u64,
        /// Delayed tasks at the highest priority, in millions
        #[arg(long, value_name = "N", default_value_t = 1)]
        delayed: u64,
        /// Pairs of claim and finish
        #[arg(long, value_name = "N", default_value_t = 1000)]
        pairs: usize,
    },
    /// The JSON lines of many runs as tables in Markdown
    Figures {
        /// What `--json` printed last, one line a run
        file: PathBuf,
    },
    /// A consumer of no-ops
    #[command(hide = true)]
    Noop { url: String, slots: usize },
}

/// What every workload takes.
#[derive(Args, Debug)]
pub struct Common {
    /// sqlite, postgres or mariadb: a private, durable one; or the URL of an empty one
    #[arg(long, value_name = "WORD|URL")]
    database: Target,
    /// Print one JSON object as the last line
    #[arg(long)]
    json: bool,
}

impl Command {
    /// Measures and tells; answers whether every promise held.
    ///
    /// # Errors
    /// Where something is in the way of measuring.
    pub async fn run(self) -> Result<bool, Error> {
        let path = std::env::current_exe()?;
        let program = |word: &str| Program { path: path.clone(), args: vec![word.to_owned()] };
        match self {
            Self::Limit { common, ms, tasks, cap, consumers, slots, html } => {
                let (database, call) = (common.database.clone(), Duration::from_millis(ms));
                let program = program("permitq");
                let limit = Limit { database, call, tasks, cap, consumers, slots, html, program };
                let report = limit.run().await?;
                common.show(&format!("limit, {tasks} × {ms} ms, {slots} slots, cap {cap}"), &report)?;
                Ok(report.run.overruns == 0 && report.run.max_in_flight <= cap)
            }
            Self::Drain { common, tasks, consumers, slots, cap, html } => {
                let (database, program) = (common.database.clone(), program("noop"));
                let report = Drain { database, tasks, consumers, slots, cap, html, program }.run().await?;
                common.show(&format!("drain, {slots} slots, cap {cap}"), &report)?;
                Ok(report.overruns == 0)
            }
            Self::Delayed { common, tasks, spread, consumers, slots, cap, html } => {
                let (database, program) = (common.database.clone(), program("noop"));
                let spread = Duration::from_secs(spread);
                let delayed = Delayed { database, tasks, spread, consumers, slots, cap, html, program };
                let report = delayed.run().await?;
                common.show(&format!("delayed, {tasks} tasks over {} s", spread.as_secs()), &report)?;
                Ok(report.errors == 0)
            }
            Self::Pickup { common, tasks, html } => {
                let (database, program) = (common.database.clone(), program("permitq"));
                common.show("pickup", &Pickup { database, tasks, html, program }.run().await?)
            }
            Self::Burst { common, bursts, slots } => {
                let (database, program) = (common.database.clone(), program("permitq"));
                common.show("burst", &Burst { database, bursts, slots, program }.run().await?)
            }
            Self::Soak { common, minutes, rate, html } => {
                let time = Duration::from_secs_f64(minutes * 60.0);
                let (database, program) = (common.database.clone(), program("permitq"));
                let report = Soak { database, time, rate, html, program }.run().await?;
                common.show(&format!("soak, {minutes} minutes"), &report)?;
                Ok(report.holds())
            }
            Self::Idle { common, seconds } => {
                let time = Duration::from_secs(seconds);
                let (database, program) = (common.database.clone(), program("permitq"));
                common.show("idle", &Idle { database, time, program }.run().await?)
            }
            Self::Kill { common, seconds, tasks, html } => {
                let call = Duration::from_secs(seconds);
                let (database, program) = (common.database.clone(), program("permitq"));
                let report = Kill { database, call, tasks, html, program }.run().await?;
                common.show(&format!("kill, {tasks} × {seconds} s"), &report)?;
                Ok(report.holds())
            }
            Self::History { common, finished, delayed, pairs } => {
                let run = format!("history, {finished} million finished, {delayed} million delayed");
                let million = 1_000_000;
                let (finished, delayed) = (finished * million, delayed * million);
                let history = History { database: common.database.clone(), finished, delayed, pairs };
                common.show(&run, &history.run().await?)
            }
            Self::Figures { file } => {
                anstream::print!("{}", figures::tables(&file)?);
                Ok(true)
            }
            Self::Noop { url, slots } => drain::consume(&url, slots).await.map(|()| true),
        }
    }
}

impl Common {
    /// For people; then as JSON, where that is wanted, with what was run and where.
    fn show<T: std::fmt::Display + Serialize>(&self, run: &str, report: &T) -> Result<bool, Error> {
        let database = self.database.word();
        anstream::println!("{run}, on {database}\n{report}");
        if self.json {
            let mut line = json!({"run": run, "database": database});
            if let (Value::Object(line), Value::Object(report)) = (&mut line, serde_json::to_value(report)?) {
                line.extend(report);
            }
            anstream::println!("{line}");
        }
        Ok(true)
    }
}
