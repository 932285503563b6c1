//! Spans of time as whole milliseconds, the unit of every stored and transmitted duration.

use std::time::Duration;

/// Whole milliseconds; `i64::MAX` for what does not fit.
pub fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}
