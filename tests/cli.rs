//! The binary as a person or a script uses it: what it prints, where, and with which exit code.
//!
//! Each test has a folder of its own as working directory, and an environment with nothing in it but `USER`.

#![expect(clippy::unwrap_used, reason = "the helpers belong to the tests")]

mod after;
mod audit;
mod batch;
mod config;
mod doctor;
mod enqueue;
mod explain;
mod pause;
mod permits;
mod place;
mod prune;
mod readme;
mod refused;
mod schedule;
mod secrets;
mod task;
mod terminal;
mod tls;

use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use permitq::clock::Clock;
use permitq::model::{Claim, OnAbandon};
use permitq::store::{Database, Exchange, Policy, Registration, Store};
use serde_json::Value;
use tempfile::TempDir;

/// A folder to work in.
struct Bench(TempDir);

/// What a command said.
#[derive(Debug)]
struct Ran {
    code: Option<i32>,
    out: String,
    err: String,
}

impl Bench {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// With a database that has its schema.
    fn migrated() -> Self {
        let bench = Self::new();
        bench.run(&["migrate"]).ok();
        bench
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_permitq"));
        command.args(args).env_clear().env("USER", "tester").current_dir(self.0.path());
        command
    }

    fn start(&self, args: &[&str]) -> Child {
        self.command(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    fn run(&self, args: &[&str]) -> Ran {
        self.feed(args, "")
    }

    fn feed(&self, args: &[&str], input: &str) -> Ran {
        let mut child = self.start(args);
        // A command that refuses its options has ended before it reads.
        drop(child.stdin.take().unwrap().write_all(input.as_bytes()));
        Ran::of(child)
    }

    fn json(&self, args: &[&str]) -> Value {
        let ran = self.run(&[args, &["--json"]].concat());
        ran.value()
    }

    fn store(&self) -> Store {
        Database::new(&format!("sqlite://{}", self.path("permitq.db").display())).unwrap().store()
    }

    /// Statements of a hand at the table.
    async fn sql(&self, statements: &str) {
        use sqlx::Connection;
        self.store().clock().await.unwrap(); // the drivers are installed
        let url = format!("sqlite:{}", self.path("permitq.db").display());
        let mut conn = sqlx::AnyConnection::connect(&url).await.unwrap();
        sqlx::raw_sql(sqlx::AssertSqlSafe(statements)).execute(&mut conn).await.unwrap();
        conn.close().await.unwrap();
    }

    /// Claims tasks of this kind as consumer `c1` of host `h1`, process 7.
    async fn claim(&self, kind: &str, want: usize) -> Vec<Claim> {
        let mut store = self.store();
        store.register(&consumer()).await.unwrap();
        let policies = [Policy {
            kind: kind.to_owned(),
            hold: Duration::from_mins(10),
            max_attempts: 3,
            on_abandon: OnAbandon::RetryAfterCooling,
            downstream: "default".to_owned(),
        }];
        let exchange = Exchange {
            consumer: "c1",
            semaphore: "default",
            ended: &[],
            want,
            policies: &policies,
            sent: Clock::default().now(),
            probe: None,
        };
        store.exchange(&exchange).await.unwrap().claims
    }
}

fn consumer() -> Registration {
    Registration {
        id: "c1".to_owned(),
        name: "c1".to_owned(),
        host: "h1".to_owned(),
        pid: 7,
        slots: 4,
        serves: r#"{"*": "default"}"#.to_owned(),
        lease: Duration::from_mins(2),
    }
}

impl Ran {
    fn of(child: Child) -> Self {
        let output = child.wait_with_output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Self { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }

    /// It did what it was asked.
    fn ok(self) -> Self {
        assert_eq!(self.code, Some(0), "{self:?}");
        self
    }

    /// It ended with this code, put nothing on standard output, and said each of these words.
    fn fails(self, code: i32, words: &[&str]) -> Self {
        assert_eq!(self.code, Some(code), "{self:?}");
        assert_eq!(self.out, "", "{self:?}");
        self.says(words)
    }

    /// Each of these is in what it said beside its data.
    fn says(self, words: &[&str]) -> Self {
        for word in words {
            assert!(self.err.contains(word), "no {word:?} in {self:?}");
        }
        self
    }

    /// Each of these is in its data.
    fn shows(self, words: &[&str]) -> Self {
        for word in words {
            assert!(self.out.contains(word), "no {word:?} in {}", self.out);
        }
        self
    }

    /// Its data as JSON: one line.
    fn value(&self) -> Value {
        assert_eq!(self.out.lines().count(), 1, "{self:?}");
        serde_json::from_str(&self.out).unwrap()
    }
}
