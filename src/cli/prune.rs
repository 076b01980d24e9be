//! `permitq prune`: deletes finished tasks past their age, as every reclaimer does by itself, and archives them first where
//! that is asked for.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

use super::archive::{Archive, lines};
use super::fail::Failure;
use super::live::Live;
use super::out::{Out, list};
use super::who::who;
use super::{Global, place, when};
use crate::config::HumanDuration;
use crate::model::{Retention, State};
use crate::store::{Forgotten, Store};
use crate::upkeep::{Part, Walk};

/// Delete finished tasks past their age, with their attempts; archived first where that is asked for.
///
/// Ages are those of [retention] in the configuration, by which every reclaimer prunes by itself. Who wants an archive sets
/// them to "never" there, and gives them here. A business key is free again once its task is pruned.
#[derive(Args, Debug)]
pub(super) struct Options {
    /// Count, and delete nothing
    #[arg(long)]
    dry_run: bool,
    /// Write each task to this new file, or to one in this folder, before it is deleted: JSON lines, gzip
    #[arg(long, value_name = "DIR|FILE")]
    archive: Option<PathBuf>,
    /// Age of succeeded tasks, or never
    #[arg(long, value_name = "AGE")]
    succeeded: Option<String>,
    /// Age of failed tasks, or never
    #[arg(long, value_name = "AGE")]
    failed: Option<String>,
    /// Age of cancelled tasks, or never
    #[arg(long, value_name = "AGE")]
    cancelled: Option<String>,
}

impl Options {
    /// What its options set in the configuration.
    fn flags(&self) -> Vec<(String, String)> {
        [("succeeded", &self.succeeded), ("failed", &self.failed), ("cancelled", &self.cancelled)]
            .into_iter()
            .filter_map(|(state, age)| Some((format!("retention.{state}"), age.clone()?)))
            .collect()
    }
}

/// What scripts rely on.
#[derive(Debug, Default, Serialize)]
struct Report {
    dry_run: bool,
    /// By state; those that a job had too many of.
    tasks: BTreeMap<&'static str, u64>,
    surplus: u64,
    attempts: u64,
    instants: u64,
    actions: u64,
    limits: u64,
    consumers: u64,
    archive: Option<String>,
}

impl Report {
    fn add(&mut self, part: &Part, forgotten: Forgotten) {
        match part {
            Part::Tasks(state) => *self.tasks.entry(state.as_str()).or_default() += forgotten.tasks,
            Part::Surplus(_) => self.surplus += forgotten.tasks,
            Part::Instants | Part::Actions => {}
        }
        self.attempts += forgotten.attempts;
        self.instants += forgotten.instants;
        self.actions += forgotten.actions;
    }

    fn all(&self) -> u64 {
        self.tasks.values().sum::<u64>() + self.surplus
    }

    fn human(&self, retention: Retention) -> String {
        let mut rows: Vec<_> = State::ALL
            .into_iter()
            .filter(|state| state.is_final())
            .map(|state| {
                let age = retention.age(state).map(|age| HumanDuration(age).to_string());
                let age = age.map_or("kept for ever".to_owned(), |age| format!("older than {age}"));
                let n = self.tasks.get(state.as_str()).copied().unwrap_or_default();
                [state.to_string(), format!("{n} ({age})")]
            })
            .collect();
        let mut add = |name: &str, n: u64, more: &str| {
            if n > 0 {
                rows.push([name.to_owned(), format!("{n}{more}")]);
            }
        };
        add("of jobs", self.surplus, &format!(" (beyond their newest {})", retention.per_job));
        add("attempts", self.attempts, "");
        add("instants", self.instants, "");
        add("actions", self.actions, "");
        add("old caps", self.limits, "");
        add("consumers", self.consumers, " (long gone)");
        let said = if self.dry_run { "to be pruned" } else { "pruned" };
        let archive = self.archive.as_ref().map(|path| format!("\n\narchived in {path}")).unwrap_or_default();
        format!("{said}\n{}{archive}", list(&rows))
    }
}

pub(super) async fn run(options: Options, global: &Global, out: &Out) -> Result<(), Failure> {
    let config = global.load(options.flags(), false)?;
    let retention = config.retention;
    let mut store = place::database(&config)?.store();
    store.schema().await?;
    let mut report = count(&mut store, retention).await?;
    if !options.dry_run {
        let live = Live::new(report.all(), out);
        let pruned = prune(&mut store, retention, &options, live).await;
        report = pruned?;
    }
    out.answer(&report, || report.human(retention))?;
    Ok(())
}

/// What would be deleted.
async fn count(store: &mut Store, retention: Retention) -> Result<Report, Failure> {
    let mut report = Report { dry_run: true, ..Report::default() };
    let mut walk = Walk::begin(store, retention).await?;
    while let Some((part, doomed)) = walk.next(store).await? {
        let [tasks, instants, actions] =
            [&doomed.tasks, &doomed.instants, &doomed.actions].map(|ids| ids.len() as u64);
        report.add(&part, Forgotten { tasks, instants, actions, attempts: 0 });
    }
    Ok(report)
}

async fn prune(
    store: &mut Store,
    retention: Retention,
    options: &Options,
    mut live: Live,
) -> Result<Report, Failure> {
    let mut report = Report::default();
    let mut archive: Option<Archive> = None;
    let mut walk = Walk::begin(store, retention).await?;
    while let Some((part, doomed)) = walk.next(store).await? {
        if doomed.is_empty() {
            report.add(&part, Forgotten::default());
            continue;
        }
        if let Some(place) = options.archive.as_ref().filter(|_| !doomed.tasks.is_empty()) {
            let lines = lines(store, &doomed.tasks).await?;
            let failed = |error| {
                Failure::Failed(format!(
                    "cannot archive in {}: {error}; nothing is deleted that is not archived",
                    place.display()
                ))
            };
            if archive.is_none() {
                archive = Some(Archive::create(place, when::now(store).await?).map_err(failed)?);
            }
            if let Some(archive) = &mut archive {
                archive.append(&lines).map_err(failed)?;
            }
        }
        report.add(&part, store.forget(&doomed).await?);
        live.show(report.all(), "pruned");
    }
    live.end();
    (report.limits, report.consumers) = walk.sweep(store).await?;
    report.archive = archive.map(|archive| archive.path.display().to_string());
    if report.all() > 0 {
        let states: Vec<_> = report.tasks.iter().map(|(state, n)| format!("{n} {state}")).collect();
        let surplus = format!("{} of jobs", report.surplus);
        store.record_prune(&who(), [states, vec![surplus]].concat().join(", ")).await?;
    }
    Ok(report)
}
