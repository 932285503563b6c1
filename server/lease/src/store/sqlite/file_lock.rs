//! The lock of a store's file: one process serves it.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use crate::error::LeaseOpenError;

/// The lock of a store's file, for as long as it is open.
pub(super) type FileLock = File;

pub(super) fn io(path: &Path, source: std::io::Error) -> LeaseOpenError {
    LeaseOpenError::File {
        path: path.to_owned(),
        source,
    }
}

/// Makes this process the only one that serves the file. The lock is on a separate file: closing any handle of the
/// database file would drop SQLite's own locks.
pub(crate) fn lock_file(path: &Path) -> Result<(PathBuf, FileLock), LeaseOpenError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder
        .unwrap_or(Path::new("."))
        .canonicalize()
        .map_err(|source| io(path, source))?;
    let path = folder.join(path.file_name().unwrap_or_default());
    // A symbolic link and its target are the same store.
    let path = path.canonicalize().unwrap_or(path);
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    let lock_path = PathBuf::from(name);
    let opened = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(&lock_path);
    let mut lock = opened.map_err(|source| io(&lock_path, source))?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let holder = std::fs::read_to_string(&lock_path).unwrap_or_default();
            return Err(LeaseOpenError::InUse {
                path,
                pid: holder.trim().parse().ok(),
            });
        }
        Err(TryLockError::Error(source)) => return Err(io(&lock_path, source)),
    }
    let written = lock
        .set_len(0)
        .and_then(|()| writeln!(lock, "{}", std::process::id()));
    written.map_err(|source| io(&lock_path, source))?;
    Ok((path, lock))
}
