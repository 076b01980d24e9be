//! `kill`: long calls, two holders killed -9. The downstream, which works on, must never see more than the cap, and the
//! capacity must be whole again when the calls can be over.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use permitq::downstream::stub::{self, StubOptions};
use permitq::model::NewTask;
use serde::Serialize;
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::fleet::Fleet;
use super::goal::{Goal, lines};
use super::picture::Page;
use super::stats::seconds;
use super::{CAP, CONSUMERS, Error, Place, Program, Target};

/// What is measured.
#[derive(Clone, Debug)]
pub struct Kill {
    /// Where.
    pub database: Target,
    /// How long a call takes.
    pub call: Duration,
    /// How many tasks.
    pub tasks: usize,
    /// Where the report with its pictures goes.
    pub html: Option<PathBuf>,
    /// How to start consumers.
    pub program: Program,
}

/// What was measured.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The most calls at once, abandoned ones included.
    pub max_in_flight: u32,
    /// Calls above the cap.
    pub overruns: u64,
    /// Tasks that never ended well.
    pub lost: i64,
    /// Tasks that were called twice: those whose caller was killed.
    pub called_twice: u64,
    /// From the kill until the killed calls' tasks could be claimed again.
    pub taken_back_s: f64,
    /// When that must be: lease and two passes.
    pub taken_back_bound_s: f64,
    /// From the kill until the last killed call's task was called again.
    pub again_s: f64,
    /// When that must be: lease, two beats and two passes, if a permit is free.
    pub again_bound_s: f64,
    /// From the kill until no permit cooled any more.
    pub whole_s: f64,
    /// When that must be: the bound stored at the claim, and one pass.
    pub whole_bound_s: f64,
    /// What was aimed at.
    pub targets: Vec<Goal>,
}

impl Report {
    /// Whether all was as promised.
    pub fn holds(&self) -> bool {
        self.overruns == 0
            && self.max_in_flight <= CAP
            && self.lost == 0
            && self.whole_s <= self.whole_bound_s
            && self.again_s <= self.again_bound_s
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "at most {} in flight, overruns {}, lost {}, called twice {}",
            self.max_in_flight, self.overruns, self.lost, self.called_twice
        )?;
        writeln!(
            f,
            "taken back {:.1} s after the kill (at most {:.1} s)",
            self.taken_back_s, self.taken_back_bound_s
        )?;
        writeln!(
            f,
            "called again {:.1} s after the kill (at most {:.1} s)",
            self.again_s, self.again_bound_s
        )?;
        write!(
            f,
            "capacity whole {:.1} s after the kill (at most {:.1} s)",
            self.whole_s, self.whole_bound_s
        )?;
        lines(f, &self.targets)
    }
}

// Milliseconds.
const LEASE: u64 = 3000;
const BEAT: u64 = 500;
const PASS: u64 = 500;
/// A pass may come so late, by its jitter.
const LATEST_PASS: u64 = PASS * 5 / 4;
/// Start window, connect timeout and TCP's, each of 1 s.
const WINDOWS: u64 = 3000;
/// The call timeout above the call's own length.
const MARGIN: u64 = 3000;

