//! What a process that should leave nothing behind may have left: processes and folders.

use std::fs;
use std::path::{Path, PathBuf};

/// Whether some process has its working folder below `root`.
pub(crate) fn somebody_works_in(root: &Path) -> bool {
    !who_works_in(root).is_empty()
}

/// The processes that do.
pub(crate) fn who_works_in(root: &Path) -> Vec<u32> {
    let processes = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    processes
        .filter(|entry| fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(root)))
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

pub(crate) fn folders_in(root: &Path) -> Vec<PathBuf> {
    fs::read_dir(root)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect()
}
