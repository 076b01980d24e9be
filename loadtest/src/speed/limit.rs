//! `limit`: eight consumers, four permits, calls of one length. Whatever keeps a permit from being used shows as a gap at the
//! downstream.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use permitq::downstream::stub::{self, Entry, Stub, StubOptions, Summary};
use permitq::model::NewTask;
use permitq::store::Dialect;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::Serialize;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::fleet::{Fleet, Used};
use super::goal::{Goal, lines};
use super::picture::Page;
use super::stats::{Spread, seconds};
use super::{CAP, Error, Place, Program, Target, two};

/// What is measured.
#[derive(Clone, Debug)]
pub struct Limit {
    /// Where.
    pub database: Target,
    /// How long a call takes.
    pub call: Duration,
    /// How many.
    pub tasks: usize,
    /// Permits.
    pub cap: u32,
    /// Consumer processes.
    pub consumers: usize,
    /// Calls at once in each.
    pub slots: usize,
    /// Where the report with its pictures goes.
    pub html: Option<PathBuf>,
    /// How to start consumers.
    pub program: Program,
}

/// One run against the stub, as the stub saw it.
#[derive(Clone, Debug, Serialize)]
pub struct Run {
    /// Calls times their length, over permits times the time from the first call's start to the last one's end.
    pub utilisation: f64,
    /// From the first call's start to the last one's end.
    pub wall_s: f64,
    /// From a permit that is free to the next call.
    pub gap: Spread,
    /// The most calls at once.
    pub max_in_flight: u32,
    /// Calls above the cap.
    pub overruns: u64,
}

/// What was measured.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// permitq.
    #[serde(flatten)]
    pub run: Run,
    /// The same calls by as many clients as there are permits, without any database, each over a connection of its own.
    pub bare_utilisation: f64,
    /// The same over kept connections, which permitq does not use.
    pub bare_kept_utilisation: f64,
    /// `utilisation` over `bare_utilisation`.
    pub of_bare: f64,
    /// As `utilisation`, from the moment the enqueuer begins.
    pub utilisation_from_enqueue: f64,
    /// The bare loop's gaps.
    pub bare_gap: Spread,
    /// Commits of one row in the same database.
    pub commit: Spread,
    /// The gap's median, less the bare loop's, in median commits.
    pub gap_in_commits: f64,
    /// Of the run, less what starting and stopping the fleet costs; on SQLite those that wrote.
    pub transactions_per_task: Option<f64>,
    /// Calls a second.
    pub calls_per_s: f64,
    /// Calls of the consumer with the fewest and with the most, in equal shares.
    pub shares: (f64, f64),
    /// CPU milliseconds of the consumers for a call, starting them included.
    pub cpu_ms_per_call: f64,
    /// The largest that a consumer's resident set ever was, in MiB.
    pub peak_mib: f64,
    /// What was aimed at.
    pub targets: Vec<Goal>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { run, .. } = self;
        writeln!(
            f,
            "utilisation {:.3}, bare loop {:.3} ({:.3} over kept connections): {:.4} of the bare loop's",
            run.utilisation, self.bare_utilisation, self.bare_kept_utilisation, self.of_bare
        )?;
        writeln!(f, "gap: {}; bare loop: {}", run.gap, self.bare_gap)?;
        writeln!(f, "a commit of one row: {}; a gap costs {:.2} of it", self.commit, self.gap_in_commits)?;
        let (fewest, most) = self.shares;
        writeln!(
            f,
            "transactions per task: {}; each consumer had {fewest:.2} to {most:.2} times its share of the calls",
            two(self.transactions_per_task)
        )?;
        writeln!(
            f,
            "consumers: {:.2} ms of CPU per call, at most {:.1} MiB resident",
            self.cpu_ms_per_call, self.peak_mib
        )?;
        write!(
            f,
            "at most {} in flight, overruns {}, {:.1} calls/s, {:.1} s (utilisation from the enqueue on: {:.3})",
            run.max_in_flight, run.overruns, self.calls_per_s, run.wall_s, self.utilisation_from_enqueue
        )?;
        lines(f, &self.targets)
    }
}

