//! `permitq audit`: the counters against what is there, states that cannot be, and the peak from the log.

use std::ops::Range;
use std::time::Duration;

use clap::Args;
use jiff::Timestamp;
use serde::Serialize;

use super::fail::Failure;
use super::out::Out;
use super::who::who;
use super::{Global, place, when};
use crate::model::Semaphore;
use crate::store::{Peak, Store};

/// Bound on each statement that only reads.
const LIMIT: Duration = Duration::from_mins(30);

#[derive(Args, Debug)]
pub(super) struct Options {
    /// Repair counters that drifted, without ever opening the cap
    #[arg(long)]
    repair: bool,
    /// Compute the peak from this instant on [default: from the beginning]
    #[arg(long, value_name = "TIME", value_parser = when::parse)]
    since: Option<Timestamp>,
    /// Compute the peak up to this instant [default: now]
    #[arg(long, value_name = "TIME", value_parser = when::parse)]
    until: Option<Timestamp>,
}

/// What scripts rely on. Of several semaphores `drift` and `overruns` are sums, `peak` and `max_permits` those of the
/// one that came nearest to its cap, or went furthest above it.
#[derive(Debug, Serialize)]
struct Report {
    ok: bool,
    drift: i64,
    peak: i64,
    max_permits: i64,
    overruns: u64,
    impossible: Vec<String>,
    semaphores: Vec<One>,
    #[serde(skip_serializing_if = "Option::is_none")]
    repaired: Option<Vec<Repaired>>,
}

#[derive(Debug, Serialize)]
struct One {
    name: String,
    max_permits: i64,
    in_use: i64,
    counted: i64,
    drift: i64,
    peak: i64,
    overruns: u64,
}

#[derive(Debug, Serialize)]
struct Repaired {
    name: String,
    in_use: i64,
    counted: i64,
    cooling: i64,
}

impl One {
    fn new(semaphore: Semaphore, Peak { peak, overruns }: Peak) -> Self {
        let counted = semaphore.held + semaphore.cooling;
        let Semaphore { name, max_permits, in_use, .. } = semaphore;
        Self { name, max_permits, in_use, counted, drift: in_use - counted, peak, overruns }
    }

    fn words(&self) -> String {
        let Self { name, max_permits, in_use, counted, drift, peak, overruns } = self;
        let then = if peak > max_permits && *overruns == 0 { " (the cap was higher then)" } else { "" };
        let which = if *drift == 0 {
            String::new()
        } else {
            format!(" (in_use says {in_use}, {counted} are held or cooling)")
        };
        format!("{name}: peak {peak} of {max_permits}{then}, overruns {overruns}, drift {drift}{which}")
    }
}

impl Report {
    fn new(semaphores: Vec<One>, impossible: Vec<String>, repaired: Option<Vec<Repaired>>) -> Self {
        let drift = semaphores.iter().map(|one| one.drift.abs()).sum();
        let overruns = semaphores.iter().map(|one| one.overruns).sum();
        let nearest = semaphores.iter().max_by_key(|one| one.peak - one.max_permits);
        let (peak, max_permits) = nearest.map_or((0, 0), |one| (one.peak, one.max_permits));
        let ok = drift == 0 && overruns == 0 && impossible.is_empty();
        Self { ok, drift, peak, max_permits, overruns, impossible, semaphores, repaired }
    }

    fn words(&self) -> String {
        let mut lines: Vec<_> = self.repaired.iter().flatten().map(Repaired::words).collect();
        lines.extend(self.semaphores.iter().map(One::words));
        lines.extend(self.impossible.iter().map(|state| format!("impossible: {state}")));
        lines.join("\n")
    }
}

impl Repaired {
    fn words(&self) -> String {
        let Self { name, in_use, counted, cooling } = self;
        let now = counted + cooling;
        let cooling = match cooling {
            0 => String::new(),
            n => format!(", {n} of them cooling, because their calls may still run"),
        };
        format!("{name}: repaired: in_use was {in_use}, {counted} are there; it is {now} now{cooling}")
    }
}

