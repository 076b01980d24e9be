//! The workloads as subcommands of the binary.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use serde::Serialize;

use super::drain::{self, Drain};
use super::history::History;
use super::idle::Idle;
use super::kill::Kill;
use super::limit::Limit;
use super::pickup::Pickup;
use super::{CAP, CONSUMERS, Error, Program, Target};

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
        #[arg(long, value_name = "N", default_value_t = 400)]
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
    },
    /// Measure how soon an idle fleet of 8 starts a task
    Pickup {
        #[command(flatten)]
        common: Common,
        /// How many tasks, 300 to 350 ms apart
        #[arg(long, value_name = "N", default_value_t = 50)]
        tasks: usize,
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
                let (database, call) = (common.database, Duration::from_millis(ms));
                let program = program("permitq");
                let limit = Limit { database, call, tasks, cap, consumers, slots, html, program };
                let report = limit.run().await?;
                show(&report, common.json)?;
                Ok(report.run.overruns == 0 && report.run.max_in_flight <= cap)
            }
            Self::Drain { common, tasks, consumers, slots, cap } => {
                let (database, program) = (common.database, program("noop"));
                let report = Drain { database, tasks, consumers, slots, cap, program }.run().await?;
                show(&report, common.json)?;
                Ok(report.overruns == 0)
            }
            Self::Pickup { common, tasks } => {
                let pickup = Pickup { database: common.database, tasks, program: program("permitq") };
                show(&pickup.run().await?, common.json)?;
                Ok(true)
            }
            Self::Idle { common, seconds } => {
                let time = Duration::from_secs(seconds);
                let idle = Idle { database: common.database, time, program: program("permitq") };
                show(&idle.run().await?, common.json)?;
                Ok(true)
            }
            Self::Kill { common, seconds, tasks } => {
                let call = Duration::from_secs(seconds);
                let kill = Kill { database: common.database, call, tasks, program: program("permitq") };
                let report = kill.run().await?;
                show(&report, common.json)?;
                Ok(report.holds())
            }
            Self::History { common, finished, delayed, pairs } => {
                let million = 1_000_000;
                let (finished, delayed) = (finished * million, delayed * million);
                let history = History { database: common.database, finished, delayed, pairs };
                show(&history.run().await?, common.json)?;
                Ok(true)
            }
            Self::Noop { url, slots } => drain::consume(&url, slots).await.map(|()| true),
        }
    }
}

fn show<T: std::fmt::Display + Serialize>(report: &T, json: bool) -> Result<(), Error> {
    anstream::println!("{report}");
    if json {
        anstream::println!("{}", serde_json::to_string(report)?);
    }
    Ok(())
}
