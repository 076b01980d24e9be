//! `permitq fleet`: several consumers on this host, restarted when they die, stopped together.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};
use std::time::Duration;

use clap::Args;
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, ChildStdin, Command};
use tokio::time::{Instant, sleep_until};

use super::fail::Failure;
use super::{Global, log};
use crate::config::Secret;
use crate::shutdown::{self, Shutdown, Stage};

/// Run several consumers on this host, as processes of their own.
///
/// One that dies is started again. SIGTERM or SIGINT drains them all; a second signal skips the wait.
#[derive(Args, Debug)]
pub(super) struct Options {
    /// How many
    #[arg(long, default_value_t = 8, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    consumers: u32,
    /// Calls at once in each process
    #[arg(long, value_name = "N")]
    slots: Option<usize>,
}

impl Options {
    pub(super) async fn run(&self, global: &Global) -> Result<ExitCode, Failure> {
        log::start(&global.config(Vec::new())?)?;
        let mut args: Vec<_> =
            global.config.iter().map(|file| format!("--config={}", file.display())).collect();
        let (trigger, shutdown) = shutdown::channel();
        trigger
            .on_signals()
            .map_err(|error| Failure::Failed(format!("cannot listen for signals: {error}")))?;
        if let Some(slots) = self.slots {
            args.push(format!("--slots={slots}"));
        }
        let mut fleet =
            Fleet::start(self.consumers, &args, global.database.as_ref().map(Secret::expose), None)?;
        Ok(ExitCode::from(fleet.watch(shutdown).await?))
    }
}

/// The processes of a fleet.
pub(super) struct Fleet {
    /// The binary as it was at the start: a deploy may replace the file meanwhile.
    program: PathBuf,
    args: Vec<String>,
    /// The database, where our own command line names one.
    url: Option<String>,
    /// Where their logs go; to ours where `None`.
    log: Option<File>,
    /// Take no setting of ours from the environment.
    bare: bool,
    members: Vec<Member>,
}

struct Member {
    name: String,
    child: Option<Child>,
    /// Held open for as long as the fleet lives; waiting for a child would close the one it keeps itself.
    stdin: Option<ChildStdin>,
    /// It has not died yet.
    first: bool,
    started: Instant,
    /// When to start it again.
    again_at: Instant,
    /// Grows while it keeps dying young.
    pause: Duration,
}

/// The longest pause before a restart.
const SLOW: Duration = Duration::from_secs(10);
/// A consumer that lived as long as this did not fail at its start.
const GROWN_UP: Duration = Duration::from_secs(30);

impl Fleet {
    /// Starts `count` consumers, each as `permitq run ARGS`.
    ///
    /// With a `log` file of their own they are a demo's, and heed no setting in the environment either.
    pub(super) fn start(
        count: u32,
        args: &[String],
        url: Option<&str>,
        log: Option<&Path>,
    ) -> Result<Self, Failure> {
        let program = std::env::current_exe().map_err(cannot_start)?;
        let bare = log.is_some();
        let log = log.map(File::create).transpose().map_err(cannot_start)?;
        let (args, url) = (args.to_vec(), url.map(str::to_owned));
        let mut fleet = Self { program, args, url, log, bare, members: Vec::new() };
        for number in 1..=count {
            let name = format!("c{number}");
            let now = Instant::now();
            let mut child = fleet.spawn(&name)?;
            let (stdin, child) = (child.stdin.take(), Some(child));
            fleet.members.push(Member {
                name,
                child,
                stdin,
                first: true,
                started: now,
                again_at: now,
                pause: Duration::ZERO,
            });
        }
        Ok(fleet)
    }

