//! What came of it, for people and for programs.

use std::fmt;

use comfy_table::{CellAlignment, Table, presets};
use serde::Serialize;

use super::check::Findings;

/// The verdict, and the figures it stands on.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Whether everything held.
    pub holds: bool,
    /// `sqlite`, `postgres` or `mysql`.
    pub database: String,
    /// What the plan was made from.
    pub seed: u64,
    /// For how long faults were done.
    pub seconds: f64,
    /// Calls that reached the downstream.
    pub calls: u64,
    /// The most at once, as the downstream counted them.
    pub max_in_flight: u32,
    /// The highest cap that was ever set.
    pub cap_most: i64,
    /// Tasks, by their last state.
    pub tasks: Tasks,
    /// What was done, how often.
    pub done: Done,
    /// What was found.
    #[serde(flatten)]
    pub findings: Findings,
    /// Where the evidence and the consumers' logs are, where something did not hold.
    pub logs: Option<String>,
}

/// Tasks, by their last state.
#[derive(Clone, Copy, Debug, Default, Serialize)]
#[expect(missing_docs, reason = "they are what they are called")]
pub struct Tasks {
    pub succeeded: usize,
    pub failed: usize,
    pub cancelled: usize,
}

/// What was done, how often.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Done {
    /// kill -9 of a consumer.
    pub kills: usize,
    /// SIGSTOP of a consumer.
    pub freezes: usize,
    /// Those longer than the lease.
    pub freezes_past_the_lease: usize,
    /// SIGTERM of a consumer.
    pub terminations: usize,
    /// Faults of a line to the database, or of its write lock.
    pub cuts: usize,
    /// Faults of a line to the downstream.
    pub downstream_cuts: usize,
    /// Restarts of the server, in order or by kill -9.
    pub restarts: usize,
    /// Values given to `max_permits`.
    pub retunes: usize,
    /// Edits of the counter.
    pub edits: usize,
    /// Steps of the clock.
    pub clock_steps: usize,
    /// Tasks a person cancelled.
    pub cancels: u64,
    /// Tasks a person wanted to run again.
    pub retries: usize,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
        table.set_header([
            "fault",
            "times",
            "met a permit",
            "free again: median",
            "longest",
            "bound",
            "stalled",
        ]);
        let seconds = |ms: u64| format!("{:.1} s", std::time::Duration::from_millis(ms).as_secs_f64());
        for (fault, recovery) in &self.findings.recovery {
            let met = recovery.holding > 0;
            let time = |ms: u64| if met { seconds(ms) } else { "-".to_owned() };
            table.add_row([
                (*fault).to_owned(),
                recovery.faults.to_string(),
                recovery.holding.to_string(),
                time(recovery.median_ms),
                time(recovery.max_ms),
                time(recovery.bound_ms),
                recovery.stalled.to_string(),
            ]);
        }
        for column in table.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        if !self.findings.recovery.is_empty() {
            writeln!(f, "{table}")?;
        }
        let Findings { lost, overruns, .. } = self.findings;
        let found = &self.findings;
        let Tasks { succeeded, failed, cancelled } = self.tasks;
        writeln!(f, "tasks: {succeeded} succeeded, {failed} failed, {cancelled} cancelled")?;
        writeln!(
            f,
            "people: {} retunes, {} edits of the counter, {} cancels, {} retries",
            self.done.retunes, self.done.edits, self.done.cancels, self.done.retries
        )?;
        writeln!(
            f,
            "calls: {}, at most {} of {} at once; repeated {}, {} of them unexplained",
            self.calls,
            self.max_in_flight,
            self.cap_most,
            found.duplicates_explained + found.duplicates_unexplained,
            found.duplicates_unexplained
        )?;
        if self.done.edits > 0 {
            writeln!(
                f,
                "edits: {} samples and {} calls over the cap excused; repaired after at most {}, bound {}",
                found.samples_excused,
                found.overruns_after_edits,
                seconds(found.repair_max_ms),
                seconds(found.repair_bound_ms)
            )?;
        }
        if found.paused_sends > 0 {
            writeln!(
                f,
                "{} calls left a consumer that had been frozen on its way to them: not promised",
                found.paused_sends
            )?;
        }
        if let Some(ms) = found.settled_ms {
            writeln!(f, "all was done {} after the last fault", seconds(ms))?;
        }
        for violation in found.violations.iter().take(20) {
            writeln!(f, "{} DOES NOT HOLD: {}", violation.promise, violation.what)?;
        }
        if found.violations.len() > 20 {
            writeln!(f, "and {} more", found.violations.len() - 20)?;
        }
        if let Some(logs) = &self.logs {
            writeln!(f, "the evidence and the consumers' logs are in {logs}")?;
        }
        write!(
            f,
            "{}, seed {}, {:.0} s: {} kills, {} freezes, {} cuts, {} restarts; overruns {overruns}, lost {lost}, \
             unexplained duplicates {}: {}",
            self.database,
            self.seed,
            self.seconds,
            self.done.kills,
            self.done.freezes,
            self.done.cuts + self.done.downstream_cuts,
            self.done.restarts,
            found.duplicates_unexplained,
            if self.holds { "all holds" } else { "FAILED" }
        )
    }
}
