//! MariaDB: its command lines and its words.

use std::path::Path;
use std::process::Command;

use super::install::Account;

pub(super) const USER: &str = "mysql";

pub(super) fn install(account: Account, home: &Path) -> Command {
    let mut command = account.command("mariadb-install-db");
    command
        .args(["--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db"])
        .args(["--skip-name-resolve", "--innodb-flush-method=nosync"])
        .arg(option("--datadir", &home.join("data")));
    command
}

pub(super) fn start(account: Account, home: &Path, port: u16, durable: bool) -> Command {
    let mut command = account.command("mariadbd");
    command
        .arg("--no-defaults") // must come first
        .arg(option("--datadir", &home.join("data")))
        .arg(option("--socket", &home.join("socket")))
        .arg(option("--pid-file", &home.join("pid")))
        .args(["--bind-address=127.0.0.1", "--skip-name-resolve", "--max-connections=300"])
        .args(["--character-set-server=utf8mb4", "--innodb-buffer-pool-size=64M"])
        .arg(format!("--port={port}"));
    if !durable {
        // 2: each commit reaches the file, so that only the host's death loses it, as with PostgreSQL's fsync=off.
        command.args(["--innodb-flush-method=nosync", "--innodb-flush-log-at-trx-commit=2"]);
    }
    command
}

fn option(name: &str, path: &Path) -> String {
    format!("{name}={}", path.display())
}

pub(super) fn admin_url(port: u16) -> String {
    format!("mysql://root@127.0.0.1:{port}/mysql")
}

pub(super) fn url(port: u16, database: &str) -> String {
    format!("mysql://permitq@127.0.0.1:{port}/{database}")
}

/// Tests work as an ordinary user: `read_only` does not bind root.
pub(super) fn create_user() -> String {
    "create user permitq@'127.0.0.1'".to_owned()
}

pub(super) fn create_database(name: &str) -> Vec<String> {
    vec![format!("create database `{name}`"), format!("grant all on `{name}`.* to permitq@'127.0.0.1'")]
}

pub(super) fn set_read_only(on: bool) -> String {
    format!("set global read_only = {on}")
}
