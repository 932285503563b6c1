//! Statistics of a process from the kernel. Linux only, like the rest of the bench.

use std::io;

/// Values at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Vitals {
    /// Resident memory.
    pub memory_mib: f64,
    pub files: f64,
    pub tasks: f64,
}

/// # Errors
/// There is no such process.
pub(super) fn read(pid: u32, tasks: f64) -> io::Result<Vitals> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let files = std::fs::read_dir(format!("/proc/{pid}/fd"))?.count();
    Ok(Vitals {
        memory_mib: resident_kib(&status) / 1_024.0,
        files: f64::from(u32::try_from(files).unwrap_or(u32::MAX)),
        tasks,
    })
}

/// Resident memory of this process.
///
/// # Errors
/// `/proc/self/status` cannot be read.
pub(crate) fn memory_mib() -> io::Result<f64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    Ok(resident_kib(&status) / 1_024.0)
}

fn resident_kib(status: &str) -> f64 {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse().ok());
    kib.unwrap_or(0.0)
}

/// `USER_HZ`, which is 100 on every Linux.
const TICKS_PER_S: f64 = 100.0;

/// CPU time of a process so far, in seconds.
///
/// # Errors
/// There is no such process.
pub(super) fn cpu_s(pid: u32) -> io::Result<f64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    Ok(cpu_ticks(&stat) / TICKS_PER_S)
}

/// User and system time are fields 14 and 15; the second, the name in parentheses, may contain blanks.
fn cpu_ticks(stat: &str) -> f64 {
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    let ticks = fields.split_whitespace().skip(11).take(2);
    ticks.filter_map(|ticks| ticks.parse::<f64>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_is_read_behind_a_name_with_blanks() {
        let stat = "12 (a) b (c)) S 1 2 3 4 5 6 7 8 9 10 250 50 7 7";
        assert!((cpu_ticks(stat) - 300.0).abs() < f64::EPSILON);
    }

    #[test]
    fn own_process_reports_memory_and_open_files() {
        // Detects an unexpected kernel format, which would read as zero.
        let vitals = read(std::process::id(), 3.0).unwrap();
        assert!(vitals.memory_mib > 1.0 && vitals.files >= 3.0, "{vitals:?}");
    }
}
