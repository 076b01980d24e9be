//! Private, throwaway database servers: real PostgreSQL and MariaDB on 127.0.0.1, gone when the test is.
//!
//! Most tests share [`postgres()`] and [`mariadb()`], and take a [database](Server::database) of their own. A test that
//! hurts its server starts its own. What hurts takes `&mut self`, so a shared server refuses it when compiling.
//!
//! ```text
//! test process ──spawns──▶ server           every process of it works in HOME/data
//!      └──pipe──▶ janitor (sh)              at end of file: kills whoever works in HOME/data, removes HOME
//! ```
//!
//! The pipe closes however the test process ends: by a `Server` dropped, by exit (statics are never dropped), or by
//! kill -9.
//!
//! All calls block, with deadlines. Where tasks of the test must go on meanwhile, use a multi-threaded runtime.
//! `TMPDIR` tells where the files go; in memory (`/dev/shm`, 300 MB) PostgreSQL creates a database ten times as fast.
//!
//! A server that cannot be had panics, with its log: there is nothing to go on with, in a test as in a chaos run.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::missing_panics_doc)]

use std::fs::{self, File, Permissions};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{LazyLock, OnceLock};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use sqlx::any::install_default_drivers;
use sqlx::{AnyConnection, AssertSqlSafe, Connection};

use self::clock::Clock;
use self::install::Account;
pub use self::pooler::Pooler;
use crate::tls::Signed;

pub mod clock;
pub mod cluster;
mod install;
mod mariadb;
mod pooler;
mod postgres;
mod process;

/// Much longer than anything here takes, on a busy machine too.
pub const DEADLINE: Duration = Duration::from_mins(1);

/// Waits for a condition, and panics where it does not come.
pub fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let clock = permitq::clock::Clock::default();
    let start = clock.now();
    while !condition() {
        assert!(clock.now().since(start) < DEADLINE, "waited in vain for {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// The PostgreSQL server that all tests of this process share.
pub fn postgres() -> &'static Server {
    static SHARED: OnceLock<Server> = OnceLock::new();
    SHARED.get_or_init(|| Server::postgres(false))
}

/// The MariaDB server that all tests of this process share.
pub fn mariadb() -> &'static Server {
    static SHARED: OnceLock<Server> = OnceLock::new();
    SHARED.get_or_init(|| Server::mariadb(false))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Postgres,
    MariaDb,
}

/// A running server, or a stopped one that can be started again on the same port with the same data.
pub struct Server {
    kind: Kind,
    durable: bool,
    options: Vec<String>,
    clock: Option<Clock>,
    account: Account,
    home: PathBuf,
    port: u16,
    process: Option<Child>,
    janitor: Child,
}

impl Server {
    /// With `durable`, a commit is on the disk when it is acknowledged; without, it outlives the server, not the host.
    pub fn postgres(durable: bool) -> Self {
        Self::new(Kind::Postgres, durable, &[])
    }

    /// With `durable` as above. The character set is utf8mb4.
    pub fn mariadb(durable: bool) -> Self {
        Self::new(Kind::MariaDb, durable, &[])
    }

    /// With options added to its command line, as `--character-set-server=latin1`.
    pub fn mariadb_with(durable: bool, options: &[&str]) -> Self {
        Self::new(Kind::MariaDb, durable, options)
    }

    fn new(kind: Kind, durable: bool, options: &[&str]) -> Self {
        let mut server = Self::install(kind, durable, options, |account, home| match kind {
            Kind::Postgres => postgres::install(account, home),
            Kind::MariaDb => mariadb::install(account, home),
        });
        server.restart();
        server.create_user();
        server
    }

    /// A server that has its data, made by `command`, and was not started yet.
    fn install(
        kind: Kind,
        durable: bool,
        options: &[&str],
        command: impl FnOnce(Account, &Path) -> Command,
    ) -> Self {
        let home = tempfile::Builder::new().prefix("permitq-").tempdir().unwrap().keep();
        let janitor = process::janitor(&home);
        let account = Account::of(match kind {
            Kind::Postgres => postgres::USER,
            Kind::MariaDb => mariadb::USER,
        });
        fs::create_dir(home.join("data")).unwrap();
        // PostgreSQL insists on it.
        fs::set_permissions(home.join("data"), Permissions::from_mode(0o700)).unwrap();
        account.give(&home);
        account.give(&home.join("data"));
        let options = options.iter().map(ToString::to_string).collect();
        let port = free_port();
        let server =
            Self { kind, durable, options, clock: None, account, home, port, process: None, janitor };
        let status = server.at_home(&mut command(account, &server.home)).status().unwrap();
        assert!(status.success(), "{}", server.log());
        server
    }

