//! Some seconds of `loadtest chaos`: real processes under everything at once, and a judge who was not there. Run it for
//! minutes, with other seeds, by `cargo run -p loadtest --release -- chaos --help`.

use std::path::PathBuf;
use std::time::Duration;

use loadtest::chaos::Chaos;
use loadtest::{Program, Target};

/// What comes too late only because this machine is busy with other tests is no breach here.
async fn holds(target: Target, seed: u64) {
    let program = Program { path: PathBuf::from(env!("CARGO_BIN_EXE_permitq")), args: Vec::new() };
    let time = Duration::from_secs(15);
    let report = Chaos { target, time, seed, only: None, program, progress: false }.run().await.unwrap();
    let broken: Vec<_> = report.findings.violations.iter().filter(|violation| !violation.late).collect();
    assert!(broken.is_empty(), "{report}");
    assert!(report.done.kills > 0 && report.calls > 20, "{report}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_sqlite_everything_at_once_breaks_nothing() {
    holds(Target::Sqlite, 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_postgres_everything_at_once_breaks_nothing() {
    holds(Target::Postgres, 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_mariadb_everything_at_once_breaks_nothing() {
    holds(Target::MariaDb, 1).await;
}