    /// In a process group of its own, so that Ctrl-C reaches the fleet alone and not each member a second time. A member
    /// that outlives the fleet sees its standard input end, and drains.
    fn spawn(&self, name: &str) -> Result<Child, Failure> {
        let mut command = Command::new(&self.program);
        if self.bare {
            for (name, _) in std::env::vars_os() {
                if name == "DATABASE_URL" || name.to_string_lossy().starts_with("PERMITQ_") {
                    command.env_remove(name);
                }
            }
        }
        if let Some(url) = &self.url {
            // It may hold a password, and everybody sees a command line.
            command.env("PERMITQ_DATABASE__URL", url);
        }
        command.arg("run").args(&self.args).args(["--name", name, "--while-stdin"]);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).process_group(0);
        if let Some(log) = &self.log {
            command.stderr(log.try_clone().map_err(cannot_start)?);
        }
        command.spawn().map_err(cannot_start)
    }

    /// The process ids of those that run.
    pub(super) fn pids(&self) -> Vec<u32> {
        self.members.iter().filter_map(|member| member.child.as_ref()?.id()).collect()
    }

    /// Restarts whoever dies until shutdown, then stops all; answers the highest exit code.
    pub(super) async fn watch(&mut self, mut shutdown: Shutdown) -> Result<u8, Failure> {
        loop {
            let next = self.next_start();
            tokio::select! {
                number = died(&mut self.members) => if let Err(failure) = self.bury(number) {
                    self.stop(shutdown).await?;
                    return Err(failure);
                },
                () = sleep_until(next) => self.restart(),
                () = shutdown.past(Stage::Run) => break,
            }
        }
        self.stop(shutdown).await
    }

    fn bury(&mut self, number: usize) -> Result<(), Failure> {
        let member = &mut self.members[number];
        let Some(mut child) = member.child.take() else { return Ok(()) };
        let status = child.try_wait().ok().flatten();
        // A configuration that is wrong from the start stays wrong; one that was good may be in the middle of a deploy.
        if status.and_then(|status| status.code()) == Some(2) && member.first {
            return Err(Failure::Usage(format!("consumer {} cannot start: see above", member.name)));
        }
        member.first = false;
        let status = status.map(|status| status.to_string()).unwrap_or_default();
        member.pause = if member.started.elapsed() > GROWN_UP {
            Duration::ZERO
        } else {
            (member.pause * 2).clamp(Duration::from_millis(100), SLOW)
        };
        member.again_at = Instant::now() + member.pause;
        tracing::warn!(
            consumer = member.name,
            status,
            again_in_ms = member.pause.as_millis(),
            "consumer died"
        );
        Ok(())
    }

    fn next_start(&self) -> Instant {
        let dead = self.members.iter().filter(|member| member.child.is_none());
        dead.map(|member| member.again_at).min().unwrap_or_else(|| Instant::now() + Duration::from_hours(1))
    }

    fn restart(&mut self) {
        let now = Instant::now();
        for number in 0..self.members.len() {
            if self.members[number].child.is_none() && self.members[number].again_at <= now {
                let spawned = self.spawn(&self.members[number].name);
                let member = &mut self.members[number];
                let mut child = match spawned {
                    Ok(child) => child,
                    Err(failure) => {
                        tracing::warn!(consumer = member.name, why = failure.words(), "cannot restart");
                        member.again_at = now + SLOW;
                        continue;
                    }
                };
                member.stdin = child.stdin.take();
                member.child = Some(child);
                member.started = now;
            }
        }
    }

    /// One signal to each for each of ours; waits for all.
    pub(super) async fn stop(&mut self, mut shutdown: Shutdown) -> Result<u8, Failure> {
        self.signal(Signal::TERM);
        let mut pressed = false;
        let mut code = 0;
        while self.members.iter().any(|member| member.child.is_some()) {
            tokio::select! {
                number = died(&mut self.members) => {
                    if let Some(mut child) = self.members[number].child.take() {
                        let status = child.try_wait().ok().flatten().and_then(|status| status.code());
                        code = code.max(status.and_then(|code| u8::try_from(code).ok()).unwrap_or(1));
                    }
                }
                () = shutdown.past(Stage::Drain), if !pressed => {
                    pressed = true;
                    self.signal(Signal::TERM);
                }
            }
        }
        Ok(code)
    }

    fn signal(&self, signal: Signal) {
        for pid in self.pids() {
            kill(pid, signal);
        }
    }
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn cannot_start(error: std::io::Error) -> Failure {
    Failure::Failed(format!("cannot start a consumer: {error}"))
}

/// Sends a signal to a process that may have just ended.
pub(super) fn kill(pid: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        let _gone = kill_process(pid, signal);
    }
}

/// Waits until one of them has ended, and answers which. May be dropped and called again.
async fn died(members: &mut [Member]) -> usize {
    let waits = members.iter_mut().enumerate().filter_map(|(number, member)| {
        let child = member.child.as_mut()?;
        Some(Box::pin(async move {
            let _status = child.wait().await;
            number
        }))
    });
    let waits: Vec<_> = waits.collect();
    if waits.is_empty() {
        return std::future::pending().await;
    }
    futures_util::future::select_all(waits).await.0
}
