//! File system of a folder: its kind and free space.

use std::path::Path;

use rustix::fs::statvfs;

/// Bytes available to this user; `None` if unknown.
pub fn free(folder: &Path) -> Option<u64> {
    let stat = statvfs(folder).ok()?;
    Some(stat.f_bavail.saturating_mul(stat.f_frsize))
}

/// Kind of the file system of a path, as named by the kernel: `ext4`, `tmpfs`.
pub fn kind(path: &Path) -> String {
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    kind_among(&mounts, path).unwrap_or("unknown").to_owned()
}

/// The mount with the longest matching path; of equal ones the last, which covers the others.
fn kind_among<'a>(mounts: &'a str, path: &Path) -> Option<&'a str> {
    let mount = |line: &'a str| {
        let mut fields = line.split(' ').skip(1);
        Some((fields.next()?, fields.next()?))
    };
    mounts
        .lines()
        .filter_map(mount)
        .filter(|(folder, _)| path.starts_with(folder))
        .max_by_key(|(folder, _)| folder.len())
        .map(|(_, kind)| kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_mount_decides_the_file_system() {
        // A temporary folder below the root, and one with a similar name.
        let mounts = "/dev/vda / ext4 rw 0 0\ntmpfs /tmp tmpfs rw 0 0\n";
        assert_eq!(kind_among(mounts, Path::new("/tmp/leasehold-x")), Some("tmpfs"));
        assert_eq!(kind_among(mounts, Path::new("/tmpx/y")), Some("ext4"));
        assert_eq!(kind_among("", Path::new("/tmp")), None);
    }
}
