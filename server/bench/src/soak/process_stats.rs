//! Statistics of a process from the kernel, and their slope. Linux only, like the rest of the bench.

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

fn resident_kib(status: &str) -> f64 {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse().ok());
    kib.unwrap_or(0.0)
}

/// Slope per hour of the second values over the first, which are minutes, by least squares. 0 for fewer than two
/// points.
pub(super) fn per_hour(points: &[(f64, f64)]) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "one a minute: few")]
    let count = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (mean_x, mean_y) = (mean(|it| it.0), mean(|it| it.1));
    let (mut above, mut below) = (0.0, 0.0);
    for (x, y) in points {
        above += (x - mean_x) * (y - mean_y);
        below += (x - mean_x) * (x - mean_x);
    }
    if below > 0.0 { 60.0 * above / below } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slope_is_per_hour_and_zero_for_constant_values() {
        // Detects a missed leak and a false one.
        let grows: Vec<(f64, f64)> = (1..=10)
            .map(|it| (f64::from(it), 100.0 + 0.5 * f64::from(it)))
            .collect();
        assert!((per_hour(&grows) - 30.0).abs() < 1e-9);
        let stays: Vec<(f64, f64)> = (1..=10).map(|it| (f64::from(it), 7.0)).collect();
        assert!(per_hour(&stays).abs() < 1e-9);
        assert!(per_hour(&[]).abs() < 1e-9 && per_hour(&[(1.0, 5.0)]).abs() < 1e-9);
    }

    #[test]
    fn own_process_reports_memory_and_open_files() {
        // Detects an unexpected kernel format, which would read as zero.
        let vitals = read(std::process::id(), 3.0).unwrap();
        assert!(vitals.memory_mib > 1.0 && vitals.files >= 3.0, "{vitals:?}");
    }
}
