//! Whether the measured folder is on a disk: on an in-memory file system nothing is durable.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;

use runtime::disk::kind;

use super::timer::{Stopwatch, micros, percentile};

/// Syncs of one measurement, and the bytes written before each: a page of our SQLite file.
const SYNCS: usize = 300;
const SYNC_BYTES: usize = 8_192;

/// How long the device needs to make a small append durable. Milliseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct SyncTimes {
    pub p50_ms: f64,
    pub p99_ms: f64,
}

/// Appends to a file in `folder` and syncs it, again and again. Blocks for less than a second on most devices.
///
/// # Errors
/// The file cannot be written.
pub(crate) fn sync_times(folder: &Path) -> io::Result<SyncTimes> {
    let path = folder.join("sync");
    let mut file = File::create(&path)?;
    let mut times = Vec::with_capacity(SYNCS);
    for _ in 0..SYNCS {
        file.write_all(&[7; SYNC_BYTES])?;
        let watch = Stopwatch::start();
        file.sync_data()?;
        times.push(micros(watch.elapsed()));
    }
    std::fs::remove_file(path)?;
    times.sort_unstable();
    let ms = |percent| f64::from(percentile(&times, percent)) / 1_000.0;
    Ok(SyncTimes {
        p50_ms: ms(50),
        p99_ms: ms(99),
    })
}

/// A sentence for the output.
pub(crate) fn describe(path: &Path) -> String {
    let kind = kind(path);
    let shown = path.display();
    if matches!(kind.as_str(), "tmpfs" | "ramfs") {
        return format!(
            "the temporary folder {shown} is in memory ({kind}): what follows is not durable; set TMPDIR to a folder on disk"
        );
    }
    format!("data of all servers in {shown}, on {kind}")
}
