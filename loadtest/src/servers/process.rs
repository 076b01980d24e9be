//! A server's processes, and what ends them when the test process is gone.
//!
//! They are known by their working directory: PostgreSQL's backends leave its process group. A parent-death signal
//! would not do: it fires when the *thread* that spawned ends, as each test's does.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::Pid;

/// All processes that work in `folder`. Zombies do not.
pub(super) fn working_in(folder: &Path) -> Vec<Pid> {
    let folder = fs::metadata(folder).unwrap();
    let is_there = |process: &Path| {
        fs::metadata(process.join("cwd"))
            .is_ok_and(|cwd| (cwd.dev(), cwd.ino()) == (folder.dev(), folder.ino()))
    };
    fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| {
            let process = entry.ok()?.path();
            let pid = Pid::from_raw(process.file_name()?.to_str()?.parse().ok()?)?;
            is_there(&process).then_some(pid)
        })
        .collect()
}

/// Whether all its threads stand still: the signal reaches one after the other.
pub(super) fn is_stopped(pid: Pid) -> bool {
    let threads = fs::read_dir(format!("/proc/{}/task", pid.as_raw_nonzero()));
    threads.into_iter().flatten().flatten().all(|thread| {
        let stat = fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        // "id (name) state ...", where the name may hold anything; a thread that has just ended has no file.
        stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with('T'))
    })
}

/// Waits until its standard input is closed, then ends the server in `home` and removes the folder.
///
/// In a process group of its own, so that Ctrl-C at the tests does not end it.
pub(super) fn janitor(home: &Path) -> Child {
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
