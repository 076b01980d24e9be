//! A place where permitq runs as in production, in scaled time: a database, a stub downstream that counts, a
//! configuration file, and consumers as processes that can be killed, frozen and told to stop.

use std::cell::Cell;
use std::fs::File;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use loadtest::proxy::Proxy;
use permitq::downstream::stub::{self, Stub, StubOptions};
use permitq::model::{NewTask, State};
use permitq::store::Peak;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

use super::Db;

/// A permit whose call nobody saw end is held at most so long: 1 s + 0.5 s + 0.5 s + 2 s.
pub(crate) const HOLD: Duration = Duration::from_secs(4);
/// Settings that make it less: 0.5 s + 0.25 s + 0.25 s + 1 s, and calls of at most a second.
pub(crate) const BRIEF: [(&str, &str); 4] = [
    ("PERMITQ_DOWNSTREAM__DEFAULT__START_WINDOW", "500ms"),
    ("PERMITQ_DOWNSTREAM__DEFAULT__CONNECT_TIMEOUT", "250ms"),
    ("PERMITQ_DOWNSTREAM__DEFAULT__TCP_USER_TIMEOUT", "250ms"),
    ("PERMITQ_DOWNSTREAM__DEFAULT__CALL_TIMEOUT", "1s"),
];
/// Nothing in a test takes longer; what does has failed.
const PATIENCE: Duration = Duration::from_mins(1);

/// Database, downstream and configuration.
pub(crate) struct Site {
    pub(crate) db: Db,
    pub(crate) stub: Stub,
    folder: TempDir,
}

impl Site {
    /// With a cap of `max`, which the downstream bears and no more.
    pub(crate) async fn new(db: Db, max: u32) -> Self {
        Self::with(db, StubOptions { limit: Some(max), ..StubOptions::default() }, "").await
    }

    /// `more` is added to the downstream's section of the configuration.
    pub(crate) async fn with(db: Db, stub: StubOptions, more: &str) -> Self {
        db.set_max(stub.limit.unwrap_or(4).into()).await;
        let stub = stub::start(stub).await.unwrap();
        let folder = TempDir::new().unwrap();
        let config = format!(
            "[database]\nurl = {:?}\nstatement_timeout = \"2s\"\nclock_slack = \"0s\"\n\
             [consumer]\npoll = \"200ms\"\n\
             [lease]\nduration = \"2s\"\nheartbeat = \"250ms\"\nreclaim = \"250ms\"\n\
             [retry]\nbackoff = \"100ms\"\n\
             [shutdown]\ngrace = \"1m\"\n\
             [downstream.default]\nurl = {:?}\ncall_timeout = \"2s\"\nconnect_timeout = \"500ms\"\n\
             tcp_user_timeout = \"500ms\"\nstart_window = \"1s\"\n{more}\n",
            db.url(),
            stub.url(),
        );
        std::fs::write(folder.path().join("permitq.toml"), config).unwrap();
        Self { db, stub, folder }
    }

    /// The same place, after its server was restarted: with new connections for the test itself.
    pub(crate) async fn reopened(mut self) -> Self {
        self.db.reopen().await;
        self
    }

    /// `permitq ARGS` in this place.
    pub(crate) fn permitq(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_permitq"));
        command.args(args).current_dir(self.folder.path()).env_clear().stdin(Stdio::null());
        command
    }

    /// A consumer of its own.
    pub(crate) fn consumer(&self, name: &str) -> Member {
        self.start(&["run", "--name", name])
    }

    /// A fault proxy in front of the database server.
    pub(crate) async fn proxy(&self) -> Proxy {
        let url = self.db.url();
        let server = url.rsplit_once('@').and_then(|(_, place)| place.split_once('/')).unwrap().0;
        Proxy::start(server.parse().unwrap()).await.unwrap()
    }

