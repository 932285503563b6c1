//! Moments as text, always UTC. Hand-written: chrono's formatter interprets its pattern at run
//! time and would add 20 kB of wasm.

use chrono::{DateTime, Datelike, Timelike, Utc};

/// `2026-03-01 03:12:41 UTC`.
pub fn dated(at: DateTime<Utc>) -> String {
    format!("{} {}", date(at), timed(at))
}

/// `03:12:41 UTC`.
pub fn timed(at: DateTime<Utc>) -> String {
    format!("{} UTC", time(at))
}

/// `between 18:50:05 and 18:50:50 UTC`.
pub fn between(from: DateTime<Utc>, until: DateTime<Utc>) -> String {
    format!("between {} and {}", time(from), timed(until))
}

/// For machines: `2026-03-01T03:12:41.250Z`.
pub fn iso(at: DateTime<Utc>) -> String {
    format!("{}T{}.{:03}Z", date(at), time(at), at.timestamp_subsec_millis())
}

fn date(at: DateTime<Utc>) -> String {
    format!("{:04}-{:02}-{:02}", at.year(), at.month(), at.day())
}

fn time(at: DateTime<Utc>) -> String {
    format!("{:02}:{:02}:{:02}", at.hour(), at.minute(), at.second())
}

#[cfg(test)]
mod tests {
    use chrono::SecondsFormat;

    use super::*;

    #[test]
    fn moments_equal_those_of_chrono() {
        // Compared with chrono's formatter, at the ends of days and years and before 1970.
        for ms in [0, -1, 951_782_399_999, 1_767_225_599_250, 1_772_334_761_007] {
            let at = DateTime::from_timestamp_millis(ms).unwrap();
            assert_eq!(iso(at), at.to_rfc3339_opts(SecondsFormat::Millis, true));
            assert_eq!(dated(at), at.format("%Y-%m-%d %H:%M:%S UTC").to_string());
            assert_eq!(timed(at), at.format("%H:%M:%S UTC").to_string());
        }
    }
}
