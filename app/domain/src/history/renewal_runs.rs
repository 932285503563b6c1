//! Folds evenly spaced renewals into one row: see [`Run`].

use super::Run;

/// A renewal fits if it comes within a fifth of the mean interval, or within this, in
/// milliseconds.
const TOLERANCE_MS: i64 = 1_000;
/// Longest run, in milliseconds: limits how far back a query must look for rows that overlap
/// its range.
pub const RUN_MS_MAX: i64 = 3_600_000;

/// Renewals so far, evenly spaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenRun {
    /// Milliseconds since 1970.
    pub began: i64,
    pub run: Run,
}

/// A renewal compared with the earlier ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Beat {
    /// Since the one before, in milliseconds; 0 if the clock was set back.
    pub interval_ms: i64,
    /// Lateness compared with the mean interval; `None` before there is one.
    pub late_ms: Option<i64>,
    /// It belongs to the run. Otherwise it begins a new one.
    pub fits: bool,
}

impl OpenRun {
    pub const fn begin(at: i64) -> Self {
        Self {
            began: at,
            run: Run { count: 1, until: at },
        }
    }

    /// Mean interval in milliseconds; `None` before the second renewal.
    pub fn rhythm_ms(&self) -> Option<i64> {
        let intervals = i64::from(self.run.count.checked_sub(1).filter(|count| *count > 0)?);
        Some((self.run.until - self.began) / intervals)
    }

    /// Adds a renewal.
    pub fn beat(&mut self, at: i64) -> Beat {
        let interval_ms = at.saturating_sub(self.run.until).max(0);
        let mean_ms = self.rhythm_ms();
        let is_regular = mean_ms.is_none_or(|mean_ms| {
            interval_ms.abs_diff(mean_ms) <= (mean_ms / 5).max(TOLERANCE_MS).unsigned_abs()
        });
        let fits = is_regular && at.saturating_sub(self.began) <= RUN_MS_MAX;
        if fits {
            self.run.count = self.run.count.saturating_add(1);
            self.run.until = self.run.until.max(at);
        }
        Beat {
            interval_ms,
            late_ms: mean_ms.map(|mean_ms| (interval_ms - mean_ms).max(0)),
            fits,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_uneven_renewal_ends_the_run() {
        // Every 10 s, slightly uneven; then one 4 s late: the run is unchanged and the lateness
        // returned.
        let mut open = OpenRun::begin(0);
        for at in [10_000, 20_400, 30_000] {
            assert!(open.beat(at).fits);
        }
        let beat = open.beat(44_000);
        assert_eq!(
            (beat.fits, beat.interval_ms, beat.late_ms),
            (false, 14_000, Some(4_000))
        );
        assert_eq!(
            open.run,
            Run {
                count: 4,
                until: 30_000
            }
        );
    }

    #[test]
    fn a_steady_run_ends_after_an_hour() {
        // Every 30 s for two hours: two rows and the beginning of a third.
        let (mut open, mut rows) = (OpenRun::begin(0), 1);
        for at in (30_000..=7_200_000).step_by(30_000) {
            if !open.beat(at).fits {
                open = OpenRun::begin(at);
                rows += 1;
            }
        }
        assert_eq!(rows, 2);
    }

    proptest! {
        #[test]
        fn no_renewal_is_lost_or_counted_twice(steps in proptest::collection::vec(0i64..30_000, 0..60)) {
            // The runs together contain every renewal, never end before they begin, and are in
            // order.
            let (mut at, mut rows) = (0, vec![OpenRun::begin(0)]);
            for step in &steps {
                at += step;
                let open = rows.last_mut().unwrap();
                if !open.beat(at).fits {
                    rows.push(OpenRun::begin(at));
                }
            }
            let counted: u32 = rows.iter().map(|open| open.run.count).sum();
            prop_assert_eq!(counted as usize, steps.len() + 1);
            prop_assert!(rows.iter().all(|open| open.run.until >= open.began && open.run.until - open.began <= RUN_MS_MAX));
            prop_assert!(rows.windows(2).all(|pair| pair[0].run.until <= pair[1].began));
        }
    }
}
