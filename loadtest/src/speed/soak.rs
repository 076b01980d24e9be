//! `soak`: a fleet under steady load with failures and retries, for long. What grows? Memory, connections, the database, its
//! log, the wait of a due task.
//!
//! The rule: the first third of the time is for warming up; then the median of the last third may be above that of the middle
//! third by a tenth (a quarter where the figure jumps by nature), or by a fixed amount that is noise. The database may grow
//! with what it keeps, so its size is taken per task.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use permitq::downstream::stub::{self, Stub, StubOptions};
use permitq::model::NewTask;
use permitq::store::Dialect;
use serde::Serialize;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};

use super::fleet::Fleet;
use super::goal::{Goal, lines};
use super::picture::Page;
use super::stats::Spread;
use super::{CAP, CONSUMERS, Error, Place, Program, Target};

/// What is measured.
#[derive(Clone, Debug)]
pub struct Soak {
    /// Where.
    pub database: Target,
    /// For how long.
    pub time: Duration,
    /// Tasks a second.
    pub rate: usize,
    /// Where the report with its pictures goes.
    pub html: Option<PathBuf>,
    /// How to start consumers.
    pub program: Program,
}

/// How it stood at one moment.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Sample {
    /// Seconds since the start.
    pub at_s: f64,
    /// Tasks that have come to their end so far.
    pub ended: i64,
    /// The largest consumer's resident set, in MiB.
    pub rss_mib: f64,
    /// Open files of the consumer with the most, connections among them.
    pub files: usize,
    /// Sessions of all consumers at the server.
    pub sessions: i64,
    /// KiB of the database (on SQLite with its log), per task that has ended.
    pub kib_per_task: f64,
    /// What the database has to tidy up: dead rows (PostgreSQL), old versions (MariaDB), free pages (SQLite).
    pub dead: i64,
    /// KiB of log written since the sample before, per task (not on SQLite, whose log is part of the database's size).
    pub log_kib_per_task: f64,
    /// From the instant at which tasks were due to their claims, since the sample before.
    pub wait: Spread,
}

/// What was measured.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Whether nothing grew.
    pub flat: bool,
    /// The most calls at once.
    pub max_in_flight: u32,
    /// Calls above the cap.
    pub overruns: u64,
    /// Tasks that have no end after all.
    pub lost: i64,
    /// Tasks that succeeded.
    pub succeeded: i64,
    /// Tasks that failed, as they were told to.
    pub failed: i64,
    /// Attempts.
    pub calls: u64,
    /// What may not grow.
    pub targets: Vec<Goal>,
    /// How it stood, from moment to moment.
    pub samples: Vec<Sample>,
}

impl Report {
    /// Whether all was as promised; what grows is a figure.
    pub fn holds(&self) -> bool {
        self.overruns == 0 && self.max_in_flight <= CAP && self.lost == 0
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { succeeded, failed, lost, calls, .. } = self;
        writeln!(f, "{succeeded} tasks succeeded, {failed} failed, {lost} lost, in {calls} calls")?;
        writeln!(f, "at most {} in flight, overruns {}", self.max_in_flight, self.overruns)?;
        write!(f, "{}", if self.flat { "flat: nothing grew" } else { "not flat" })?;
        lines(f, &self.targets)
    }
}

/// Most calls are short, one in ten fails once and is repeated, some fail for good, and some are cut off in the middle.
fn payload(number: usize) -> &'static str {
    match number % 100 {
        0 => r#"{"ms": 20, "fault": "cut", "fault_attempts": 1}"#,
        1 | 2 => r#"{"ms": 20, "status": 400}"#,
        3..=12 => r#"{"ms": 20, "status": 500, "fault_attempts": 1}"#,
        _ => r#"{"ms": 40}"#,
    }
}

/// Times a second that tasks are enqueued.
const BATCHES: usize = 4;

impl Soak {
    /// # Errors
    /// Where something is in the way of measuring; a promise that does not hold is a result.
    pub async fn run(&self) -> Result<Report, Error> {
        let mut place = Place::open(&self.database).await?;
        let options = StubOptions { limit: Some(CAP), log_max: 1, ..StubOptions::default() };
        let stub = stub::start(options).await?;
        let config = format!(
            "[lease]\nduration = \"20s\"\nheartbeat = \"2s\"\nreclaim = \"1s\"\n[retry]\nbackoff = \"1s\"\n\
             [database]\nclock_slack = \"0s\"\n\
             [downstream.default]\nurl = \"{}\"\ncall_timeout = \"2s\"\nread_timeout = \"1s\"\nstart_window = \"1s\"\n\
             connect_timeout = \"1s\"\ntcp_user_timeout = \"1s\"\n",
            stub.url()
        );
        let args = ["run", "--while-stdin", "--slots", "2"];
        let fleet = Fleet::start(&self.program, &mut place, CONSUMERS, &args, &config).await?;
        let samples = self.load(&mut place, &fleet).await?;
        Self::wait_for_the_rest(&mut place).await?;
        fleet.stop().await?;
        let report = Self::report(&mut place, &stub, samples).await?;
        if let Some(file) = &self.html {
            std::fs::write(file, page(&format!("{:?} of {} tasks a second", self.time, self.rate), &report))?;
        }
        Ok(report)
    }

