//! Result of one check.

use serde::Serialize;

domain::wire_enum! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Level {
        Ok = "ok",
        /// It works, with a risk.
        Warning = "warning",
        /// It does not work, or a guarantee is not met.
        Fault = "fault",
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Subject: `store`, `disk`, `backend orders-db`.
    pub check: String,
    pub level: Level,
    pub found: String,
    /// A one-line remedy, preferably a command; `None` if nothing is wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

impl Finding {
    pub fn ok(check: &str, found: impl Into<String>) -> Self {
        Self {
            check: check.to_owned(),
            level: Level::Ok,
            found: found.into(),
            remedy: None,
        }
    }

    pub fn warning(check: &str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::wrong(Level::Warning, check, found.into(), remedy.into())
    }

    pub fn fault(check: &str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::wrong(Level::Fault, check, found.into(), remedy.into())
    }

    fn wrong(level: Level, check: &str, found: String, remedy: String) -> Self {
        Self {
            check: check.to_owned(),
            level,
            found,
            // Joined to one line.
            remedy: Some(remedy.split_whitespace().collect::<Vec<_>>().join(" ")),
        }
    }
}

/// Clock differences in milliseconds that are a warning, and a fault.
const OFFSET_WARN_MS: i64 = 1_000;
const OFFSET_FAULT_MS: i64 = 5_000;

/// Compares a clock with ours; `error_ms` is the uncertainty.
pub(super) fn clock(check: &str, offset_ms: i64, error_ms: i64) -> Finding {
    let apart = offset_ms.abs().saturating_sub(error_ms);
    let side = if offset_ms < 0 { "behind" } else { "ahead of" };
    let found = format!("its clock is {} ms {side} this server's", offset_ms.abs());
    let remedy = "timedatectl set-ntp true # on the machine whose clock is wrong";
    match apart {
        apart if apart > OFFSET_FAULT_MS => Finding::fault(check, found, remedy),
        apart if apart > OFFSET_WARN_MS => Finding::warning(check, found, remedy),
        _ => Finding::ok(check, found),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clock_offsets_are_rated_by_their_certain_part() {
        // Close; more than a second; more than five; far apart but read over a slow connection.
        let level = |offset, error| clock("x", offset, error).level;
        assert_eq!(level(-900, 5), Level::Ok);
        assert_eq!(level(1_500, 5), Level::Warning);
        assert_eq!(level(-3_600_000, 5), Level::Fault);
        assert_eq!(level(6_000, 5_500), Level::Ok);
    }
}
