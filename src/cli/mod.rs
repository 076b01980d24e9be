//! The command line: one file per command.
//!
//! A command takes its arguments apart, asks or tells the [`Store`](crate::store::Store), and prints. It decides nothing
//! that another client of the database would have to decide as well. Data goes to standard output, everything else to
//! standard error; both through `out::Out`. What a command cannot do it returns as a `fail::Failure`, which knows
//! its exit code.
//!
//! | in the way of every command | file |
//! |---|---|
//! | which database, opened or created | `place` |
//! | tables, JSON, messages, colour | `out` |
//! | instants, ages, durations | `when`, `span` |
//! | exit codes | `fail` |

mod archive;
mod audit;
mod batch;
mod completions;
mod config;
mod demo;
mod doctor;
mod enqueue;
mod explain;
mod fail;
mod fleet;
mod history;
mod live;
mod log;
mod migrate;
mod out;
mod pause;
mod payload;
mod permits;
mod place;
mod progress;
mod prune;
mod retry;
mod run;
mod schedule;
mod shape;
mod show;
mod span;
mod stub;
mod task;
mod tasks;
mod when;
mod who;
mod why;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

use fail::Failure;
use out::Out;

use crate::config::{Config, Secret, Sources, process_env};

/// A task queue in your own SQL database with an exact, fleet-wide cap on calls in flight.
#[derive(Debug, Parser)]
#[command(name = "permitq", version, arg_required_else_help = true)]
struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Command,
}

/// What every command takes.
#[derive(Args, Debug)]
#[command(next_help_heading = "Everywhere")]
struct Global {
    /// Configuration file; else `PERMITQ_CONFIG`, then `permitq.toml` where there is one
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Database; else the environment's, then the configuration file's, then `sqlite://permitq.db`. Everybody on this host
    /// sees a command line: a URL with a password is better named as `env:NAME` or `file:PATH`
    #[arg(long, global = true, value_name = "URL")]
    database: Option<Secret>,
    /// Print JSON instead of text
    #[arg(long, global = true)]
    json: bool,
}

impl Global {
    /// The configuration, with what the command's own options set in it.
    fn config(&self, flags: Vec<(String, String)>) -> Result<Config, Failure> {
        self.load(flags, true)
    }

    /// The configuration for a command that calls no downstream: it needs none of their secrets.
    fn settings(&self) -> Result<Config, Failure> {
        self.load(Vec::new(), false)
    }

    fn load(&self, mut flags: Vec<(String, String)>, calls: bool) -> Result<Config, Failure> {
        if let Some(url) = &self.database {
            flags.push(("database.url".to_owned(), url.expose().to_owned()));
        }
        let sources =
            Sources { file: self.config.clone(), env: process_env(), calls, flags, ..Sources::default() };
        Config::load(&sources).map_err(|problems| Failure::Usage(problems.to_string()))
    }
}

#[derive(Debug, Subcommand)]
enum Command {
    /// See the whole thing run: a downstream that counts, 8 consumer processes, 40 tasks, a cap of 4
    Demo(demo::Options),
    /// Run one consumer of the fleet
    Run(run::Options),
    /// Run several consumers on this host, restarted when they die, stopped together
    Fleet(fleet::Options),
    /// Create or upgrade the schema
    Migrate,
    /// Enqueue one task, or a file of them
    Enqueue(enqueue::Options),
    /// List tasks, newest first
    Tasks(tasks::Options),
    /// Show, retry or cancel tasks
    #[command(subcommand)]
    Task(task::Command),
    /// Show who holds the permits, or change how many there are
    Permits(permits::Options),
    /// Start nothing new for the time being: fleet, kind, semaphore or downstream
    Pause(pause::Pause),
    /// Let what is paused go on
    #[command(subcommand)]
    Resume(pause::What),
    /// Add, list, preview, pause, run and remove schedules
    #[command(subcommand)]
    Schedule(schedule::Command),
    /// Check the counters and compute the peak from the log
    Audit(audit::Options),
    /// Delete finished tasks past their age, archived first where that is asked for
    Prune(prune::Options),
    /// Look for whatever keeps the promises from holding: server, schema, rights, settings
    Doctor,
    /// Show the configuration that is in force
    #[command(subcommand)]
    Config(config::Command),
    /// Run a stub downstream for trying things
    Stub(stub::Options),
    /// Print the completion script of a shell
    Completions(completions::Options),
}

impl Command {
    async fn run(self, global: &Global, out: &Out) -> Result<ExitCode, Failure> {
        match self {
            Self::Demo(options) => {
                return demo::run(&options, global.database.as_ref().map(Secret::expose), out).await;
            }
            Self::Run(options) => return options.run(global).await,
            Self::Fleet(options) => return options.run(global).await,
            Self::Migrate => migrate::run(global, out).await,
            Self::Enqueue(options) => enqueue::run(options, global, out).await,
            Self::Tasks(options) => tasks::run(options, global, out).await,
            Self::Task(command) => task::run(command, global, out).await,
            Self::Permits(options) => permits::run(options, global, out).await,
            Self::Pause(options) => pause::pause(options, global, out).await,
            Self::Resume(what) => pause::resume(what, global, out).await,
            Self::Schedule(command) => schedule::run(command, global, out).await,
            Self::Audit(options) => audit::run(&options, global, out).await,
            Self::Prune(options) => prune::run(options, global, out).await,
            Self::Doctor => doctor::run(global, out).await,
            Self::Config(command) => config::run(&command, global, out),
            Self::Stub(options) => stub::run(&options, out).await,
            Self::Completions(options) => completions::run(&options, out),
        }?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Runs the command that the process was started with, and answers its exit code.
pub fn main() -> ExitCode {
    run(std::env::args_os())
}

/// The same for any arguments, the first of which is the program's name.
pub fn run(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version go to standard output with code 0, anything else to standard error with code 2.
            let text = error.render().ansi().to_string();
            let code = if out::usage(&text, error.use_stderr()).is_ok() { error.exit_code() } else { 1 };
            return ExitCode::from(u8::try_from(code).unwrap_or(2));
        }
    };
    let out = Out::new(cli.global.json);
    let done = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime.block_on(cli.command.run(&cli.global, &out)),
        Err(error) => Err(Failure::Failed(format!("cannot start: {error}"))),
    };
    match done {
        Ok(code) => code,
        Err(failure) => {
            if let Some(words) = failure.words() {
                out.error(words);
            }
            failure.code()
        }
    }
}

/// Ways in for the fuzz targets and for nobody else.
#[doc(hidden)]
pub mod fuzzing {
    pub use super::batch::fuzz as batch;
    pub use super::out::fuzz as terminal;
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_definition_of_the_command_line_is_sound() {
        super::Cli::command().debug_assert();
    }
}