    /// Steadily, and a sample now and then.
    async fn load(&self, place: &mut Place, fleet: &Fleet) -> Result<Vec<Sample>, Error> {
        let (began, pause) = (Instant::now(), self.time.div_f64(240.0).max(Duration::from_millis(250)));
        let mut tick = interval(Duration::from_secs(1) / u32::try_from(BATCHES)?);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut store, mut enqueued) = (place.store(), 0);
        let mut probe = Probe::new(place).await?;
        let mut next = began + pause;
        while began.elapsed() < self.time {
            tick.tick().await;
            // What is due by now, so that the rate holds even if this loop is late.
            let due = began.elapsed().as_secs_f64() * self.rate as f64;
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count")]
            let due = due as usize;
            let batch: Vec<_> = (enqueued..due).map(|n| NewTask::new("call", payload(n))).collect();
            enqueued = due;
            store.enqueue(&batch).await?;
            if Instant::now() >= next {
                next += pause;
                probe.take(place, fleet, began.elapsed()).await?;
            }
        }
        Ok(probe.samples)
    }

    async fn wait_for_the_rest(place: &mut Place) -> Result<(), Error> {
        let deadline = Instant::now() + Duration::from_mins(2);
        let left =
            "SELECT count(*) FROM permitq_task WHERE state NOT IN ('succeeded', 'failed', 'cancelled')";
        while place.number(left).await? > 0 && Instant::now() < deadline {
            sleep(Duration::from_millis(100)).await;
        }
        Ok(())
    }

    async fn report(place: &mut Place, stub: &Stub, samples: Vec<Sample>) -> Result<Report, Error> {
        let seen = stub.summary();
        let mut count = async |states: &str| {
            place.number(&format!("SELECT count(*) FROM permitq_task WHERE state {states}")).await
        };
        let targets = goals(&samples);
        Ok(Report {
            flat: targets.iter().all(|goal| goal.ok),
            max_in_flight: seen.max_in_flight,
            overruns: seen.overruns,
            lost: count("NOT IN ('succeeded', 'failed')").await?,
            succeeded: count("= 'succeeded'").await?,
            failed: count("= 'failed'").await?,
            calls: seen.calls,
            targets,
            samples,
        })
    }
}

/// Reads how it stands.
struct Probe {
    samples: Vec<Sample>,
    /// The last task that a sample has seen.
    last: i64,
    /// Bytes of log at the last sample.
    log: i64,
}

impl Probe {
    async fn new(place: &mut Place) -> Result<Self, Error> {
        Ok(Self { samples: Vec::new(), last: 0, log: place.log_bytes().await? })
    }

    async fn take(&mut self, place: &mut Place, fleet: &Fleet, at: Duration) -> Result<(), Error> {
        let sizes = fleet.sizes()?;
        let ended = "SELECT count(*) FROM permitq_task WHERE state IN ('succeeded', 'failed', 'cancelled')";
        let ended = place.number(ended).await?;
        let before = self.samples.last().map_or(0, |sample| sample.ended);
        let log = place.log_bytes().await?;
        let wait = format!("{} - {}", place.micros("started_at"), place.micros("run_at"));
        let seen = format!("FROM permitq_task WHERE id > {} AND claim_no = 1", self.last);
        let waits = place.numbers(&format!("SELECT {wait} {seen} AND state = 'succeeded'")).await?;
        self.last = place.number(&format!("SELECT coalesce(max(id), {}) {seen}", self.last)).await?;
        let kib = |bytes: i64, tasks: i64| bytes as f64 / 1024.0 / tasks.max(1) as f64;
        self.samples.push(Sample {
            at_s: at.as_secs_f64(),
            ended,
            rss_mib: sizes.iter().map(|(rss, _)| *rss).fold(0.0, f64::max),
            files: sizes.iter().map(|(_, files)| *files).max().unwrap_or_default(),
            sessions: place.sessions().await?,
            kib_per_task: kib(place.bytes().await?, ended),
            dead: place.dead().await?,
            log_kib_per_task: kib(log - self.log, ended - before),
            wait: Spread::of(waits.iter().map(|wait| u64::try_from(*wait).unwrap_or(0)).collect()),
        });
        self.log = log;
        Ok(())
    }
}

