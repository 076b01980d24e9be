//! PostgreSQL: its command lines and its words.

use std::path::Path;
use std::process::Command;

use super::install::Account;

pub(super) const USER: &str = "postgres";

pub(super) fn install(account: Account, home: &Path) -> Command {
    let mut command = account.command("initdb");
    command
        .args(["--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C"])
        .args(["--no-sync", "--no-instructions", "--pgdata"])
        .arg(home.join("data"));
    command
}

pub(super) fn start(account: Account, home: &Path, port: u16, durable: bool) -> Command {
    let mut command = account.command("postgres");
    command.arg("-D").arg(home.join("data")).arg("-k").arg(home);
    let mut set = |setting: &str| {
        command.args(["-c", setting]);
    };
    set("listen_addresses=127.0.0.1");
    set(&format!("port={port}"));
    set("max_connections=300");
    // In the data directory, so that it goes with it: files in /dev/shm would outlive a killed server.
    set("dynamic_shared_memory_type=mmap");
    if !durable {
        set("fsync=off");
        set("full_page_writes=off");
    }
    command
}

pub(super) fn admin_url(port: u16) -> String {
    format!("postgres://postgres@127.0.0.1:{port}/postgres")
}

pub(super) fn url(port: u16, database: &str) -> String {
    format!("postgres://permitq@127.0.0.1:{port}/{database}")
}

pub(super) fn create_user() -> String {
    "create role permitq login".to_owned()
}

pub(super) fn create_database(name: &str) -> Vec<String> {
    vec![format!(r#"create database "{name}" owner permitq"#)]
}

/// A copy of the running server at `port`, which will follow it under the name `standby`.
pub(super) fn copy(account: Account, home: &Path, port: u16) -> Command {
    let mut command = account.command("pg_basebackup");
    command
        .arg(format!("--dbname=host=127.0.0.1 port={port} user=postgres application_name=standby"))
        .args(["--write-recovery-conf", "--wal-method=stream", "--create-slot", "--slot=standby"])
        .args(["--checkpoint=fast", "--no-sync", "--pgdata"])
        .arg(home.join("data"));
    command
}
