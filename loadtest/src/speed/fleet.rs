//! Consumers as real processes.

use std::fs::{self, File};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::time::{Instant, sleep};

use super::{Error, Place, Program};

/// Consumers that end with this value.
pub(super) struct Fleet {
    members: Vec<Child>,
}

/// What processes have used so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Used {
    /// User and system time of all, in seconds.
    pub(super) cpu_s: f64,
    /// The largest of their resident sets, in MiB.
    pub(super) rss_mib: f64,
    /// The largest that any of them ever was.
    pub(super) peak_mib: f64,
}

impl Used {
    /// And what this process has used.
    pub(super) fn add(&mut self, pid: u32) -> Result<(), Error> {
        self.cpu_s += cpu_seconds(pid)?;
        self.rss_mib = self.rss_mib.max(mib(pid, "VmRSS:")?);
        self.peak_mib = self.peak_mib.max(mib(pid, "VmHWM:")?);
        Ok(())
    }
}

const PATIENCE: Duration = Duration::from_mins(1);

impl Fleet {
    /// `n` processes that run `permitq ARGS`, and are registered. They end when we do, however that happens.
    pub(super) async fn start(
        program: &Program,
        place: &mut Place,
        n: usize,
        args: &[&str],
        config: &str,
    ) -> Result<Self, Error> {
        fs::write(place.folder.path().join("permitq.toml"), config)?;
        let before = registered(place).await?;
        let mut fleet = Self { members: Vec::new() };
        for number in 0..n {
            let log = File::create(place.folder.path().join(format!("c{number}.log")))?;
            let mut command = Command::new(&program.path);
            command.args(&program.args).args(args).env_clear().current_dir(place.folder.path());
            command.env("PERMITQ_DATABASE__URL", &place.url);
            command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(log);
            fleet.members.push(command.spawn()?);
        }
        let deadline = Instant::now() + PATIENCE;
        while registered(place).await? < before + i64::try_from(n)? {
            if Instant::now() > deadline {
                let log = fs::read_to_string(place.folder.path().join("c0.log"))?;
                return Err(format!("the consumers have not registered within {PATIENCE:?}:\n{log}").into());
            }
            sleep(Duration::from_millis(20)).await;
        }
        Ok(fleet)
    }

    /// kill -9 of the member with this process id; false where there is none.
    pub(super) fn kill(&mut self, pid: u32) -> Result<bool, Error> {
        let Some(at) = self.members.iter().position(|member| member.id() == pid) else { return Ok(false) };
        // It must not be waited for again.
        let mut member = self.members.remove(at);
        let killed = member.kill();
        member.wait()?;
        killed?;
        Ok(true)
    }

    /// What they have used so far.
    pub(super) fn used(&self) -> Result<Used, Error> {
        let mut used = Used::default();
        self.members.iter().try_for_each(|member| used.add(member.id()))?;
        Ok(used)
    }

    /// Each one's resident set, in MiB, and open files, connections among them.
    pub(super) fn sizes(&self) -> Result<Vec<(f64, usize)>, Error> {
        let size = |member: &Child| {
            let files = fs::read_dir(format!("/proc/{}/fd", member.id()))?.count();
            Ok((mib(member.id(), "VmRSS:")?, files))
        };
        self.members.iter().map(size).collect()
    }

    /// SIGTERM to all, and their ends.
    pub(super) async fn stop(mut self) -> Result<(), Error> {
        for member in &self.members {
            kill_process(Pid::from_child(member), Signal::TERM)?;
        }
        let deadline = Instant::now() + PATIENCE;
        for member in &mut self.members {
            while member.try_wait()?.is_none() {
                if Instant::now() > deadline {
                    return Err(format!("a consumer has not drained within {PATIENCE:?}").into());
                }
                sleep(Duration::from_millis(10)).await;
            }
        }
        Ok(())
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        for member in &mut self.members {
            let _ended = member.kill();
            let _ended = member.wait();
        }
    }
}

async fn registered(place: &mut Place) -> Result<i64, Error> {
    place.number("SELECT count(*) FROM permitq_consumer").await
}

/// Fields 14 and 15 of `/proc/PID/stat` (proc(5)), in clock ticks of 10 ms.
fn cpu_seconds(pid: u32) -> Result<f64, Error> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let (_, fields) = stat.rsplit_once(") ").ok_or("no fields in /proc/PID/stat")?;
    let ticks = fields.split(' ').skip(11).take(2).map(str::parse::<u64>).sum::<Result<u64, _>>()?;
    Ok(ticks as f64 / 100.0)
}

fn mib(pid: u32, what: &str) -> Result<f64, Error> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix(what)).ok_or("a process has ended")?;
    let kib: f64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kib / 1024.0)
}
