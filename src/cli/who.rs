//! Who is recorded for what a person does.

use rustix::process::getuid;
use rustix::system::uname;

/// `cli:USER@HOST`.
pub(super) fn who() -> String {
    let user =
        ["USER", "LOGNAME"].iter().find_map(|name| std::env::var(name).ok().filter(|user| !user.is_empty()));
    let user = user.unwrap_or_else(|| format!("uid{}", getuid().as_raw()));
    let host = uname().nodename().to_string_lossy().into_owned();
    let who = format!("cli:{user}@{host}");
    // Both names come from outside; the column is for a name, not for an essay.
    who.chars().filter(|c| !c.is_control()).take(100).collect()
}
