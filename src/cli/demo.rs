//! `permitq demo`: the whole thing on one machine in under a minute.
//!
//! A stub downstream in this process counts for itself; the consumers are processes of their own and find their
//! configuration in a file, as in production. `--kill N` kills some of them while they hold calls. What it ends with is
//! what the *downstream* counted.

use std::collections::BTreeSet;
use std::fs::{DirBuilder, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use rustix::process::Signal;
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::fail::Failure;
use super::fleet::{Fleet, kill};
use super::live::Live;
use super::out::Out;
use crate::config::HumanDuration;
use crate::downstream::stub::{self, Stub, StubOptions, Summary};
use crate::model::{NewTask, PermitState, State};
use crate::shutdown;
use crate::store::{Database, Dialect, Store};

/// See the whole thing run: a stub downstream that counts, 8 consumer processes, 40 tasks, a cap of 4.
///
/// Ends with what the downstream itself counted. Exit code 0 only if the cap held and every task succeeded.
#[derive(Args, Debug)]
pub(super) struct Options {
    /// Consumer processes
    #[arg(long, default_value_t = 8, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    consumers: u32,
    /// Tasks to be done
    #[arg(long, default_value_t = 40, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    tasks: u32,
    /// The cap: calls in flight over the whole fleet
    #[arg(long, default_value_t = 4, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    max: u32,
    /// How long the downstream takes for one call
    #[arg(long, default_value = "2s", value_name = "DURATION")]
    call_time: HumanDuration,
    /// Kill so many consumers (-9) while they hold calls
    #[arg(long, default_value_t = 0, value_name = "N")]
    kill: u32,
}

/// What a demo runs on.
struct Stage {
    store: Store,
    stub: Stub,
    /// Of this run alone, so that a database with other tasks may be used.
    kind: String,
    semaphore: &'static str,
    live: Live,
}

/// Runs the demo on `url`, or on a file of its own.
pub(super) async fn run(options: &Options, url: Option<&str>, out: &Out) -> Result<ExitCode, Failure> {
    let failed = |error: std::io::Error| Failure::Failed(format!("demo: {error}"));
    let name = format!("permitq-demo-{}-{:08x}", std::process::id(), fastrand::u32(..));
    let folder = std::env::temp_dir().join(name);
    // Others may write there, too: it must be new, and ours alone.
    DirBuilder::new().mode(0o700).create(&folder).map_err(failed)?;
    // A file of its own has one semaphore, `default`; in a database with other tasks the demo keeps to one of its own.
    let (url, semaphore) = match url {
        Some(url) => (url.to_owned(), "demo"),
        None => (format!("sqlite://{}", folder.join("demo.db").display()), "default"),
    };
    let database = Database::new(&url)?;
    let database = if database.dialect() == Dialect::Sqlite { database.create() } else { database };
    let mut store = database.store();
    store.migrate().await?;
    if !store.set_max(semaphore, options.max.into(), "demo").await? {
        store.add_semaphore(semaphore, options.max.into(), "demo").await?;
    }
    let stub = StubOptions { limit: Some(options.max), ..StubOptions::default() };
    let stub = stub::start(stub).await.map_err(failed)?;
    let kind = format!("demo-{}", std::process::id());
    let config = folder.join("permitq.toml");
    write_secret(&config, &options.config(&url, &stub, &kind, semaphore)).map_err(failed)?;

    let stage = Stage { store, stub, kind, semaphore, live: Live::new(options.tasks.into(), out) };
    let (ok, report) = options.play(stage, &config).await?;
    if ok {
        std::fs::remove_dir_all(&folder).map_err(failed)?;
    } else {
        out.note(&format!("the database and the consumers' log are kept in {}", folder.display()));
    }
    out.answer(&report.json, || report.text.clone())?;
    Ok(if ok { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The URL may hold a password.
fn write_secret(file: &Path, text: &str) -> std::io::Result<()> {
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(file)?;
    file.write_all(text.as_bytes())
}

/// What the downstream counted.
struct Report {
    json: serde_json::Value,
    text: String,
}

impl Options {
    /// Short limits, so that a killed consumer's permits are free again within seconds. In production they are minutes.
    fn config(&self, url: &str, stub: &Stub, kind: &str, semaphore: &str) -> String {
        let call = (self.call_time.0 + Duration::from_secs(1)).as_millis();
        format!(
            "[database]\nurl = {url:?}\nstatement_timeout = \"3s\"\nclock_slack = \"0s\"\n\n\
             [lease]\nduration = \"3s\"\nheartbeat = \"500ms\"\nreclaim = \"500ms\"\n\n\
             [downstream.{kind}]\nurl = {:?}\nsemaphore = {semaphore:?}\ncall_timeout = \"{call}ms\"\n\
             connect_timeout = \"1s\"\ntcp_user_timeout = \"1s\"\nstart_window = \"1s\"\n",
            stub.url()
        )
    }

    /// Enqueues, lets the fleet work, and takes it down again.
    async fn play(&self, mut stage: Stage, config: &Path) -> Result<(bool, Report), Failure> {
        let payload =
            json!({"ms": u64::try_from(self.call_time.0.as_millis()).unwrap_or(u64::MAX)}).to_string();
        let task = NewTask {
            semaphore: Some(stage.semaphore.to_owned()),
            source: "demo".to_owned(),
            // Whoever is killed may have held the very task of the one before.
            max_attempts: Some(self.kill + 3),
            ..NewTask::new(&stage.kind, payload)
        };
        stage.store.enqueue(&vec![task; self.tasks as usize]).await?;
        let log = config.with_file_name("consumers.log");
        let mut fleet =
            Fleet::start(self.consumers, &[format!("--config={}", config.display())], None, Some(&log))?;
        let (trigger, shutdown) = shutdown::channel();
        let signalled = |error| Failure::Failed(format!("cannot listen for signals: {error}"));
        trigger.clone().on_signals().map_err(signalled)?;

        let members = fleet.pids();
        let watched = tokio::select! {
            watched = self.watch(&mut stage, &members) => watched,
            stopped = fleet.watch(shutdown.clone()) => {
                stopped?;
                Err(Failure::Failed("stopped by a signal".to_owned()))
            }
        };
        stage.live.end();
        if watched.is_ok() {
            trigger.advance();
            fleet.stop(shutdown).await?;
        }
        let (succeeded, in_use) = watched?;
        Ok(self.report(&stage.stub.shutdown().await, succeeded, in_use))
    }

    /// Watches until every task is final and every permit free, and kills on the way. Answers how many tasks succeeded, and
    /// the permits still taken.
    async fn watch(&self, stage: &mut Stage, members: &[u32]) -> Result<(i64, i64), Failure> {
        let rounds = self.tasks.div_ceil(self.max);
        let deadline = Instant::now() + self.call_time.0 * rounds * 3 + Duration::from_mins(1);
        let mut killed = BTreeSet::new();
        loop {
            let states = stage.store.states(Some(&stage.kind)).await?;
            let count = |state| states.iter().find(|(one, _)| *one == state).map_or(0, |(_, count)| *count);
            let succeeded = count(State::Succeeded);
            let open = i64::from(self.tasks) - succeeded - count(State::Failed) - count(State::Cancelled);
            let semaphores = stage.store.semaphores().await?;
            let in_use =
                semaphores.iter().find(|one| one.name == stage.semaphore).map_or(0, |one| one.in_use);
            let stub = stage.stub.summary();
            let note =
                format!("{} in flight, at most {} of {}", stub.in_flight, stub.max_in_flight, self.max);
            stage.live.show(succeeded.unsigned_abs(), &note);
            if (open == 0 && in_use == 0) || Instant::now() > deadline {
                return Ok((succeeded, in_use));
            }
            if succeeded > 0 && killed.len() < self.kill as usize {
                self.kill_holders(stage, members, &mut killed).await?;
            }
            sleep(Duration::from_millis(100)).await;
        }
    }

    /// Kills members of the first generation that hold a call right now.
    async fn kill_holders(
        &self,
        stage: &mut Stage,
        members: &[u32],
        killed: &mut BTreeSet<u32>,
    ) -> Result<(), Failure> {
        for holder in stage.store.holders().await? {
            let pid = holder.pid.and_then(|pid| u32::try_from(pid).ok()).unwrap_or_default();
            let ours = members.contains(&pid) && holder.semaphore == stage.semaphore;
            if holder.state == PermitState::Held
                && ours
                && killed.len() < self.kill as usize
                && killed.insert(pid)
            {
                kill(pid, Signal::KILL);
                let task = holder.task.unwrap_or_default();
                stage.live.say(&format!("kill -9 {pid}, in the middle of the call of task {task}"));
            }
        }
        Ok(())
    }

    fn report(&self, stub: &Summary, succeeded: i64, in_use: i64) -> (bool, Report) {
        let tasks = i64::from(self.tasks);
        let (first, last) = (
            stub.log.iter().map(|call| call.start_us).min().unwrap_or_default(),
            stub.log.iter().filter_map(|call| call.end_us).max().unwrap_or_default(),
        );
        let wall = Duration::from_micros(last.saturating_sub(first)).as_secs_f64();
        let busy: u64 =
            stub.log.iter().map(|call| call.end_us.unwrap_or(last).saturating_sub(call.start_us)).sum();
        let utilisation = Duration::from_micros(busy).as_secs_f64() / (wall * f64::from(self.max)).max(0.001);
        let held = stub.max_in_flight <= self.max && stub.overruns == 0;
        let ok = held && succeeded == tasks && in_use == 0;
        let json = json!({
            "tasks": tasks,
            "succeeded": succeeded,
            "failed": tasks - succeeded,
            "max": self.max,
            "max_in_flight": stub.max_in_flight,
            "overruns": stub.overruns,
            "duplicates": stub.duplicates,
            "killed": self.kill,
            "in_use": in_use,
            "utilisation": (utilisation * 1000.0).round() / 1000.0,
            "wall_s": (wall * 1000.0).round() / 1000.0,
        });
        let mut lines = vec![format!(
            "{succeeded} tasks succeeded; downstream saw at most {} of {} in flight; utilisation {:.0} %",
            stub.max_in_flight,
            self.max,
            utilisation * 100.0,
        )];
        if stub.duplicates > 0 {
            lines.push(format!(
                "{} calls were made again, because their consumer died before it could record the answer \
                 (the same Idempotency-Key tells the downstream)",
                stub.duplicates
            ));
        }
        if succeeded < tasks {
            lines.push(format!("{} TASKS DID NOT SUCCEED", tasks - succeeded));
        }
        if !held {
            lines.push(format!("THE CAP BROKE: {} calls too many", stub.overruns));
        }
        if in_use != 0 {
            lines.push(format!("{in_use} PERMITS DID NOT COME BACK"));
        }
        let text = lines.join("\n");
        (ok, Report { json, text })
    }
}