impl Limit {
    /// # Errors
    /// Where something is in the way of measuring; a cap that does not hold is a result.
    pub async fn run(&self) -> Result<Report, Error> {
        // A connection per call, at both ends.
        let files = getrlimit(Resource::Nofile);
        setrlimit(Resource::Nofile, Rlimit { current: files.maximum, ..files })?;
        let mut place = Place::open(&self.database).await?;
        let stub = stub::start(StubOptions { limit: Some(self.cap), ..StubOptions::default() }).await?;
        place.store().set_max("default", self.cap.into(), "loadtest").await?;
        let commit = place.commits().await?;

        let kept = self.bare(&stub, true).await?;
        let bare = self.bare(&stub, false).await?;
        stub.reset();

        // What the fleet costs by itself.
        let overhead = self.with_fleet(&mut place, &stub, 0).await?;
        let loaded = self.with_fleet(&mut place, &stub, self.tasks).await?;
        let seen = stub.summary();
        let run = self.as_seen(&seen)?;
        let per_task = loaded.transactions.zip(overhead.transactions);
        let per_task = per_task.map(|(loaded, overhead)| (loaded - overhead) as f64 / self.tasks as f64);
        let last = seen.log.iter().filter_map(|entry| entry.end_us).max().unwrap_or_default();
        let mut report = Report {
            of_bare: run.utilisation / bare.utilisation,
            bare_utilisation: bare.utilisation,
            bare_kept_utilisation: kept.utilisation,
            utilisation_from_enqueue: self.busy() / (f64::from(self.cap) * seconds(last - loaded.began)),
            gap_in_commits: (run.gap.p50_ms - bare.gap.p50_ms) / commit.p50_ms,
            bare_gap: bare.gap,
            commit,
            transactions_per_task: per_task,
            calls_per_s: self.tasks as f64 / run.wall_s,
            shares: loaded.shares,
            cpu_ms_per_call: loaded.used.cpu_s * 1000.0 / self.tasks as f64,
            peak_mib: loaded.used.peak_mib,
            run,
            targets: Vec::new(),
        };
        report.targets = self.goals(&report, place.dialect());
        if let Some(file) = &self.html {
            let title = format!("{} calls of {:?}, cap {}", self.tasks, self.call, self.cap);
            let page = Page::new(&title, &report).goals(&report.targets).calls(&seen, self.cap);
            let gaps = gaps(&seen.log, self.cap as usize);
            std::fs::write(file, page.histogram("From a free permit to the next call", &gaps).html())?;
        }
        Ok(report)
    }

    /// What is aimed at with the cap and the calls that other systems are measured by.
    fn goals(&self, report: &Report, dialect: Dialect) -> Vec<Goal> {
        let mut goals = Vec::new();
        if self.slots == 100 {
            goals.push(Goal::at_most("MiB resident with 100 slots busy", report.peak_mib, 25.0));
        }
        if self.cap != CAP {
            return goals;
        }
        let mariadb = dialect == Dialect::Mysql;
        let (utilisation, transactions) = match self.call.as_millis() {
            50 => (if mariadb { 0.96 } else { 0.985 }, 1.5),
            500 => (if mariadb { 0.99 } else { 0.998 }, 3.0),
            _ => return goals,
        };
        let (bare, commit) = (report.bare_gap.p50_ms, report.commit.p50_ms);
        let gap = bare + 1.5 * commit;
        let (fewest, most) = report.shares;
        goals.extend([
            Goal::at_least("utilisation over the bare loop's", report.of_bare, utilisation),
            Goal::at_most(
                "gap, median ms, against the bare loop's and 1.5 commits",
                report.run.gap.p50_ms,
                gap,
            ),
            Goal::at_most("gap, p99 ms, against 5 times that", report.run.gap.p99_ms, 5.0 * gap),
            Goal::at_most("calls in flight", report.run.max_in_flight.into(), self.cap.into()),
        ]);
        if let Some(per_task) = report.transactions_per_task {
            goals.push(Goal::at_most("transactions per task", per_task, transactions));
        }
        if self.tasks >= 1000 {
            goals.push(Goal::at_least("share of the consumer with the fewest calls", fewest, 0.5));
            goals.push(Goal::at_most("share of the consumer with the most calls", most, 2.0));
        }
        goals
    }

    fn busy(&self) -> f64 {
        self.call.as_secs_f64() * self.tasks as f64
    }

    fn as_seen(&self, seen: &Summary) -> Result<Run, Error> {
        if seen.log.len() != self.tasks {
            return Err(format!("{} calls for {} tasks", seen.log.len(), self.tasks).into());
        }
        let first = seen.log.iter().map(|entry| entry.start_us).min().unwrap_or_default();
        let last = seen.log.iter().filter_map(|entry| entry.end_us).max().unwrap_or_default();
        let wall_s = seconds(last - first);
        Ok(Run {
            utilisation: self.busy() / (f64::from(self.cap) * wall_s),
            wall_s,
            gap: Spread::of(gaps(&seen.log, self.cap as usize)),
            max_in_flight: seen.max_in_flight,
            overruns: seen.overruns,
        })
    }

