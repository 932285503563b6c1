//! The resident memory of a process, as the kernel counts it.

use std::path::PathBuf;

/// A process whose peak memory is measured.
pub(super) struct Memory {
    folder: PathBuf,
}

impl Memory {
    pub(super) fn read(pid: u32) -> Self {
        Self {
            folder: PathBuf::from(format!("/proc/{pid}")),
        }
    }

    /// What is resident now, in bytes. The peak is counted from here on.
    pub(super) fn reset_peak(&self) -> u64 {
        std::fs::write(self.folder.join("clear_refs"), "5").unwrap();
        self.field("VmRSS:")
    }

    /// The most that was resident since [`Self::reset_peak`], in bytes.
    pub(super) fn peak(&self) -> u64 {
        self.field("VmHWM:")
    }

    fn field(&self, name: &str) -> u64 {
        let status = std::fs::read_to_string(self.folder.join("status")).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        let kilobytes: u64 = line.trim().trim_end_matches(" kB").parse().unwrap();
        kilobytes * 1024
    }
}
