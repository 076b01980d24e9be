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
//! kill -9. A parent-death signal would not do: it fires when the *thread* that spawned ends, as each test's does. A
//! process is known by its working directory, because PostgreSQL's backends leave its process group.
//!
//! All calls block, with deadlines. Where tasks of the test must go on meanwhile, use a multi-threaded runtime.
//! `TMPDIR` tells where the files go; in memory (`/dev/shm`, 300 MB) PostgreSQL creates a database ten times as fast.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{LazyLock, OnceLock};
use std::time::Duration;
use std::{net::TcpListener, thread};

use permitq::clock::Clock;
use rustix::process::{Pid, Signal, kill_process};
use sqlx::any::install_default_drivers;
use sqlx::{AnyConnection, AssertSqlSafe, Connection};

use self::install::Account;

pub(crate) mod install;
mod mariadb;
mod postgres;

/// Much longer than a start takes, on a busy machine too.
const DEADLINE: Duration = Duration::from_mins(1);

/// The PostgreSQL server that all tests of this process share.
pub(crate) fn postgres() -> &'static Server {
    static SHARED: OnceLock<Server> = OnceLock::new();
    SHARED.get_or_init(|| Server::postgres(false))
}

/// The MariaDB server that all tests of this process share.
pub(crate) fn mariadb() -> &'static Server {
    static SHARED: OnceLock<Server> = OnceLock::new();
    SHARED.get_or_init(|| Server::mariadb(false))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Postgres,
    MariaDb,
}

/// A running server, or a stopped one that can be started again on the same port with the same data.
pub(crate) struct Server {
    kind: Kind,
    home: PathBuf,
    port: u16,
    start: Command,
    process: Option<Child>,
    janitor: Child,
}

impl Server {
    /// With `durable`, a commit is on the disk when it is acknowledged; without, it outlives the server, not the host.
    pub(crate) fn postgres(durable: bool) -> Self {
        Self::new(Kind::Postgres, durable, &[])
    }

    /// With `durable` as above. The character set is utf8mb4.
    pub(crate) fn mariadb(durable: bool) -> Self {
        Self::new(Kind::MariaDb, durable, &[])
    }

    /// With options added to its command line, as `--character-set-server=latin1`.
    pub(crate) fn mariadb_with(durable: bool, options: &[&str]) -> Self {
        Self::new(Kind::MariaDb, durable, options)
    }

    fn new(kind: Kind, durable: bool, options: &[&str]) -> Self {
        let home = tempfile::Builder::new().prefix("permitq-").tempdir().unwrap().keep();
        let janitor = janitor(&home);
        let account = Account::of(match kind {
            Kind::Postgres => postgres::USER,
            Kind::MariaDb => mariadb::USER,
        });
        fs::create_dir(home.join("data")).unwrap();
        account.give(&home);
        account.give(&home.join("data"));
        let port = free_port();
        let (mut install, mut start) = match kind {
            Kind::Postgres => {
                (postgres::install(account, &home), postgres::start(account, &home, port, durable))
            }
            Kind::MariaDb => {
                (mariadb::install(account, &home), mariadb::start(account, &home, port, durable))
            }
        };
        start.args(options);
        let log = File::create(home.join("log")).unwrap();
        for command in [&mut install, &mut start] {
            command.current_dir(home.join("data")).process_group(0).stdin(Stdio::null());
            command.stdout(log.try_clone().unwrap()).stderr(log.try_clone().unwrap());
        }
        let mut server = Self { kind, home, port, start, process: None, janitor };
        let installed = install.status().unwrap().success();
        assert!(installed, "{}", server.log());
        server.restart();
        server.execute(match kind {
            Kind::Postgres => postgres::create_user(),
            Kind::MariaDb => mariadb::create_user(),
        });
        server
    }

    /// Creates an empty database and tells its URL, for a user who may do all in it and nothing outside.
    pub(crate) fn database(&self, name: &str) -> String {
        let (create, url) = match self.kind {
            Kind::Postgres => (postgres::create_database(name), postgres::url(self.port, name)),
            Kind::MariaDb => (mariadb::create_database(name), mariadb::url(self.port, name)),
        };
        for statement in create {
            self.execute(statement);
        }
        url
    }

    /// The URL of the server's superuser.
    pub(crate) fn admin_url(&self) -> String {
        match self.kind {
            Kind::Postgres => postgres::admin_url(self.port),
            Kind::MariaDb => mariadb::admin_url(self.port),
        }
    }