    async fn with_fleet(&self, place: &mut Place, stub: &Stub, tasks: usize) -> Result<Loaded, Error> {
        let before = place.transactions().await?;
        let slots = self.slots.to_string();
        let args = ["run", "--while-stdin", "--slots", &slots];
        let config = format!("[downstream.default]\nurl = \"{}\"\n", stub.url());
        let fleet = Fleet::start(&self.program, place, self.consumers, &args, &config).await?;
        // Asleep, as a fleet is before work comes.
        sleep(Duration::from_secs(1)).await;
        let began = stub.now_us();
        let payload = json!({"ms": u64::try_from(self.call.as_millis())?}).to_string();
        let mut store = place.store();
        if tasks > 0 {
            store.enqueue(&vec![NewTask::new("call", payload); tasks]).await?;
        }
        let deadline = Instant::now() + Duration::from_secs_f64(60.0 + 3.0 * self.busy());
        while stub.summary().succeeded < tasks as u64 {
            if Instant::now() > deadline {
                return Err(format!("only {} of {tasks} calls have ended", stub.summary().succeeded).into());
            }
            sleep(Duration::from_millis(20)).await;
        }
        let used = fleet.used()?;
        fleet.stop().await?;
        let shares = "SELECT count(*) FROM permitq_attempt GROUP BY consumer ORDER BY 1";
        let shares = place.numbers(shares).await?;
        let fewest = if shares.len() < self.consumers { 0 } else { shares.first().copied().unwrap_or(0) };
        let most = shares.last().copied().unwrap_or(0);
        let share = |calls: i64| calls as f64 * self.consumers as f64 / tasks.max(1) as f64;
        let transactions = place.transactions().await?.zip(before).map(|(now, before)| now - before);
        Ok(Loaded { began, transactions, shares: (share(fewest), share(most)), used })
    }

    /// The physical limit of this run: as many clients as permits, and nothing between them and the stub.
    async fn bare(&self, stub: &Stub, keep: bool) -> Result<Run, Error> {
        stub.reset();
        let mut clients = JoinSet::new();
        for client in 0..self.cap as usize {
            let (addr, call) = (stub.addr, self.call);
            let calls = (self.tasks + self.cap as usize - 1 - client) / self.cap as usize;
            clients.spawn(async move {
                let mut connection = None;
                for _ in 0..calls {
                    let mut stream = if let Some(stream) = connection.take() {
                        stream
                    } else {
                        let stream = TcpStream::connect(addr).await?;
                        stream.set_nodelay(true)?;
                        stream
                    };
                    request(&mut stream, call).await?;
                    connection = keep.then_some(stream);
                }
                Ok::<_, Error>(())
            });
        }
        while let Some(done) = clients.join_next().await {
            done??;
        }
        self.as_seen(&stub.summary())
    }
}

/// What a run with a fleet left.
struct Loaded {
    /// When the enqueuer began, in the stub's time.
    began: u64,
    transactions: Option<i64>,
    /// The smallest and the largest.
    shares: (f64, f64),
    used: Used,
}

/// One call, by hand: what a client library adds is permitq's to answer for.
async fn request(stream: &mut TcpStream, call: Duration) -> Result<(), Error> {
    let body = json!({"ms": u64::try_from(call.as_millis())?}).to_string();
    let head = format!("POST /call HTTP/1.1\r\nHost: stub\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    stream.write_all(head.as_bytes()).await?;
    let mut answer = Vec::new();
    loop {
        let mut part = [0; 1024];
        let n = stream.read(&mut part).await?;
        if n == 0 {
            return Err("the stub hung up".into());
        }
        answer.extend_from_slice(&part[..n]);
        let text = String::from_utf8_lossy(&answer).to_ascii_lowercase();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            if body.len() >= length.ok_or("no Content-Length")?.trim().parse()? {
                return Ok(());
            }
        }
    }
}

/// From each freed permit to the call that took it: every start takes the permit that has been free for longest. The first
/// starts take permits that nobody has used yet.
fn gaps(log: &[Entry], cap: usize) -> Vec<u64> {
    let mut moments = BTreeMap::<u64, (usize, usize)>::new();
    for entry in log {
        moments.entry(entry.start_us).or_default().1 += 1;
        if let Some(end) = entry.end_us {
            moments.entry(end).or_default().0 += 1;
        }
    }
    let (mut free, mut fresh, mut gaps) = (VecDeque::new(), cap, Vec::new());
    for (at, (ends, starts)) in moments {
        free.extend(std::iter::repeat_n(at, ends));
        for _ in 0..starts {
            if fresh > 0 {
                fresh -= 1;
            } else if let Some(since) = free.pop_front() {
                gaps.push(at - since);
            }
        }
    }
    gaps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_is_from_the_oldest_free_permit_to_the_next_start() {
        let call = |start, end| {
            let mut entry = Entry::default();
            (entry.start_us, entry.end_us) = (start, Some(end));
            entry
        };
        let log = [call(0, 100), call(10, 90), call(95, 200), call(100, 210), call(205, 300)];
        assert_eq!(gaps(&log, 2), [5, 0, 5]);
    }
}
