//! What the README shows is what happens: its blocks are run as they stand, on another port.

use std::net::TcpListener;
use std::process::{Child, Command, Stdio};

use super::Bench;
use crate::support::until;

/// The fenced blocks of one language, in order.
fn blocks(language: &str) -> Vec<String> {
    let readme = include_str!("../../README.md");
    let fence = format!("```{language}\n");
    readme.split(&fence).skip(1).filter_map(|rest| rest.split("```").next()).map(str::to_owned).collect()
}

impl Bench {
    fn sh(&self, script: &str) -> Command {
        let binary = std::path::Path::new(env!("CARGO_BIN_EXE_permitq"));
        let path = format!("{}:/usr/local/bin:/usr/bin:/bin", binary.parent().unwrap().display());
        let mut command = Command::new("sh");
        command.args(["-e", "-c", script]).env_clear().env("PATH", path).env("USER", "tester");
        command.current_dir(self.0.path()).stdin(Stdio::null());
        command
    }

    fn alive(&self) -> String {
        let count = "exec sqlite3 permitq.db \"SELECT count(*) FROM permitq_consumer WHERE state = 'alive'\"";
        String::from_utf8(self.sh(count).output().unwrap().stdout).unwrap().trim().to_owned()
    }
}

/// Ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ended = self.0.kill();
        let _ended = self.0.wait();
    }
}

#[test]
fn the_three_terminals_of_the_readme_do_what_it_says() {
    let bench = Bench::new();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let there = |block: &str| block.replace("127.0.0.1:9000", &format!("127.0.0.1:{port}"));
    let all = blocks("sh");
    let [_two_commands, stub, fleet, use_it, schedules, after, why, life] = all.as_slice() else {
        panic!("{all:?}")
    };

    let stub = format!("exec {} --listen 127.0.0.1:{port}", stub.split('#').next().unwrap().trim());
    let _stub = Running(bench.sh(&stub).stderr(Stdio::null()).spawn().unwrap());
    // The last line becomes the shell itself, so that ending it ends the fleet.
    let fleet = there(fleet).replace("permitq fleet", "exec permitq fleet");
    let _fleet = Running(bench.sh(&fleet).stderr(Stdio::null()).spawn().unwrap());
    until("eight consumers", || bench.path("permitq.db").exists() && bench.alive() == "8");

    let used = bench.sh(use_it).output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&used.stdout), String::from_utf8_lossy(&used.stderr));
    assert!(used.status.success(), "{out}{err}");
    assert!(out.starts_with("1\n") && out.contains("report-2026-11"), "{out}");
    assert_eq!(bench.json(&["permits"])["semaphores"][0]["max_permits"], 2);

    let ran = bench.sh(schedules).output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{out}{err}");
    assert!(out.contains("Sun 2027-03-14 03:00:00 EDT") && out.contains("tidy: paused trigger 3"), "{out}");
    assert_eq!(bench.json(&["schedule", "list"])["jobs"].as_array().unwrap().len(), 2);

    let waits = bench.sh(after).output().unwrap();
    assert!(waits.status.success(), "{waits:?}");
    until("one after another", || {
        let last = bench.json(&["tasks", "--key", "mail"])["tasks"][0].clone();
        last["state"] == "succeeded"
    });

    let ran = bench.sh(why).output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{out}{err}");
    assert!(out.contains("task 1 ") && out.contains("timeline") && out.contains("to be pruned"), "{out}");

    let sql = blocks("sql").remove(0);
    let inserted = bench.sh("exec sqlite3 permitq.db \"$SQL\"").env("SQL", sql).output().unwrap();
    assert!(inserted.status.success(), "{inserted:?}");
    until("all seven tasks done", || {
        let tasks = bench.json(&["tasks"])["tasks"].clone();
        tasks.as_array().unwrap().iter().filter(|task| task["state"] == "succeeded").count() == 7
    });

    let lived = bench.sh(life).output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&lived.stdout), String::from_utf8_lossy(&lived.stderr));
    assert!(lived.status.success(), "{out}{err}");
    assert!(out.contains("the mail server moves") && out.contains("0 tasks run again"), "{out}");
    until("the mail is sent", || {
        bench.json(&["tasks", "--kind", "mail"])["tasks"][0]["state"] == "succeeded"
    });
}

#[test]
fn the_configuration_of_the_readme_is_the_default() {
    let bench = Bench::migrated();
    bench.write("permitq.toml", &blocks("toml")[0]);
    let output = bench.command(&["permits"]).env("REPORT_TOKEN", "s3cret").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    // Only who calls the downstream needs its secret: the cap can be set without.
    bench.run(&["permits", "set", "0"]).ok();
    bench.run(&["run"]).fails(2, &["permitq.toml", "REPORT_TOKEN"]);
}
