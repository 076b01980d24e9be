//! What came of it, for people and for programs.

use std::collections::BTreeMap;
use std::fmt;

use comfy_table::{CellAlignment, Table, presets};
use serde::Serialize;

/// The verdict, and the figures it stands on.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// `sqlite`, `postgres` or `mysql`.
    pub database: String,
    /// How many at once.
    pub clients: usize,
    /// For how long.
    pub seconds: f64,
    /// The counter grew beyond the cap, as the trigger, the observer or the log has it.
    pub overruns: u64,
    /// The same, by who saw it.
    pub overruns_by: BTreeMap<String, u64>,
    /// The counter was not what is there, in an audit under the lock or, where that is exact, in one read.
    pub drift: u64,
    /// Deadlocks, lock timeouts and busy databases that reached a caller.
    pub conflicts: u64,
    /// Units without an answer in time.
    pub timeouts: u64,
    /// No permit was in use when all had been taken back.
    pub settled: bool,
    /// What cannot be.
    pub surprises: Vec<String>,
    /// The most permits at once.
    pub peak: i64,
    /// Reads without the lock.
    pub observations: u64,
    /// Those that showed drift where such a read is only a hint.
    pub hints: u64,
    /// Audits under the lock.
    pub audits: u64,
    /// What was done, how often.
    pub done: BTreeMap<String, u64>,
}

impl Report {
    /// Whether everything held.
    pub fn holds(&self) -> bool {
        let bad = self.overruns + self.drift + self.conflicts + self.timeouts;
        bad == 0 && self.settled && self.surprises.is_empty()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
        table.set_header(["what", "times", "per second"]);
        for (what, n) in &self.done {
            let n = u32::try_from(*n).unwrap_or(u32::MAX);
            table.add_row([what.clone(), n.to_string(), format!("{:.1}", f64::from(n) / self.seconds)]);
        }
        for column in table.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        writeln!(f, "{table}")?;
        writeln!(
            f,
            "{}: {} clients, {:.1} s, {} observations ({} hints), {} audits, peak {}",
            self.database, self.clients, self.seconds, self.observations, self.hints, self.audits, self.peak
        )?;
        for (by, n) in self.overruns_by.iter().filter(|(_, n)| **n > 0) {
            writeln!(f, "overruns seen by the {by}: {n}")?;
        }
        for what in &self.surprises {
            writeln!(f, "cannot be: {what}")?;
        }
        if !self.settled {
            writeln!(f, "permits are still in use")?;
        }
        write!(
            f,
            "overruns {}, drift {}, conflicts that reached a caller {}, timeouts {}: {}",
            self.overruns,
            self.drift,
            self.conflicts,
            self.timeouts,
            if self.holds() { "all holds" } else { "FAILED" }
        )
    }
}
