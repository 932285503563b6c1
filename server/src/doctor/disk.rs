//! Checks of the folder of an SQLite store: exists, writable, free space, local disk.

use std::path::Path;

use rustix::fs::{Access, StatVfsMountFlags, access, statvfs};

use super::check_result::Finding;
use runtime::disk;

const CHECK: &str = "disk";
/// Bytes. A full disk stops the lease service; a million events of history take about 180 MB.
const FREE_WARN: u64 = 1 << 30;
const FREE_FAULT: u64 = 64 << 20;

/// Network file systems, whose locks and syncs are not reliable.
const NETWORK: [&str; 9] = [
    "nfs",
    "nfs4",
    "cifs",
    "smb3",
    "smbfs",
    "9p",
    "ceph",
    "glusterfs",
    "fuse.sshfs",
];
const MEMORY: [&str; 2] = ["tmpfs", "ramfs"];

pub(super) fn examine(folder: &Path) -> Vec<Finding> {
    let path = folder.display();
    let Ok(folder) = folder.canonicalize() else {
        let remedy = format!("install -d -m 700 {path} # as the user that serves");
        return vec![Finding::fault(CHECK, format!("{path} does not exist"), remedy)];
    };
    let mut findings = vec![check_writable(&folder)];
    findings.extend(check_free_space(&folder));
    findings.push(check_file_system(&folder));
    findings
}

fn check_writable(folder: &Path) -> Finding {
    let path = folder.display();
    let is_read_only = statvfs(folder).is_ok_and(|stat| stat.f_flag.contains(StatVfsMountFlags::RDONLY));
    if is_read_only {
        let remedy = format!("mount -o remount,rw {path} # or set another `store`");
        return Finding::fault(CHECK, format!("{path} is mounted read-only"), remedy);
    }
    match access(folder, Access::WRITE_OK | Access::EXEC_OK) {
        Ok(()) => Finding::ok(CHECK, format!("{path} can be written")),
        Err(why) => Finding::fault(
            CHECK,
            format!("{path} cannot be written: {why}"),
            format!("chown USER {path} # as root; USER is the user that serves"),
        ),
    }
}

fn check_free_space(folder: &Path) -> Option<Finding> {
    let free = disk::free(folder)?;
    let found = format!("{} MiB are free in {}", free >> 20, folder.display());
    let remedy = "free disk space, or lower `retention` and `rollup_retention` in [history]";
    Some(match free {
        free if free < FREE_FAULT => Finding::fault(CHECK, found, remedy),
        free if free < FREE_WARN => Finding::warning(CHECK, found, remedy),
        _ => Finding::ok(CHECK, found),
    })
}

fn check_file_system(folder: &Path) -> Finding {
    let kind = disk::kind(folder);
    let path = folder.display();
    if NETWORK.contains(&kind.as_str()) {
        return Finding::fault(
            CHECK,
            format!(
                "{path} is on a network file system ({kind}): SQLite's locks and syncs are not reliable there"
            ),
            "set `store` to a path on a local disk, or store = \"postgres://…\"",
        );
    }
    if MEMORY.contains(&kind.as_str()) {
        return Finding::warning(
            CHECK,
            format!("{path} is in memory ({kind}): leases and tokens are lost at a reboot"),
            "set `store` to a path on a disk: otherwise fencing tokens repeat after a reboot",
        );
    }
    Finding::ok(CHECK, format!("{path} is on {kind}"))
}

#[cfg(test)]
mod tests {
    use super::super::check_result::Level;
    use super::*;

    #[test]
    fn a_missing_folder_is_reported_with_mkdir() {
        // No further findings.
        let findings = examine(Path::new("/nowhere/at all"));
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].level, Level::Fault);
        assert!(findings[0].remedy.as_ref().unwrap().starts_with("install -d "));
    }
}
