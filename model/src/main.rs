//! Checks every fleet without a fault, the large ones too, and prints sizes and times.

use std::io::{Write, stdout};
use std::process::ExitCode;

use model::{promise, scenes};
use permitq::clock::Clock;
use stateright::{Checker, Model};

fn main() -> std::io::Result<ExitCode> {
    let clock = Clock::default();
    let mut out = stdout();
    let mut failed = false;
    writeln!(out, "{:<55}{:>10}{:>12}{:>7}{:>8}", "fleet", "states", "steps", "depth", "seconds")?;
    for (name, fleet) in scenes::clean().into_iter().chain(scenes::large()) {
        let start = clock.now();
        let checked = fleet.checker().threads(2).spawn_bfs().join();
        writeln!(
            out,
            "{name:<55}{:>10}{:>12}{:>7}{:>8.1}",
            checked.unique_state_count(),
            checked.state_count(),
            checked.max_depth(),
            clock.now().since(start).as_secs_f64()
        )?;
        for (broken, path) in checked.discoveries() {
            if !promise::REACHABLE.contains(&broken) {
                writeln!(out, "broken: {broken}\n{:#?}", path.into_actions())?;
                failed = true;
            }
        }
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
