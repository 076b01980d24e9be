//! Where the servers' programs are, and the account they run as.

use std::cmp::Reverse;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// The path of `program`, the newest where there are several. A missing one fails the test: skipping would tell that
/// all is well.
pub(super) fn program(name: &str) -> PathBuf {
    let mut versions: Vec<u32> = fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect();
    versions.sort_unstable_by_key(|version| Reverse(*version));
    let debian = versions.iter().map(|version| PathBuf::from(format!("/usr/lib/postgresql/{version}/bin")));
    let path = env::var_os("PATH").unwrap_or_default();
    debian
        .chain(env::split_paths(&path))
        .chain([PathBuf::from("/usr/sbin")])
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
        .unwrap_or_else(|| panic!("{name} is missing; to install it: tests/install-databases.sh"))
}

/// What MariaDB needs to be a cluster. Its snapshots call rsync by themselves.
pub(super) fn galera() -> PathBuf {
    program("rsync");
    let provider = PathBuf::from("/usr/lib/galera/libgalera_smm.so");
    assert!(provider.is_file(), "galera-4 is missing; to install it: tests/install-databases.sh");
    provider
}

/// What makes a process believe another wall clock than the host's.
pub(crate) fn faketime() -> PathBuf {
    fs::read_dir("/usr/lib")
        .into_iter()
        .flatten()
        .flatten()
        .map(|folder| folder.path().join("faketime/libfaketimeMT.so.1"))
        .find(|file| file.is_file())
        .unwrap_or_else(|| panic!("libfaketime is missing; to install it: tests/install-databases.sh"))
}

/// Who owns a server's files. The servers refuse to run as root, so root hands them to the packages' own accounts.
#[derive(Clone, Copy)]
pub(super) struct Account(Option<(u32, u32)>);

impl Account {
    pub(super) fn of(user: &str) -> Self {
        if !rustix::process::geteuid().is_root() {
            return Self(None);
        }
        let accounts = fs::read_to_string("/etc/passwd").unwrap();
        let ids = accounts.lines().find_map(|line| {
            let mut fields = line.strip_prefix(user)?.strip_prefix(':')?.split(':').skip(1);
            Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
        });
        Self(Some(
            ids.unwrap_or_else(|| panic!("no user {user} here; to add it: tests/install-databases.sh")),
        ))
    }

    /// `name` as this account, with nothing of the caller's environment (`PGHOST`, `MYSQL_HOME`) to lead it astray.
    pub(super) fn command(self, name: &str) -> Command {
        let mut command = Command::new(program(name));
        command.env_clear().env("PATH", "/usr/bin:/bin:/usr/sbin:/sbin").env("LC_ALL", "C");
        if let Some((user, group)) = self.0 {
            command.uid(user).gid(group);
        }
        command
    }

    pub(super) fn give(self, folder: &Path) {
        if let Some((user, group)) = self.0 {
            chown(folder, Some(user), Some(group)).unwrap();
        }
    }
}
