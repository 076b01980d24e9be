//! The consumers: real processes, each behind a proxy of its own on either side.
//!
//! ```text
//!   c0 … c7 ──proxy──► database
//!      └──────proxy──► stub downstream
//! ```
//!
//! They are one process group, whose leader kills it when our end of its pipe is gone: however we end, nobody stays
//! behind, frozen ones neither.

use std::fs::File;
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::time::Instant;

use super::journal::Book;
use super::plan::{Line, Side};
use super::scale::{self, MEMBERS};
use super::stage::Stage;
use super::{Error, Program};
use crate::proxy::{Mode, Proxy};

pub(super) struct Fleet {
    program: Program,
    folder: Arc<TempDir>,
    environment: Vec<(String, String)>,
    members: Vec<Member>,
    group: Child,
    book: Arc<Book>,
}

struct Member {
    child: Option<Child>,
    /// It is to be up: who ended by itself is started again, a little later.
    wanted: bool,
    again_at: Instant,
    /// It was told to end.
    told: bool,
    database: Option<(Proxy, String)>,
    downstream: (Proxy, String),
}

/// How long after its end a consumer is started again that ended by itself.
const PAUSE: Duration = Duration::from_millis(300);

impl Fleet {
    pub(super) async fn new(
        program: &Program,
        stage: &Stage,
        stub: SocketAddr,
        book: Arc<Book>,
    ) -> Result<Self, Error> {
        let folder = stage.folder.clone();
        std::fs::write(folder.path().join("permitq.toml"), scale::config())?;
        let mut members = Vec::new();
        for _ in 0..MEMBERS {
            let database = match &stage.server_address {
                Some((address, text)) => {
                    let proxy = Proxy::start(*address).await?;
                    let url = stage.url.replacen(text, &proxy.address().to_string(), 1);
                    Some((proxy, url))
                }
                None => None,
            };
            let downstream = Proxy::start(stub).await?;
            let url = format!("http://{}/call", downstream.address());
            members.push(Member {
                child: None,
                wanted: true,
                again_at: Instant::now(),
                told: false,
                database,
                downstream: (downstream, url),
            });
        }
        let group = Command::new("sh")
            .args(["-c", "read -r end_of_file; kill -KILL -$$"])
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()?;
        let mut fleet =
            Self { program: program.clone(), folder, environment: stage.environment(), members, group, book };
        for member in 0..MEMBERS {
            fleet.spawn(member, &stage.url)?;
        }
        Ok(fleet)
    }

    pub(super) fn log(&self, member: usize) -> PathBuf {
        self.folder.path().join(format!("c{member}.log"))
    }

    fn spawn(&mut self, number: usize, url: &str) -> Result<(), Error> {
        let log = File::options().create(true).append(true).open(self.log(number))?;
        let group = i32::try_from(self.group.id())?;
        let member = &mut self.members[number];
        let mut command = Command::new(&self.program.path);
        command.args(&self.program.args).args(["run", "--name", &format!("c{number}")]);
        command.current_dir(self.folder.path()).env_clear().envs(self.environment.iter().cloned());
        command.env("PERMITQ_DATABASE__URL", member.database.as_ref().map_or(url, |(_, url)| url));
        command.env("PERMITQ_DOWNSTREAM__DEFAULT__URL", &member.downstream.1);
        command.process_group(group).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        member.child = Some(command.spawn()?);
        member.told = false;
        Ok(())
    }

    /// Notices who has ended, and starts who is wanted.
    pub(super) fn mind(&mut self, url: &str) -> Result<(), Error> {
        for number in 0..MEMBERS {
            let member = &mut self.members[number];
            if let Some(child) = &mut member.child
                && let Some(status) = child.try_wait()?
            {
                let pid = child.id();
                member.child = None;
                if !member.told {
                    member.again_at = Instant::now() + PAUSE;
                    let exit = super::journal::Exit { at: self.book.now(), pid, code: status.code() };
                    self.book.write().exits.push(exit);
                }
            }
            if member.child.is_none() && member.wanted && Instant::now() >= member.again_at {
                self.spawn(number, url)?;
            }
        }
        Ok(())
    }

    /// Sends a signal; false where there is nobody.
    pub(super) fn signal(&self, number: usize, signal: Signal) -> bool {
        let child = self.members[number].child.as_ref();
        child.is_some_and(|child| kill_process(Pid::from_child(child), signal).is_ok())
    }

    /// Sends a signal that ends it, for good until it is wanted again; false where there is nobody.
    pub(super) fn end(&mut self, number: usize, signal: Signal) -> bool {
        self.members[number].wanted = false;
        self.members[number].told = true;
        self.signal(number, signal)
    }

    /// From now on it is to be up again.
    pub(super) fn start(&mut self, number: usize) {
        self.members[number].wanted = true;
        self.members[number].again_at = Instant::now();
    }

    pub(super) fn line(&self, number: usize, side: Side, line: Line) {
        let Some(proxy) = self.proxy(number, side) else { return };
        match line {
            Line::Cut => proxy.cut(),
            Line::Slow(by) => proxy.set(Mode::Delay(Duration::from_millis(by))),
            Line::Silent => proxy.set(Mode::Blackhole),
            Line::Refused => {
                proxy.set(Mode::Refuse);
                proxy.cut();
            }
            Line::Forgotten => {
                // Of those before, only so many fit into a server.
                proxy.bury();
                proxy.forget();
            }
        }
    }

    pub(super) fn mend(&self, number: usize, side: Side) {
        let Some(proxy) = self.proxy(number, side) else { return };
        if side == Side::Downstream {
            // What a silent line has swallowed must not arrive now: no network delivers what its sender has given up.
            proxy.cut();
        }
        proxy.set(Mode::Pass);
    }

    fn proxy(&self, number: usize, side: Side) -> Option<&Proxy> {
        let member = &self.members[number];
        match side {
            Side::Database => member.database.as_ref().map(|(proxy, _)| proxy),
            Side::Downstream => Some(&member.downstream.0),
        }
    }

    /// SIGTERM to all; answers the exit codes of those that ended in time.
    pub(super) async fn stop(&mut self) -> Vec<Option<i32>> {
        for number in 0..MEMBERS {
            self.end(number, Signal::TERM);
        }
        let deadline = Instant::now() + Duration::from_secs(15);
        let mut codes = vec![None; MEMBERS];
        while Instant::now() < deadline && self.members.iter().any(|member| member.child.is_some()) {
            for (member, code) in self.members.iter_mut().zip(&mut codes) {
                if let Some(child) = &mut member.child
                    && let Ok(Some(status)) = child.try_wait()
                {
                    *code = status.code();
                    member.child = None;
                }
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        codes
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        drop(self.group.stdin.take());
        let _ended = self.group.wait();
        for child in self.members.iter_mut().filter_map(|member| member.child.as_mut()) {
            let _ended = child.wait();
        }
    }
}
