//! The folder of a store on SQLite: there, ours to write, with room, and on a disk of this machine.

use std::path::Path;

use rustix::fs::{Access, StatVfsMountFlags, access, statvfs};

use super::finding::Finding;
use crate::disk;

const CHECK: &str = "disk";
/// Bytes. A store that cannot grow refuses leases; a million events of history take some 190 MB.
const FREE_WARN: u64 = 1 << 30;
const FREE_FAULT: u64 = 64 << 20;

/// Where files are shared with other machines, whose locks and syncs are not to be relied on.
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
    let shown = folder.display();
    let Ok(folder) = folder.canonicalize() else {
        let mend = format!("install -d -m 700 {shown} # as the user that serves");
        return vec![Finding::fault(CHECK, format!("{shown} is not there"), mend)];
    };
    let mut findings = vec![writable(&folder)];
    findings.extend(room(&folder));
    findings.push(kind(&folder));
    findings
}

fn writable(folder: &Path) -> Finding {
    let shown = folder.display();
    let is_read_only = statvfs(folder).is_ok_and(|stat| stat.f_flag.contains(StatVfsMountFlags::RDONLY));
    if is_read_only {
        let mend = format!("mount -o remount,rw {shown} # or write another `store`");
        return Finding::fault(CHECK, format!("{shown} is mounted read-only"), mend);
    }
    match access(folder, Access::WRITE_OK | Access::EXEC_OK) {
        Ok(()) => Finding::ok(CHECK, format!("{shown} can be written")),
        Err(why) => Finding::fault(
            CHECK,
            format!("{shown} cannot be written: {why}"),
            format!("chown $(id -un) {shown} # as root, for the user that serves"),
        ),
    }
}

fn room(folder: &Path) -> Option<Finding> {
    let free = disk::free(folder)?;
    let found = format!("{} MB are free in {}", free >> 20, folder.display());
    let mend = "make room, or keep less: [history] keep and keep_rollups";
    Some(match free {
        free if free < FREE_FAULT => Finding::fault(CHECK, found, mend),
        free if free < FREE_WARN => Finding::warning(CHECK, found, mend),
        _ => Finding::ok(CHECK, found),
    })
}

fn kind(folder: &Path) -> Finding {
    let kind = disk::kind(folder);
    let shown = folder.display();
    if NETWORK.contains(&kind.as_str()) {
        return Finding::fault(
            CHECK,
            format!(
                "{shown} is on a network file system ({kind}): SQLite's locks and syncs do not hold there"
            ),
            "write a `store` on a disk of this machine, or store = \"postgres://…\"",
        );
    }
    if MEMORY.contains(&kind.as_str()) {
        return Finding::warning(
            CHECK,
            format!(
                "{shown} is in memory ({kind}): leases and tokens are gone when this machine starts again"
            ),
            "write a `store` on a disk: without it fencing tokens come again",
        );
    }
    Finding::ok(CHECK, format!("{shown} is on {kind}"))
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::*;

    #[test]
    fn a_folder_that_is_not_there_comes_with_the_command_that_makes_it() {
        // Nothing else is said about it.
        let findings = examine(Path::new("/nowhere/at all"));
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].level, Level::Fault);
        assert!(findings[0].mend.as_ref().unwrap().starts_with("install -d "));
    }
}