    /// A consumer that reaches the database through this proxy.
    pub(crate) fn behind(&self, proxy: &Proxy, name: &str, settings: &[(&str, &str)]) -> Member {
        let url = proxy.url(self.db.url());
        let settings = [settings, &[("PERMITQ_DATABASE__URL", &url)]].concat();
        self.start_with(&["run", "--name", name], &settings)
    }

    /// Any command that goes on running.
    pub(crate) fn start(&self, args: &[&str]) -> Member {
        self.start_with(args, &[])
    }

    /// With other settings than this place's.
    pub(crate) fn start_with(&self, args: &[&str], settings: &[(&str, &str)]) -> Member {
        self.spawn(args, settings, Stdio::inherit())
    }

    /// The same, with a file for its log.
    pub(crate) fn start_logged(&self, args: &[&str], settings: &[(&str, &str)], log: File) -> Member {
        self.spawn(args, settings, log.into())
    }

    fn spawn(&self, args: &[&str], settings: &[(&str, &str)], log: Stdio) -> Member {
        let mut command = self.permitq(args);
        if args[0] == "run" {
            // It ends with this process, however that ends.
            command.arg("--while-stdin").stdin(Stdio::piped());
        }
        command.envs(settings.iter().copied()).stdout(Stdio::null()).stderr(log);
        Member(command.spawn().unwrap())
    }

    /// A consumer that tries these hosts of the database in this order. What it says is kept: see [`Site::said`].
    #[allow(dead_code, reason = "tests/cluster uses it")]
    pub(crate) fn consumer_on(&self, name: &str, hosts: &[String]) -> Member {
        let log = File::create(self.folder.path().join(format!("{name}.log"))).unwrap();
        let mut command = self.permitq(&["run", "--name", name, "--slots", "2", "--while-stdin"]);
        command
            // A beat has a quarter of the lease for all hosts together.
            .env("PERMITQ_LEASE__DURATION", "6s")
            .env("PERMITQ_DATABASE_URL", hosts.join(","));
        Member(command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(log).spawn().unwrap())
    }

    /// How many lines of all logs have this text.
    #[allow(dead_code, reason = "tests/cluster uses it")]
    pub(crate) fn said(&self, text: &str) -> usize {
        self.logs().iter().map(|log| log.lines().filter(|line| line.contains(text)).count()).sum()
    }

    fn logs(&self) -> Vec<String> {
        let files = std::fs::read_dir(self.folder.path()).unwrap().map(|entry| entry.unwrap().path());
        let logs = files.filter(|file| file.extension().is_some_and(|end| end == "log"));
        logs.map(|log| std::fs::read_to_string(log).unwrap()).collect()
    }

    /// `n` tasks whose calls take so long.
    pub(crate) async fn enqueue(&self, n: usize, call: Duration) -> Vec<i64> {
        let payload = json!({"ms": u64::try_from(call.as_millis()).unwrap()}).to_string();
        let tasks = vec![NewTask::new("call", payload); n];
        self.db.store().enqueue(&tasks).await.unwrap().iter().map(|task| task.id).collect()
    }

    /// Waits until every task is final and every permit is back.
    pub(crate) async fn settled(&self) {
        until("every task is final and every permit back", async || {
            let states = self.db.store().states(None).await.unwrap();
            states.iter().all(|(state, _)| state.is_final()) && self.db.in_use().await == 0
        })
        .await;
        self.db.conservation().await;
    }