    /// Executes one statement as the superuser, outside of a transaction.
    pub(crate) fn execute(&self, statement: impl Into<String>) {
        let statement = statement.into();
        self.try_execute(statement.clone())
            .unwrap_or_else(|error| panic!("{statement}: {error}\n{}", self.log()));
    }

    /// On a thread and runtime of its own, so that tests with and without a runtime can call it.
    fn try_execute(&self, statement: String) -> Result<(), sqlx::Error> {
        install_default_drivers();
        let work = async {
            let mut connection = AnyConnection::connect(&self.admin_url()).await?;
            sqlx::raw_sql(AssertSqlSafe(statement)).execute(&mut connection).await?;
            connection.close().await
        };
        let run = || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime
                .block_on(async { tokio::time::timeout(DEADLINE, work).await.map_err(std::io::Error::from)? })
        };
        thread::scope(|scope| scope.spawn(run).join().unwrap())
    }

    /// Whether new transactions may write.
    pub(crate) fn set_read_only(&mut self, on: bool) {
        let statements = match self.kind {
            Kind::Postgres => postgres::set_read_only(on),
            Kind::MariaDb => mariadb::set_read_only(on),
        };
        for statement in statements {
            self.execute(statement);
        }
    }

    /// The server's main process.
    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(self.process.as_ref().expect("the server is stopped"))
    }

    /// Its folder: data, socket and log.
    pub(crate) fn home(&self) -> &Path {
        &self.home
    }

    fn log(&self) -> String {
        fs::read_to_string(self.home.join("log")).unwrap_or_default()
    }

    /// Shuts down in order; open connections are ended.
    pub(crate) fn stop(&mut self) {
        let signal = match self.kind {
            Kind::Postgres => Signal::INT, // "fast"; TERM would wait for clients to leave
            Kind::MariaDb => Signal::TERM,
        };
        kill_process(self.pid(), signal).unwrap();
        self.wait_for_end();
    }

    /// Kills all its processes at once, frozen ones too.
    pub(crate) fn kill9(&mut self) {
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
    pub(crate) fn restart(&mut self) {
        if self.process.is_some() {
            self.stop();
        }
        self.process = Some(self.start.spawn().unwrap());
        until("the server's start", || {
            let process = self.process.as_mut().and_then(|process| process.try_wait().unwrap());
            assert!(process.is_none(), "the server ended when starting:\n{}", self.log());
            self.try_execute("select 1".to_owned()).is_ok()
        });
    }

    /// Stops time for the server: the kernel still accepts and acknowledges for it, and nothing answers.
    pub(crate) fn freeze(&mut self) {
        self.signal(Signal::STOP);
    }

    /// Ends [`Server::freeze`].
    pub(crate) fn thaw(&mut self) {
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
        let data = fs::metadata(self.home.join("data")).unwrap();
        let works_there = |process: &Path| {
            fs::metadata(process.join("cwd"))
                .is_ok_and(|cwd| (cwd.dev(), cwd.ino()) == (data.dev(), data.ino()))
        };
        fs::read_dir("/proc")
            .unwrap()
            .filter_map(|entry| {
                let process = entry.ok()?.path();
                let pid = Pid::from_raw(process.file_name()?.to_str()?.parse().ok()?)?;
                works_there(&process).then_some(pid)
            })
            .collect()
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

/// In a process group of its own, so that Ctrl-C at the tests does not end it.
fn janitor(home: &Path) -> Child {
    let script = r#"
        read -r end_of_file
        while :; do
            left=
            for process in /proc/[0-9]*; do
                if [ "$process/cwd" -ef "$1/data" ]; then
                    kill -KILL "${process#/proc/}"
                    left=yes
                fi
            done
            [ "$left" ] || break
            sleep 0.01
        done
        # PostgreSQL's System V segment outlives it; the seventh line tells its key and id.
        segment=$(sed -n '7s/.* //p' "$1/data/postmaster.pid")
        [ -z "$segment" ] || ipcrm -m "$segment"
        rm -rf "$1"
    "#;
    Command::new("sh")
        .args(["-c", script, "janitor"])
        .arg(home)
        .current_dir("/")
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
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

/// Waits for a condition, and fails the test where it does not come.
pub(crate) fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let clock = Clock::default();
    let start = clock.now();
    while !condition() {
        assert!(clock.now().since(start) < DEADLINE, "waited in vain for {what}");
        thread::sleep(Duration::from_millis(10));
    }
}
