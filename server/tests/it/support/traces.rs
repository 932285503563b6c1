//! What a process that should leave nothing behind may have left: processes and folders.

use std::fs;
use std::path::{Path, PathBuf};

/// Whether some process has its working folder below `root`.
pub(crate) fn somebody_works_in(root: &Path) -> bool {
    let processes = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    processes
        .filter_map(|entry| fs::read_link(entry.path().join("cwd")).ok())
        .any(|cwd| cwd.starts_with(root))
}

pub(crate) fn folders_in(root: &Path) -> Vec<PathBuf> {
    fs::read_dir(root)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect()
}