    /// Freezes them all, but not one that holds SQLite's write lock just then: it would hold up everybody until it wakes.
    pub(crate) async fn freeze(&self, members: &[&Member]) {
        let signal = |signal| {
            for member in members {
                member.signal(signal);
            }
        };
        loop {
            signal(Signal::STOP);
            until("all stopped", async || members.iter().all(|member| member.is_stopped())).await;
            if self.db.try_sql("UPDATE permitq_semaphore SET in_use = in_use").await.is_ok() {
                return;
            }
            signal(Signal::CONT);
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// Waits until so many calls are in flight downstream.
    pub(crate) async fn in_flight(&self, n: u32) {
        until(&format!("{n} calls in flight"), async || self.stub.summary().in_flight == n).await;
    }

    /// Waits until the task is in this state.
    pub(crate) async fn state(&self, task: i64, state: State) {
        until(&format!("task {task} {state}"), async || self.db.task(task).await.state == state).await;
    }

    /// Does this, while the books are looked at again and again: they balance in every sample.
    pub(crate) async fn watched<T>(&self, what: impl Future<Output = T>) -> T {
        let over = Cell::new(false);
        let done = async {
            let done = what.await;
            over.set(true);
            done
        };
        let watch = async {
            while !over.get() {
                self.db.conservation().await;
                sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::join!(done, watch).0
    }

    /// So many consumers are registered and not gone.
    pub(crate) async fn alive(&self, n: i64) {
        let count = "SELECT count(*) FROM permitq_consumer WHERE state = 'alive'";
        until(&format!("{n} alive"), async || self.db.int(count).await == n).await;
    }

    /// All is done, each task with one call, and nobody was declared gone but who took leave.
    pub(crate) async fn nothing_lost_or_doubled(&self, tasks: &[i64], max: u32) {
        self.settled().await;
        self.cap_held(max).await;
        for task in tasks {
            assert_eq!(self.db.task(*task).await.state, State::Succeeded);
        }
        assert_eq!(self.stub.summary().calls, u64::try_from(tasks.len()).unwrap(), "one call each");
        assert_eq!(self.abandoned().await, 0);
    }

    /// Attempts that were taken from their consumers.
    pub(crate) async fn abandoned(&self) -> i64 {
        self.db.int("SELECT count(*) FROM permitq_attempt WHERE outcome = 'abandoned'").await
    }

    /// The cap held, as the downstream and as the log have it.
    pub(crate) async fn cap_held(&self, max: u32) {
        let seen = self.stub.summary();
        assert_eq!((seen.overruns, seen.max_in_flight <= max), (0, true), "{seen:?}");
        let peak = self.db.store().peak("default", Peak::EVER).await.unwrap();
        assert_eq!((peak.overruns, peak.peak <= i64::from(max)), (0, true), "{peak:?}");
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.logs().join("\n"));
        }
    }
}

/// Waits for a condition; panics with its name where it does not come.
pub(crate) async fn until(what: &str, condition: impl AsyncFn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition().await {
        assert!(Instant::now() < deadline, "waited {PATIENCE:?} for: {what}");
        sleep(Duration::from_millis(10)).await;
    }
}

/// A process of ours. It is killed where the test ends before it.
pub(crate) struct Member(Child);

impl Member {
    pub(crate) fn pid(&self) -> u32 {
        self.0.id()
    }

    /// kill -9
    pub(crate) fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }

    /// Every thread of it: one in the middle of a system call stops when that is over.
    fn is_stopped(&self) -> bool {
        let threads = std::fs::read_dir(format!("/proc/{}/task", self.pid())).unwrap();
        threads.into_iter().all(|thread| {
            let stat = std::fs::read_to_string(thread.unwrap().path().join("stat")).unwrap_or_default();
            stat.rsplit_once(") ").is_none_or(|(_, state)| state.starts_with('T'))
        })
    }

    pub(crate) fn thaw(&self) {
        self.signal(Signal::CONT);
    }

    pub(crate) fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    pub(crate) fn interrupt(&self) {
        self.signal(Signal::INT);
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).unwrap();
    }

    /// Waits for its end and answers the exit code.
    pub(crate) async fn exit_code(&mut self) -> Option<i32> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.0.try_wait().unwrap() {
                return status.code();
            }
            assert!(Instant::now() < deadline, "process {} does not end", self.0.id());
            sleep(Duration::from_millis(10)).await;
        }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        let _ended = self.0.kill();
        let _ended = self.0.wait();
    }
}
