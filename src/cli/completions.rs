//! `permitq completions SHELL`.

use clap::{Args, CommandFactory};

use super::Cli;
use super::fail::Failure;
use super::out::Out;

#[derive(Args, Debug)]
pub(super) struct Options {
    /// Which shell
    shell: clap_complete::Shell,
}

pub(super) fn run(options: &Options, out: &Out) -> Result<(), Failure> {
    // Into memory first: the generator does not survive a closed pipe.
    let mut script = Vec::new();
    clap_complete::generate(options.shell, &mut Cli::command(), "permitq", &mut script);
    out.data(&String::from_utf8_lossy(&script))?;
    Ok(())
}