impl Kill {
    /// # Errors
    /// Where something is in the way of measuring; a promise that does not hold is a result.
    pub async fn run(&self) -> Result<Report, Error> {
        let mut place = Place::open(&self.database).await?;
        let stub = stub::start(StubOptions { limit: Some(CAP), ..StubOptions::default() }).await?;
        let timeout = u64::try_from(self.call.as_millis())? + MARGIN;
        let config = format!(
            "[database]\nclock_slack = \"0s\"\nstatement_timeout = \"3s\"\n\
             [lease]\nduration = \"{LEASE}ms\"\nheartbeat = \"{BEAT}ms\"\nreclaim = \"{PASS}ms\"\n\
             [downstream.default]\nurl = \"{}\"\ncall_timeout = \"{timeout}ms\"\nstart_window = \"1s\"\n\
             connect_timeout = \"1s\"\ntcp_user_timeout = \"1s\"\n",
            stub.url()
        );
        let args = ["run", "--while-stdin", "--slots", "1"];
        let mut fleet = Fleet::start(&self.program, &mut place, CONSUMERS, &args, &config).await?;
        let mut store = place.store();
        let payload = json!({"ms": u64::try_from(self.call.as_millis())?}).to_string();
        store.enqueue(&vec![NewTask::new("call", payload); self.tasks]).await?;
        while stub.summary().in_flight < CAP {
            sleep(Duration::from_millis(5)).await;
        }
        sleep(Duration::from_secs(1)).await;

        let mut killed = Vec::new();
        let kill = store.clock().await?;
        for holder in store.holders().await? {
            let pid = holder.pid.and_then(|pid| u32::try_from(pid).ok());
            if let (Some(pid), Some(task)) = (pid, holder.task)
                && killed.len() < 2
                && fleet.kill(pid)?
            {
                killed.push(task);
            }
        }
        let (at, began) = (stub.now_us(), Instant::now());
        let mut whole = None;
        let deadline = began + Duration::from_mins(2) + self.call * u32::try_from(self.tasks)? / CAP;
        loop {
            let cooling = place.number("SELECT count(*) FROM permitq_cooling").await?;
            let abandoned = "SELECT count(*) FROM permitq_attempt WHERE outcome = 'abandoned'";
            if whole.is_none() && cooling == 0 && place.number(abandoned).await? == 2 {
                whole = Some(began.elapsed());
            }
            let left = "SELECT count(*) FROM permitq_task WHERE state IN ('pending', 'scheduled', 'running')";
            if whole.is_some() && place.number(left).await? == 0 {
                break;
            }
            if Instant::now() > deadline {
                return Err("tasks are left, or permits still cool, long after the kill".into());
            }
            sleep(Duration::from_millis(50)).await;
        }
        fleet.stop().await?;

        let seen = stub.summary();
        let installation = store.schema().await?.installation;
        let again = killed.iter().map(|task| {
            let key = format!("{installation}-{task}");
            let calls = seen.log.iter().filter(|entry| entry.key.as_deref() == Some(&key));
            calls.map(|entry| entry.start_us).filter(|start| *start > at).min()
        });
        let again = again.max().flatten().ok_or("a task of a killed consumer was not called again")?;
        let lost = "SELECT count(*) FROM permitq_task WHERE state <> 'succeeded'";
        // A permit is free for them when the longest call that ran then is over.
        let call = self.call.as_secs_f64();
        let taken_back = place.micros("max(ended_at)");
        let taken_back =
            format!("SELECT {taken_back} - {kill} FROM permitq_attempt WHERE outcome = 'abandoned'");
        let taken_back = place.number(&taken_back).await?;
        let mut report = Report {
            max_in_flight: seen.max_in_flight,
            overruns: seen.overruns,
            lost: place.number(lost).await?,
            called_twice: seen.calls - self.tasks as u64,
            taken_back_s: seconds(u64::try_from(taken_back)?),
            taken_back_bound_s: (LEASE + 2 * LATEST_PASS) as f64 / 1000.0,
            again_s: seconds(again - at),
            again_bound_s: (LEASE + 2 * BEAT + 2 * LATEST_PASS) as f64 / 1000.0 + call,
            whole_s: whole.unwrap_or_default().as_secs_f64(),
            whole_bound_s: (timeout + WINDOWS + LATEST_PASS) as f64 / 1000.0 + 0.5,
            targets: Vec::new(),
        };
        report.targets = vec![
            Goal::at_most("calls in flight after the kill", report.max_in_flight.into(), CAP.into()),
            Goal::at_most(
                "seconds until lost tasks can run again",
                report.taken_back_s,
                report.taken_back_bound_s,
            ),
            Goal::at_most("seconds until the capacity is whole", report.whole_s, report.whole_bound_s),
        ];
        if let Some(file) = &self.html {
            let title = format!("{} calls of {:?}, two holders killed", self.tasks, self.call);
            let page = Page::new(&title, &report).goals(&report.targets).calls(&seen, CAP);
            std::fs::write(file, page.html())?;
        }
        Ok(report)
    }
}
