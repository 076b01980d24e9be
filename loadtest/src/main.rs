//! `loadtest torture` and `loadtest rate`: see `--help`.

use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand};
use loadtest::rate::Rate;
use loadtest::torture::{Error, Torture};

/// Loads and tortures a permitq database.
#[derive(Debug, Parser)]
#[command(version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Do everything at once, kill what can be killed, and check that the cap and the books hold.
    ///
    /// Creates the schema where there is none, and refuses a database with tasks of others. Exit codes: 0 all holds,
    /// 1 it does not, 2 wrong usage or no database.
    Torture {
        /// The database: `sqlite://FILE`, `postgres://…`, `mysql://…`
        #[arg(long, value_name = "URL")]
        database: String,
        /// For how long
        #[arg(long, value_name = "N", default_value_t = 60)]
        seconds: u64,
        /// How many clients, each with a connection of its own
        #[arg(long, value_name = "N", default_value_t = 32)]
        clients: usize,
        /// Print one JSON object as the last line
        #[arg(long)]
        json: bool,
    },
    /// Measure claims and finishes a second against the ceiling of the same statements over the bare driver.
    Rate {
        /// An empty database: `sqlite://FILE`, `postgres://…`, `mysql://…`
        #[arg(long, value_name = "URL")]
        database: String,
        /// For how long each way with each number of clients
        #[arg(long, value_name = "N", default_value_t = 5)]
        seconds: u64,
        /// Print one JSON object as the last line
        #[arg(long)]
        json: bool,
    },
}

#[tokio::main]
async fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Torture { database, seconds, clients, json } => {
            let torture = Torture { url: database, time: Duration::from_secs(seconds), clients };
            torture.run().await.map(|report| {
                show(&report, json);
                report.holds()
            })
        }
        Command::Rate { database, seconds, json } => {
            let rate = Rate { url: database, time: Duration::from_secs(seconds) };
            rate.run().await.map(|rates| {
                show(&rates, json);
                true
            })
        }
    };
    exit_code(done)
}

fn exit_code(done: Result<bool, Error>) -> ExitCode {
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            anstream::eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

fn show<T: std::fmt::Display + serde::Serialize>(report: &T, json: bool) {
    anstream::println!("{report}");
    if json && let Ok(line) = serde_json::to_string(report) {
        anstream::println!("{line}");
    }
}
