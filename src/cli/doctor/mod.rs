//! `permitq doctor`: what keeps the promises from holding, before it does. It asks, judges and prints; it changes nothing.
//!
//! ```text
//! configuration ─ok─► connection ─ok─► server ─► schema ─ok─► everything else
//!        └─ no: that is all     └─ no, or a pooler: that is all    └─ no: the server alone
//! ```
//!
//! What is asked is in `store/doctor.rs`; what it means in `judge`, as pure functions.

mod judge;

use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;

use super::fail::Failure;
use super::out::{Out, section, table};
use super::{Global, place, when};
use crate::config::Config;
use crate::store::{Database, Dialect, Error, Store};

use judge::Sight;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Level {
    Ok,
    /// It works, and will not under some circumstance that is named.
    Warning,
    /// It does not work, or a promise does not hold.
    Problem,
}

impl Level {
    fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Problem => "problem",
        }
    }
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Check {
    name: &'static str,
    level: Level,
    found: String,
    remedy: Option<String>,
}

impl Check {
    fn ok(name: &'static str, found: impl Into<String>) -> Self {
        Self { name, level: Level::Ok, found: found.into(), remedy: None }
    }

    fn warning(name: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { name, level: Level::Warning, found: found.into(), remedy: Some(remedy.into()) }
    }

    fn problem(name: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { name, level: Level::Problem, found: found.into(), remedy: Some(remedy.into()) }
    }

    /// An error as what was found. Its words name the remedy where one is known.
    fn error(name: &'static str, error: &Error) -> Self {
        Self { name, level: Level::Problem, found: error.to_string(), remedy: None }
    }
}

/// What scripts rely on.
#[derive(Debug, Serialize)]
struct Report {
    ok: bool,
    checks: Vec<Check>,
}

pub(super) async fn run(global: &Global, out: &Out) -> Result<(), Failure> {
    let checks = look(global).await;
    let ok = checks.iter().all(|check| check.level != Level::Problem);
    let report = Report { ok, checks };
    out.answer(&report, || human(&report.checks))?;
    if report.ok { Ok(()) } else { Err(Failure::NotOk) }
}

fn human(checks: &[Check]) -> String {
    let rows = checks.iter().map(|check| [check.level.as_str(), check.name, &check.found].map(str::to_owned));
    let mut text = table(["level", "check", "found"], rows);
    let remedies =
        checks.iter().filter_map(|check| Some(format!("{}: {}", check.name, check.remedy.as_ref()?)));
    let remedies: Vec<_> = remedies.collect();
    if !remedies.is_empty() {
        text.push_str("\n\n");
        text.push_str(&section("what to do", &remedies.join("\n")));
    }
    text
}

async fn look(global: &Global) -> Vec<Check> {
    let config = match global.config(Vec::new()) {
        Ok(config) => config,
        Err(failure) => {
            let found = failure.words().unwrap_or_default().replace('\n', "; ");
            let remedy =
                "each problem names a value that would do; `permitq config show` shows what is in force";
            return vec![Check::problem("configuration", found, remedy)];
        }
    };
    let mut checks = vec![judge::configuration(&config)];
    match place::database(&config) {
        Ok(database) => at(&database, &config, &mut checks).await,
        Err(failure) => {
            let remedy = "name another database, or build permitq with it";
            checks.push(Check::problem("connection", failure.words().unwrap_or_default(), remedy));
        }
    }
    checks
}

async fn at(database: &Database, config: &Config, checks: &mut Vec<Check>) {
    let mut store = database.store();
    let server = match store.server().await {
        Ok(server) => server,
        Err(error) => return checks.push(Check::error("connection", &error)),
    };
    checks.push(Check::ok("connection", database.masked()));
    checks.push(judge::server(&server));
    match database.is_pooled().await {
        Ok(false) if database.dialect() == Dialect::Sqlite => {}
        Ok(false) => checks.push(judge::pooler(false)),
        // What follows would be said of any session.
        Ok(true) => return checks.push(judge::pooler(true)),
        Err(error) => checks.push(Check::error("pooler", &error)),
    }
    if let Err(error) = the_server(&mut store, config, checks).await {
        checks.push(Check::error("server settings", &error));
    }
    match store.schema().await {
        Ok(schema) => {
            checks.push(Check::ok("schema", format!("version {}", schema.version)));
            if let Err(error) = the_queue(&mut store, config, checks).await {
                checks.push(Check::error("tables", &error));
            }
        }
        Err(error) => checks.push(Check::error("schema", &error)),
    }
}

/// What can be said without our tables.
async fn the_server(store: &mut Store, config: &Config, checks: &mut Vec<Check>) -> Result<(), Error> {
    let database = store.database().clone();
    let dialect = database.dialect();
    let settings = store.settings().await?;
    let sight = Sight { dialect, settings };
    checks.extend([sight.writable(store.can_write().await), sight.durability(), sight.isolation()]);
    if dialect != Dialect::Sqlite {
        checks.push(sight.limits(config.database.statement_timeout));
        checks.push(sight.connections());
        checks.push(sight.encryption(&database.masked()));
    }
    checks.push(clock(store, dialect).await?);
    match dialect {
        Dialect::Postgres => checks.push(sight.encoding()),
        Dialect::Mysql => checks.push(sight.packets()),
        Dialect::Sqlite => {}
    }
    Ok(())
}

async fn clock(store: &mut Store, dialect: Dialect) -> Result<Check, Error> {
    // This host's own clock is what is judged here.
    #[expect(clippy::disallowed_methods, reason = "it decides nothing, it is compared with the database's")]
    let here = Timestamp::now;
    let before = here();
    let there = store.clock().await?;
    let after = here();
    let round_trip = after.duration_since(before).unsigned_abs();
    let middle = before.as_microsecond() + i64::try_from(round_trip.as_micros() / 2).unwrap_or(0);
    Ok(judge::clock(dialect, there - middle, round_trip))
}

/// What is said of the tables and of who uses them.
async fn the_queue(store: &mut Store, config: &Config, checks: &mut Vec<Check>) -> Result<(), Error> {
    let facts = store.facts().await?;
    checks.extend([judge::objects(&facts), judge::rights(&facts.denied)]);
    if !facts.denied.is_empty() {
        // Whatever comes next would only be refused as well.
        return Ok(());
    }
    let semaphores = store.semaphores().await?;
    let consumers = store.consumers().await?;
    let now = Timestamp::from_microsecond(store.clock().await?).unwrap_or_default();
    checks.push(judge::semaphores(config, &semaphores));
    checks.push(judge::counters(&semaphores));
    checks.push(judge::consumers(&consumers, now));
    checks.push(judge::slots(&consumers, &semaphores));
    Ok(())
}

/// A span as people read it, to the tenth of a second where it is short.
fn span(span: Duration) -> String {
    if span < Duration::from_secs(10) { format!("{:.1} s", span.as_secs_f64()) } else { when::span(span) }
}
