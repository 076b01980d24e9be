//! Which file system a file is on. SQLite's write-ahead log is shared memory between processes of one host: over a network
//! two hosts would each see their own, and the file would break, and the cap with it.

use std::path::Path;

/// `f_type` of `statfs(2)`: file systems that more than one kernel may have mounted, or that do not say.
const REMOTE: [(u64, &str); 14] = [
    (0x6969, "NFS"),
    (0xff53_4d42, "CIFS"),
    (0xfe53_4d42, "SMB 2"),
    (0x517b, "SMB"),
    (0x0102_1997, "9p"),
    (0x6573_5546, "FUSE"),
    (0x00c3_6400, "Ceph"),
    (0x5346_414f, "AFS"),
    (0x0bd0_0bd0, "Lustre"),
    (0x4750_4653, "GPFS"),
    (0x1983_0326, "BeeGFS"),
    (0x0116_1970, "GFS2"),
    (0x7461_636f, "OCFS2"),
    (0x786f_4256, "VirtualBox shared folder"),
];

/// The name of a network file system; `None` for a local one.
fn remote(magic: u64) -> Option<&'static str> {
    REMOTE.iter().find(|(known, _)| *known == magic).map(|(_, name)| *name)
}

/// The network file system that this file or folder is on; `None` where it is local, or nobody can tell.
pub(crate) fn network(path: &Path) -> Option<&'static str> {
    let told = rustix::fs::statfs(path).ok()?;
    // Some architectures have it signed, some in 32 bits; all that is in it are these.
    #[allow(clippy::cast_sign_loss, clippy::unnecessary_cast, clippy::cast_lossless)]
    remote(told.f_type as u64 & 0xffff_ffff)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn network_file_systems_are_known_and_local_ones_let_through() {
        assert_eq!(remote(0x6969), Some("NFS"));
        assert_eq!(remote(0x6573_5546), Some("FUSE"));
        // ext4, xfs, btrfs, tmpfs, overlayfs, zfs
        for local in [0xef53, 0x5846_5342, 0x9123_683e, 0x0102_1994, 0x794c_7630, 0x2fc1_2fc1] {
            assert_eq!(remote(local), None, "{local:x}");
        }
        assert_eq!(network(&std::env::temp_dir()), None);
    }
}
