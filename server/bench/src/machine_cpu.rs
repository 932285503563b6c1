//! CPU time of the whole machine, from `/proc/stat`: the servers that a measurement starts are processes of their own, and
//! no other load may run during a measurement.

use super::error::BenchError;

/// `USER_HZ`, which is 100 on every Linux.
const TICK_US: f64 = 10_000.0;

pub(super) struct MachineCpu {
    busy_ticks: u64,
}

impl MachineCpu {
    /// # Errors
    /// `/proc/stat` cannot be read.
    pub(super) fn read() -> Result<Self, BenchError> {
        let text = std::fs::read_to_string("/proc/stat").map_err(BenchError::io("/proc/stat"))?;
        let busy_ticks = busy_ticks(&text);
        Ok(Self { busy_ticks })
    }

    /// Microseconds of all cores since it was read.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub(super) fn elapsed_us(&self) -> Result<f64, BenchError> {
        let now = Self::read()?.busy_ticks;
        Ok(now.saturating_sub(self.busy_ticks) as f64 * TICK_US)
    }
}

/// Sum of the first line without idle time, and without the time that a guest already counts as user time.
fn busy_ticks(stat: &str) -> u64 {
    let line = stat.lines().next().unwrap_or_default();
    let fields = line.split_whitespace().skip(1).take(8).enumerate();
    // user nice system idle iowait irq softirq steal
    fields
        .filter(|(place, _)| !matches!(place, 3 | 4 | 7))
        .filter_map(|(_, ticks)| ticks.parse::<u64>().ok())
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_and_stolen_time_is_not_cpu_time() {
        let stat = "cpu  100 20 30 5000 600 7 8 900 11 12\ncpu0 1 2 3 4 5 6 7 8 9 10\n";
        assert_eq!(busy_ticks(stat), 100 + 20 + 30 + 7 + 8);
        assert_eq!(busy_ticks(""), 0);
    }
}
