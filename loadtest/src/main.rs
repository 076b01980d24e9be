//! `loadtest chaos`, `loadtest torture` and `loadtest rate`: see `--help`.

use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand};
use loadtest::chaos::{Chaos, Fault};
use loadtest::rate::Rate;
use loadtest::speed;
use loadtest::torture::Torture;
use loadtest::{Error, Program, Target};

/// Loads and tortures a permitq database.
#[derive(Debug, Parser)]
#[command(version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    #[command(flatten)]
    Speed(speed::Command),
    /// Kill, freeze, cut off, restart and edit everything around 8 real consumers, and judge what the downstream saw.
    ///
    /// With a word, on a private database of its own, which is restarted and whose clock is stepped, too; with a URL, on
    /// that database, which is left running. The same seed gives the same plan. Exit codes: 0 all holds, 1 it does not, 2
    /// wrong usage or no database.
    Chaos {
        /// sqlite, postgres or mariadb: a private one; or the URL of one that holds no work of others
        #[arg(long, value_name = "WORD|URL")]
        database: Target,
        /// For how long faults are done
        #[arg(long, value_name = "N", default_value_t = 5.0, value_parser = loadtest::minutes)]
        minutes: f64,
        /// What the plan is made from
        #[arg(long, value_name = "S", default_value_t = 1)]
        seed: u64,
        /// One kind of fault alone
        #[arg(long, value_name = "FAULT")]
        only: Option<Fault>,
        /// Print the plan and do nothing
        #[arg(long)]
        plan: bool,
        /// Print one JSON object as the last line
        #[arg(long)]
        json: bool,
    },
    /// The command line of permitq itself, for the consumers.
    #[command(hide = true, disable_help_flag = true)]
    Permitq {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<std::ffi::OsString>,
    },
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

fn main() -> ExitCode {
    let command = Cli::parse().command;
    if let Command::Permitq { args } = command {
        return permitq::cli::run(std::iter::once("permitq".into()).chain(args));
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    exit_code(match runtime {
        Ok(runtime) => runtime.block_on(run(command)),
        Err(error) => Err(error.into()),
    })
}

async fn run(command: Command) -> Result<bool, Error> {
    match command {
        Command::Speed(speed) => speed.run().await,
        Command::Chaos { database, minutes, seed, only, plan, json } => {
            // Not by its name: another build may have put another file there meanwhile, or none.
            let program = Program { path: "/proc/self/exe".into(), args: vec!["permitq".to_owned()] };
            let time = Duration::from_secs_f64(minutes * 60.0);
            let chaos = Chaos { target: database, time, seed, only, program, progress: true };
            chaos.refuse()?;
            if plan {
                anstream::println!("{}", chaos.plan());
                return Ok(true);
            }
            let report = chaos.run().await?;
            show(&report, json);
            Ok(report.holds)
        }
        Command::Torture { database, seconds, clients, json } => {
            let torture = Torture { url: database, time: Duration::from_secs(seconds), clients };
            let report = torture.run().await?;
            show(&report, json);
            Ok(report.holds())
        }
        Command::Rate { database, seconds, json } => {
            let rate = Rate { url: database, time: Duration::from_secs(seconds) };
            show(&rate.run().await?, json);
            Ok(true)
        }
        // Handled before there was a runtime: it makes its own.
        Command::Permitq { .. } => Ok(false),
    }
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