impl Place {
    /// Of the database, on the disk.
    async fn bytes(&mut self) -> Result<i64, Error> {
        match self.dialect() {
            Dialect::Sqlite => {
                let bytes = |file| std::fs::metadata(file).map_or(0, |file| file.len());
                Ok(i64::try_from(self.files().into_iter().map(bytes).sum::<u64>())?)
            }
            Dialect::Postgres => self.number("SELECT pg_database_size(current_database())").await,
            Dialect::Mysql => {
                self.number(
                    "SELECT CAST(sum(data_length + index_length) AS SIGNED) FROM information_schema.tables
                      WHERE table_schema = database()",
                )
                .await
            }
        }
    }

    /// What waits to be tidied up.
    async fn dead(&mut self) -> Result<i64, Error> {
        self.number(match self.dialect() {
            Dialect::Sqlite => "PRAGMA freelist_count",
            Dialect::Postgres => {
                "SELECT CAST(coalesce(sum(n_dead_tup), 0) AS bigint) FROM pg_stat_user_tables"
            }
            Dialect::Mysql => {
                "SELECT CAST(variable_value AS SIGNED) FROM information_schema.global_status
                  WHERE variable_name = 'INNODB_HISTORY_LIST_LENGTH'"
            }
        })
        .await
    }

    /// Of log, written so far.
    async fn log_bytes(&mut self) -> Result<i64, Error> {
        self.number(match self.dialect() {
            Dialect::Sqlite => return Ok(0),
            Dialect::Postgres => "SELECT CAST(pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0') AS bigint)",
            Dialect::Mysql => {
                "SELECT CAST(variable_value AS SIGNED) FROM information_schema.global_status
                  WHERE variable_name = 'INNODB_OS_LOG_WRITTEN'"
            }
        })
        .await
    }
}

/// What may not grow.
fn goals(samples: &[Sample]) -> Vec<Goal> {
    let third = samples.len() / 3;
    let goal = |name: &str, of: fn(&Sample) -> f64, share: f64, noise: f64| {
        let (middle, last) =
            (median(&samples[third..2 * third], of), median(&samples[samples.len() - third..], of));
        Goal::at_most(name, last, (middle * (1.0 + share)).max(middle + noise))
    };
    vec![
        goal("MiB resident of a consumer", |s| s.rss_mib, 0.1, 1.0),
        goal("open files of a consumer", |s| s.files as f64, 0.1, 1.0),
        goal("sessions of the fleet", |s| s.sessions as f64, 0.0, 0.0),
        goal("KiB of database per task", |s| s.kib_per_task, 0.1, 0.0),
        goal("rows to tidy up", |s| s.dead as f64, 0.25, 2000.0),
        goal("KiB of log per task", |s| s.log_kib_per_task, 0.25, 1.0),
        goal("wait of a due task, median ms", |s| s.wait.p50_ms, 0.25, 1.0),
    ]
}

fn median(samples: &[Sample], of: fn(&Sample) -> f64) -> f64 {
    let mut values: Vec<f64> = samples.iter().map(of).collect();
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

fn page(title: &str, report: &Report) -> String {
    let line = |of: &dyn Fn(&Sample) -> f64| -> Vec<(f64, f64)> {
        report.samples.iter().map(|sample| (sample.at_s, of(sample))).collect()
    };
    let mut rates = Vec::new();
    for pair in report.samples.windows(2) {
        let tasks = (pair[1].ended - pair[0].ended) as f64;
        rates.push((pair[1].at_s, tasks / (pair[1].at_s - pair[0].at_s)));
    }
    Page::new(title, report)
        .line("Tasks ended", "a second", &rates, None)
        .line("Wait of a due task, median", "ms", &line(&|s| s.wait.p50_ms), None)
        .line("Wait of a due task, p99", "ms", &line(&|s| s.wait.p99_ms), None)
        .line("The largest consumer", "MiB resident", &line(&|s| s.rss_mib), None)
        .line("Open files of a consumer", "files", &line(&|s| s.files as f64), None)
        .line("The database", "KiB per task", &line(&|s| s.kib_per_task), None)
        .line("To be tidied up", "rows", &line(&|s| s.dead as f64), None)
        .line("Log written", "KiB per task", &line(&|s| s.log_kib_per_task), None)
        .html()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(rss_mib: impl Fn(f64) -> f64) -> Vec<Sample> {
        let sample = |n| Sample {
            at_s: n,
            ended: 100,
            rss_mib: rss_mib(n),
            files: 20,
            sessions: 16,
            kib_per_task: 1.0,
            dead: 0,
            log_kib_per_task: 2.0,
            wait: Spread::default(),
        };
        (0..90).map(|n| sample(f64::from(n))).collect()
    }

    #[test]
    fn what_grows_after_warming_up_is_not_flat() {
        let flat = |samples: &[Sample]| goals(samples).iter().all(|goal| goal.ok);
        assert!(flat(&samples(|n| if n < 30.0 { n } else { 30.0 })), "warming up is no growth");
        assert!(flat(&samples(|n| 30.0 + n % 2.0)), "noise is no growth");
        assert!(!flat(&samples(|n| 10.0 + n * 0.1)), "a leak");
        assert!(flat(&[]));
    }
}
