//! Scales from values to positions in per cent; values outside are placed at the edge.

use serde::{Deserialize, Serialize};

/// A time span, in milliseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimeScale {
    from: i64,
    until: i64,
}

impl TimeScale {
    /// At least a millisecond long.
    pub fn new(from: i64, until: i64) -> Self {
        Self {
            from,
            until: until.max(from.saturating_add(1)),
        }
    }

    pub const fn from(self) -> i64 {
        self.from
    }

    pub const fn until(self) -> i64 {
        self.until
    }

    pub const fn length_ms(self) -> i64 {
        self.until.saturating_sub(self.from)
    }

    pub fn at(self, ms: i64) -> f64 {
        let past = ms.clamp(self.from, self.until).saturating_sub(self.from);
        past as f64 / self.length_ms() as f64 * 100.0
    }

    /// The moment at a position in per cent.
    pub fn moment(self, at: f64) -> i64 {
        #[expect(clippy::cast_possible_truncation, reason = "a share of the length of a range")]
        let past = (at.clamp(0.0, 100.0) / 100.0 * self.length_ms() as f64).round() as i64;
        self.from.saturating_add(past)
    }

    /// Width of the part of a span that is inside.
    pub fn width(self, from: i64, until: i64) -> f64 {
        (self.at(until) - self.at(from)).max(0.0)
    }

    /// Whether any part of the span is inside.
    pub const fn meets(self, from: i64, until: i64) -> bool {
        from <= self.until && until >= self.from
    }

    pub const fn contains(self, ms: i64) -> bool {
        self.meets(ms, ms)
    }

    /// Index of the equal part that contains a moment.
    pub fn part(self, ms: i64, parts: usize) -> usize {
        let past = i128::from(ms.clamp(self.from, self.until) - self.from);
        let part = past * parts as i128 / i128::from(self.length_ms());
        usize::try_from(part).unwrap_or(0).min(parts.saturating_sub(1))
    }

    /// Begin of a part; `part == parts` gives the end.
    pub fn part_begins(self, part: usize, parts: usize) -> i64 {
        let past = i128::from(self.length_ms()) * part as i128 / parts.max(1) as i128;
        self.from.saturating_add(i64::try_from(past).unwrap_or(i64::MAX))
    }
}

/// Linear scale.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Linear {
    low: f64,
    high: f64,
}

impl Linear {
    /// An empty span becomes 1 long, to avoid dividing by zero.
    pub fn new(low: f64, high: f64) -> Self {
        let high = if high > low { high } else { low + 1.0 };
        Self { low, high }
    }

    pub const fn low(self) -> f64 {
        self.low
    }

    pub const fn high(self) -> f64 {
        self.high
    }

    pub fn at(self, value: f64) -> f64 {
        share((value - self.low) / (self.high - self.low))
    }
}

/// Logarithmic scale: for durations from milliseconds to days.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Log {
    low: f64,
    high: f64,
}

impl Log {
    /// Both ends are at least one, and at least a factor of ten apart.
    pub fn new(low: f64, high: f64) -> Self {
        let low = if low >= 1.0 { low } else { 1.0 };
        Self {
            low,
            high: if high >= low * 10.0 { high } else { low * 10.0 },
        }
    }

    pub const fn low(self) -> f64 {
        self.low
    }

    pub const fn high(self) -> f64 {
        self.high
    }

    pub fn at(self, value: f64) -> f64 {
        if value <= self.low {
            return 0.0;
        }
        share((value / self.low).ln() / (self.high / self.low).ln())
    }

    /// Index of the equally wide part that contains a value.
    pub fn part(self, value: f64, parts: usize) -> usize {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share of 0 to 100 of a count of bars"
        )]
        let part = (self.at(value) / 100.0 * parts as f64) as usize;
        part.min(parts.saturating_sub(1))
    }

    /// The value at which a part begins.
    pub fn part_begins(self, part: usize, parts: usize) -> f64 {
        let share = part as f64 / parts.max(1) as f64;
        self.low * (self.high / self.low).powf(share)
    }
}

/// Per cent of a share; NaN becomes 0.
fn share(share: f64) -> f64 {
    if share.is_nan() {
        return 0.0;
    }
    (share * 100.0).clamp(0.0, 100.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn positions_stay_inside_and_in_order(from in -4_000_000_000_000_i64..4_000_000_000_000, length in 0_i64..4_000_000_000, one: i64, other: i64) {
            // Any two moments on any span, including the extremes of `i64`.
            let scale = TimeScale::new(from, from + length);
            let (early, late) = (one.min(other), one.max(other));
            let (left, right) = (scale.at(early), scale.at(late));
            prop_assert!((0.0..=100.0).contains(&left) && left <= right && right <= 100.0);
            let part = scale.part(one, 48);
            prop_assert!(part < 48);
            prop_assert!((scale.moment(left) - early.clamp(scale.from(), scale.until())).abs() <= 1);
            if scale.contains(one) {
                prop_assert!(scale.part_begins(part, 48) <= one);
            }
        }

        #[test]
        fn any_value_is_placed_inside(low: f64, high: f64, value: f64) {
            // Not a number and infinity too.
            prop_assert!((0.0..=100.0).contains(&Linear::new(low, high).at(value)));
            prop_assert!((0.0..=100.0).contains(&Log::new(low, high).at(value)));
            prop_assert!(Log::new(low, high).part(value, 24) < 24);
        }

        #[test]
        fn values_fall_into_the_part_that_begins_below_them(value in 1.0_f64..1e9, parts in 1_usize..64) {
            let scale = Log::new(1.0, 1e9);
            let part = scale.part(value, parts);
            prop_assert!(scale.part_begins(part, parts) <= value * 1.000_001);
            prop_assert!(scale.part_begins(part + 1, parts) >= value * 0.999_999);
        }
    }
}
