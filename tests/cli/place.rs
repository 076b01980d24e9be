//! Which database, and what happens where there is none.

use permitq::store::SCHEMA_VERSION;
use serde_json::json;

use super::{Bench, Ran};

#[test]
fn migrate_creates_upgrades_and_says_so() {
    let bench = Bench::new();
    bench
        .run(&["migrate"])
        .ok()
        .shows(&[&format!("sqlite://permitq.db: created schema version {SCHEMA_VERSION}")]);
    bench.run(&["migrate"]).ok().shows(&[&format!("schema version {SCHEMA_VERSION}, nothing to do")]);
    assert_eq!(
        bench.json(&["migrate"]),
        json!({"database": "sqlite://permitq.db", "from": SCHEMA_VERSION, "to": SCHEMA_VERSION})
    );
}

#[test]
fn commands_that_read_or_change_create_nothing_and_say_what_to_run() {
    let bench = Bench::new();
    for args in [
        &["tasks"][..],
        &["task", "show", "1"],
        &["task", "retry", "1"],
        &["task", "cancel", "1"],
        &["permits"],
        &["permits", "set", "3"],
        &["permits", "add", "mail", "3"],
        &["audit"],
        &["audit", "--repair"],
    ] {
        bench.run(args).fails(1, &["sqlite://permitq.db", "permitq migrate"]);
    }
    assert!(!bench.path("permitq.db").exists());
    bench.write("permitq.db", "");
    bench.run(&["tasks"]).fails(1, &["no permitq tables in sqlite://permitq.db; run `permitq migrate`"]);
}

#[test]
fn the_command_line_beats_the_environment_and_that_the_default() {
    let bench = Bench::new();
    let migrate = |args: &[&str], env: &[(&str, &str)]| {
        let mut command = bench.command(args);
        command.envs(env.iter().copied());
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
    };
    migrate(&["migrate"], &[("DATABASE_URL", "sqlite://c.db")]);
    migrate(&["migrate"], &[("DATABASE_URL", "sqlite://x.db"), ("PERMITQ_DATABASE_URL", "sqlite://b.db")]);
    migrate(&["--database", "sqlite://a.db", "migrate"], &[("PERMITQ_DATABASE_URL", "sqlite://x.db")]);
    migrate(&["migrate", "--database", "sqlite://d.db"], &[]);
    migrate(&["migrate"], &[("PERMITQ_DATABASE_URL", "")]);
    for file in ["a.db", "b.db", "c.db", "d.db", "permitq.db"] {
        assert!(bench.path(file).exists(), "{file}");
    }
    assert!(!bench.path("x.db").exists());
}

#[test]
fn a_bad_url_names_its_origin_and_hides_its_password() {
    let bench = Bench::new();
    bench
        .run(&["tasks", "--database", "permitq.db"])
        .fails(2, &["command line: database.url", "sqlite://permitq.db would do"]);
    let output = bench.command(&["tasks"]).env("DATABASE_URL", "oracle://me:hush@host/x").output().unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(err.contains("DATABASE_URL: database.url") && !err.contains("hush"), "{err}");
}

#[test]
fn a_file_that_is_no_database_is_left_alone() {
    let bench = Bench::new();
    let text = "Dear diary, today we had four calls in flight.\n".repeat(100);
    bench.write("permitq.db", &text);
    for args in [&["migrate"][..], &["tasks"], &["enqueue", "--kind", "a"]] {
        bench.run(args).fails(1, &["sqlite://permitq.db", "file is not a database", "name another file"]);
    }
    assert_eq!(std::fs::read_to_string(bench.path("permitq.db")).unwrap(), text);
}

#[test]
fn a_folder_that_cannot_be_written_says_so() {
    let bench = Bench::new();
    // Fails for every user, root included.
    let url = "sqlite:///proc/permitq.db";
    bench
        .run(&["migrate", "--database", url])
        .fails(1, &[url, "must be able to write the file and its folder"]);
    bench.run(&["migrate", "--database", "sqlite://no/x.db"]).fails(1, &["there is no folder no"]);
    bench.run(&["migrate", "--database", "sqlite://."]).fails(1, &["it is a folder; name a file"]);
}

#[test]
fn usage_errors_have_code_2_and_help_code_0() {
    let bench = Bench::new();
    bench.run(&[]).fails(2, &["Usage: permitq"]);
    bench.run(&["enqeue"]).fails(2, &["unrecognized subcommand", "enqueue"]);
    bench.run(&["tasks", "--state", "done"]).fails(2, &["[possible values: blocked, scheduled"]);
    bench.run(&["tasks", "--limit", "0"]).fails(2, &["0 is not in 1..=1000"]);
    bench.run(&["--help"]).ok().shows(&["migrate", "enqueue", "--json", "--database"]);
    bench.run(&["--version"]).ok().shows(&[env!("CARGO_PKG_VERSION")]);
}

#[test]
fn every_shell_has_its_completions() {
    let bench = Bench::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        bench.run(&["completions", shell]).ok().shows(&["permitq", "max-attempts"]);
    }
}

#[test]
fn a_reader_that_has_read_enough_is_no_failure() {
    let bench = Bench::migrated();
    let mut child = bench.start(&["permits"]);
    drop(child.stdout.take());
    let ran = Ran::of(child).ok();
    assert_eq!(ran.err, "");
}

#[test]
fn output_that_cannot_be_written_is_a_failure() {
    let bench = Bench::migrated();
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = bench.command(&["enqueue", "--kind", "a"]).stdout(full).output().unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{err}");
    assert!(err.contains("task 1 is enqueued, but: cannot write to standard output"), "{err}");
}

#[test]
fn a_pipe_gets_no_colours() {
    let bench = Bench::migrated();
    let ran = bench.run(&["permits"]).ok();
    assert!(!ran.out.contains('\u{1b}'), "{ran:?}");
    let ran = bench.run(&["task", "show", "9"]).fails(1, &["error: there is no task 9"]);
    assert!(!ran.err.contains('\u{1b}'), "{ran:?}");
}
