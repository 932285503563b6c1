//! One thing that was looked at.

use serde::Serialize;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    Ok,
    /// It works, and something may come of it.
    Warning,
    /// It does not work, or a promise is not kept.
    Fault,
}

impl Level {
    pub const fn wire(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Fault => "fault",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What was looked at: `store`, `disk`, `backend orders-db`.
    pub check: String,
    pub level: Level,
    pub found: String,
    /// One line that mends it, a command where there is one; none where nothing is wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mend: Option<String>,
}

impl Finding {
    pub fn ok(check: &str, found: impl Into<String>) -> Self {
        Self {
            check: check.to_owned(),
            level: Level::Ok,
            found: found.into(),
            mend: None,
        }
    }

    pub fn warning(check: &str, found: impl Into<String>, mend: impl Into<String>) -> Self {
        Self::wrong(Level::Warning, check, found.into(), mend.into())
    }

    pub fn fault(check: &str, found: impl Into<String>, mend: impl Into<String>) -> Self {
        Self::wrong(Level::Fault, check, found.into(), mend.into())
    }

    fn wrong(level: Level, check: &str, found: String, mend: String) -> Self {
        Self {
            check: check.to_owned(),
            level,
            found,
            // One line, whatever it was made of.
            mend: Some(mend.split_whitespace().collect::<Vec<_>>().join(" ")),
        }
    }
}

/// How far two clocks may be apart: beyond the first it is told, beyond the second it is wrong. Milliseconds.
const OFFSET_WARN_MS: i64 = 1_000;
const OFFSET_FAULT_MS: i64 = 5_000;

/// A clock against ours; `error_ms` is how far off the comparison may be.
pub(super) fn clock(check: &str, offset_ms: i64, error_ms: i64) -> Finding {
    let apart = offset_ms.abs().saturating_sub(error_ms);
    let side = if offset_ms < 0 { "behind" } else { "ahead of" };
    let found = format!("its clock is {} ms {side} ours", offset_ms.abs());
    let mend = "timedatectl set-ntp true # here and there, whichever clock is wrong";
    match apart {
        apart if apart > OFFSET_FAULT_MS => Finding::fault(check, found, mend),
        apart if apart > OFFSET_WARN_MS => Finding::warning(check, found, mend),
        _ => Finding::ok(check, found),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_are_judged_by_what_is_certain() {
        // Close; a second and more; more than five; far apart but read over a slow line.
        let level = |offset, error| clock("x", offset, error).level;
        assert_eq!(level(-900, 5), Level::Ok);
        assert_eq!(level(1_500, 5), Level::Warning);
        assert_eq!(level(-3_600_000, 5), Level::Fault);
        assert_eq!(level(6_000, 5_500), Level::Ok);
    }
}
