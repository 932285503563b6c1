//! Leftovers of a process: child processes and folders.

use std::fs;
use std::path::{Path, PathBuf};

/// Whether some process has its working folder below `root`.
pub fn has_processes_in(root: &Path) -> bool {
    !processes_in(root).is_empty()
}

/// Processes whose working folder is below `root`.
pub fn processes_in(root: &Path) -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().filter_map(Result::ok);
    entries
        .filter(|entry| fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(root)))
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

/// What is in the folder `root`; empty where there is no such folder.
pub fn entries_of(root: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(root).into_iter().flatten();
    entries.filter_map(|entry| Some(entry.ok()?.path())).collect()
}