pub(super) async fn run(options: &Options, global: &Global, out: &Out) -> Result<(), Failure> {
    let mut store = place::open(global).await?;
    let hold = global.settings()?.longest_hold();
    if options.repair {
        mend(&mut store).await?;
    }
    let repaired = if options.repair { Some(repair(&mut store, hold).await?) } else { None };
    // Reading the whole log may take long, and holds nobody up.
    let mut store = store.database().clone().limit(LIMIT).store();
    let audit = store.audit().await?;
    let period = period(options)?;
    let mut semaphores = Vec::with_capacity(audit.semaphores.len());
    for semaphore in audit.semaphores {
        let peak = store.peak(&semaphore.name, period.clone()).await?;
        semaphores.push(One::new(semaphore, peak));
    }
    let report = Report::new(semaphores, audit.impossible, repaired);
    out.answer(&report, || report.words())?;
    if report.ok {
        return Ok(());
    }
    if report.drift != 0 {
        out.note("`permitq audit --repair` sets the counters right without ever opening the cap");
    }
    Err(Failure::NotOk)
}

/// In microseconds since 1970, the end excluded.
fn period(options: &Options) -> Result<Range<i64>, Failure> {
    let Options { since, until, .. } = options;
    if let (Some(since), Some(until)) = (since, until)
        && until <= since
    {
        return Err(Failure::Usage(format!(
            "--until {until} is not after --since {since}: the period is empty"
        )));
    }
    Ok(since.map_or(0, Timestamp::as_microsecond)..until.map_or(i64::MAX, Timestamp::as_microsecond))
}

/// Tasks that wait in vain: let go, or failed with what they waited for.
async fn mend(store: &mut Store) -> Result<(), Failure> {
    let mut before = Vec::new();
    loop {
        let strays = store.strays(STRAYS).await?;
        if strays.is_empty() || strays == before {
            return Ok(());
        }
        for stray in &strays {
            store.mend(stray).await?;
        }
        before = strays;
    }
}

/// So many at once.
const STRAYS: i64 = 100;

/// Every semaphore is counted under its lock; what the unlocked look says may be a commit old.
async fn repair(store: &mut Store, hold: Duration) -> Result<Vec<Repaired>, Failure> {
    let mut repaired = Vec::new();
    for Semaphore { name, .. } in store.semaphores().await? {
        let done = store.repair(&name, hold, &who()).await?;
        if done.drift() != 0 {
            repaired.push(Repaired {
                name,
                in_use: done.in_use,
                counted: done.counted,
                cooling: done.cooling,
            });
        }
    }
    Ok(repaired)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(max_permits: i64, in_use: i64, peak: i64, overruns: u64) -> One {
        let semaphore =
            Semaphore { name: "default".to_owned(), max_permits, in_use, held: 1, cooling: 1, waiting: 0 };
        One::new(semaphore, Peak { peak, overruns })
    }

    #[test]
    fn a_line_says_it_all() {
        assert_eq!(one(4, 2, 4, 0).words(), "default: peak 4 of 4, overruns 0, drift 0");
        assert_eq!(
            one(4, 5, 6, 0).words(),
            "default: peak 6 of 4 (the cap was higher then), overruns 0, drift 3 (in_use says 5, 2 are held or cooling)"
        );
        assert_eq!(one(4, 2, 5, 1).words(), "default: peak 5 of 4, overruns 1, drift 0");
    }

    #[test]
    fn anything_wrong_anywhere_is_not_ok() {
        let ok = |semaphores, impossible| Report::new(semaphores, impossible, None).ok;
        assert!(ok(vec![one(4, 2, 4, 0)], vec![]));
        assert!(!ok(vec![one(4, 2, 4, 0), one(4, 3, 4, 0)], vec![]));
        assert!(!ok(vec![one(4, 3, 4, 0), one(4, 1, 4, 0)], vec![]), "drifts must not cancel out");
        assert!(!ok(vec![one(4, 2, 5, 1)], vec![]));
        assert!(!ok(vec![one(4, 2, 4, 0)], vec!["x".to_owned()]));
        let report = Report::new(vec![one(4, 2, 4, 0), one(9, 2, 8, 0)], vec![], None);
        assert_eq!((report.peak, report.max_permits), (4, 4));
    }
}