    fn at_home<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        let log = File::options().create(true).append(true).open(self.home.join("log")).unwrap();
        // A MariaDB that starts removes the temporary tables it finds, those of a neighbour in /tmp too.
        command.env("TMPDIR", &self.home);
        command.current_dir(self.home.join("data")).process_group(0).stdin(Stdio::null());
        command.stdout(log.try_clone().unwrap()).stderr(log)
    }

    fn create_user(&self) {
        self.execute(match self.kind {
            Kind::Postgres => postgres::create_user(),
            Kind::MariaDb => mariadb::create_user(),
        });
    }

    /// Creates an empty database and tells its URL, for a user who may do all in it and nothing outside.
    pub fn database(&self, name: &str) -> String {
        let statements = match self.kind {
            Kind::Postgres => postgres::create_database(name),
            Kind::MariaDb => mariadb::create_database(name),
        };
        for statement in statements {
            self.execute(statement);
        }
        self.url(name)
    }

    fn url(&self, database: &str) -> String {
        match self.kind {
            Kind::Postgres => postgres::url(self.port, database),
            Kind::MariaDb => mariadb::url(self.port, database),
        }
    }

    /// The URL of the server's superuser.
    pub fn admin_url(&self) -> String {
        match self.kind {
            Kind::Postgres => postgres::admin_url(self.port),
            Kind::MariaDb => mariadb::admin_url(self.port),
        }
    }

    /// Executes one statement as the superuser, outside of a transaction.
    pub fn execute(&self, statement: impl Into<String>) {
        let statement = statement.into();
        if let Err(error) = self.rows(statement.clone()) {
            panic!("{statement}: {error}\n{}", self.log());
        }
    }

    /// Waits until the query has a row.
    fn wait_for(&self, query: &str) {
        until(query, || self.rows(query.to_owned()).is_ok_and(|rows| rows > 0));
    }

    /// On a thread and runtime of its own, so that tests with and without a runtime can call it.
    fn rows(&self, statement: String) -> Result<usize, sqlx::Error> {
        install_default_drivers();
        let work = async {
            let mut connection = AnyConnection::connect(&self.admin_url()).await?;
            let rows = sqlx::raw_sql(AssertSqlSafe(statement)).fetch_all(&mut connection).await?;
            connection.close().await?;
            Ok(rows.len())
        };
        let run = || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime
                .block_on(async { tokio::time::timeout(DEADLINE, work).await.map_err(std::io::Error::from)? })
        };
        thread::scope(|scope| scope.spawn(run).join().unwrap())
    }

    /// Whether new transactions may write, in connections that are open already too.
    pub fn set_read_only(&mut self, on: bool) {
        match self.kind {
            Kind::Postgres => self.set("default_transaction_read_only", if on { "on" } else { "off" }),
            Kind::MariaDb => self.execute(mariadb::set_read_only(on)),
        }
    }

    /// Starts again with these options more on its command line, for good.
    pub fn add_options(&mut self, options: &[&str]) {
        self.options.extend(options.iter().map(ToString::to_string));
        self.restart();
    }

    /// Starts again with a wall clock of its own, which can be stepped.
    pub fn add_clock(&mut self) {
        self.clock = Some(Clock::new(self.home.join("clock")));
        self.restart();
    }

    /// The clock of its own.
    pub fn clock(&self) -> Option<&Clock> {
        self.clock.as_ref()
    }

    /// Steps the clock to so many milliseconds ahead (+) of the host's, or behind (-).
    pub fn set_clock(&mut self, ahead_ms: i64) {
        self.clock.as_ref().expect("a clock of its own").set(ahead_ms);
    }

    /// Starts again with this certificate.
    pub fn certify(&mut self, signed: &Signed) {
        for (from, name) in [(&signed.certificate, "server.crt"), (&signed.key, "server.key")] {
            let file = self.home.join("data").join(name);
            fs::copy(from, &file).unwrap();
            // PostgreSQL insists on it.
            fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
            self.account.give(&file);
        }
        match self.kind {
            Kind::Postgres => self.add_options(&["-c", "ssl=on"]),
            Kind::MariaDb => self.add_options(&["--ssl-cert=server.crt", "--ssl-key=server.key"]),
        }
    }

    /// Whom PostgreSQL lets in, from now on.
    pub fn set_hba(&mut self, rules: &str) {
        fs::write(self.home.join("data/pg_hba.conf"), rules).unwrap();
        // Not by asking it to reload: it would answer before it has done so.
        self.restart();
    }

    /// Changes a setting of PostgreSQL. A connection that sees it was made after all older ones had been told.
    fn set(&self, setting: &str, value: &str) {
        self.execute(format!("alter system set {setting} = '{value}'"));
        self.execute("select pg_reload_conf()");
        self.wait_for(&format!("select 1 where current_setting('{setting}') = '{value}'"));
    }

    /// The server's main process.
    pub fn pid(&self) -> Pid {
        Pid::from_child(self.process.as_ref().expect("the server is stopped"))
    }

    /// Its folder: data, socket and log.
    pub fn home(&self) -> &Path {
        &self.home
    }

    fn log(&self) -> String {
        fs::read_to_string(self.home.join("log")).unwrap_or_default()
    }

    /// Shuts down in order; open connections are ended.
    pub fn stop(&mut self) {
        let signal = match self.kind {
            Kind::Postgres => Signal::INT, // "fast"; TERM would wait for clients to leave
            Kind::MariaDb => Signal::TERM,
        };
        kill_process(self.pid(), signal).unwrap();
        self.wait_for_end();
    }

    /// Kills all its processes at once, frozen ones too.
    pub fn kill9(&mut self) {
        self.signal(Signal::KILL);
        self.wait_for_end();
    }

    fn wait_for_end(&mut self) {
        if let Some(mut process) = self.process.take() {
            until("the server's end", || {
                process.try_wait().unwrap().is_some() && self.processes().is_empty()
            });
        }
    }

    /// Starts a stopped or killed server again, and stops a running one before.
    pub fn restart(&mut self) {
        if self.process.is_some() {
            self.stop();
        }
        self.start(&[]);
    }

    /// `options` are for this start only.
    fn start(&mut self, options: &[&str]) {
        let mut command = match self.kind {
            Kind::Postgres => postgres::start(self.account, &self.home, self.port, self.durable),
            Kind::MariaDb => mariadb::start(self.account, &self.home, self.port, self.durable),
        };
        command.args(&self.options).args(options);
        if let Some(clock) = &self.clock {
            command.envs(clock.environment());
        }
        self.process = Some(self.at_home(&mut command).spawn().unwrap());
        until("the server's start", || {
            let process = self.process.as_mut().and_then(|process| process.try_wait().unwrap());
            assert!(process.is_none(), "the server ended when starting:\n{}", self.log());
            self.rows("select 1".to_owned()).is_ok()
        });
    }

    /// Stops time for the server: the kernel still accepts and acknowledges for it, and nothing answers.
    pub fn freeze(&mut self) {
        self.signal(Signal::STOP);
        until("the freeze", || self.processes().into_iter().all(process::is_stopped));
    }

    /// Ends [`Server::freeze`].
    pub fn thaw(&mut self) {
        self.signal(Signal::CONT);
    }

    /// The main process first, so that it cannot start others meanwhile.
    fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).unwrap();
        for pid in self.processes() {
            // It may have ended since it was listed.
            let _ = kill_process(pid, signal);
        }
    }

    fn processes(&self) -> Vec<Pid> {
        process::working_in(&self.home.join("data"))
    }
}

impl Drop for Server {
    /// Waits for the janitor, so that nothing is left when the test has ended.
    fn drop(&mut self) {
        drop(self.janitor.stdin.take());
        let _ = self.janitor.wait();
        if let Some(process) = &mut self.process {
            let _ = process.wait();
        }
    }
}

/// A port below those that the kernel gives to clients (32768 and up): one of those could be taken while its server is
/// down, even by the client that tries to reconnect to it. Never the same twice in this process.
fn free_port() -> u16 {
    static NEXT: LazyLock<AtomicU16> = LazyLock::new(|| AtomicU16::new(fastrand::u16(10_000..30_000)));
    std::iter::repeat_with(|| NEXT.fetch_add(1, Ordering::Relaxed))
        .take(2_000)
        .find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok())
        .expect("a free port")
}
