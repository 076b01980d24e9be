//! `permitq config show`: every value in force, and who said so. Secrets are masked by the configuration itself.

use clap::Subcommand;
use serde_json::json;

use super::Global;
use super::fail::Failure;
use super::out::{Out, table};

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Every value in force with its origin: the file, the environment variable, the command line, or default
    Show,
}

pub(super) fn run(command: &Command, global: &Global, out: &Out) -> Result<(), Failure> {
    match command {
        Command::Show => show(global, out),
    }
}

fn show(global: &Global, out: &Out) -> Result<(), Failure> {
    let settings = global.config(Vec::new())?.explain();
    out.answer(&json!({"settings": settings}), || {
        table(
            ["key", "value", "origin"],
            settings.iter().map(|it| [&it.key, &it.value, &it.origin].map(Clone::clone)),
        )
    })?;
    Ok(())
}
