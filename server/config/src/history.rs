//! `[history]`: retention of the history.

use std::time::Duration;

use super::limits::{HISTORY_RETENTION, HISTORY_ROLLUP_RETENTION};
use super::reader::Section;
use super::value_parsers;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryConfig {
    /// `retention`: of lock events. Default `168h`.
    pub retention: Duration,
    /// `rollup_retention`: of the roll-ups for charts. Default `720h`.
    pub rollup_retention: Duration,
}

pub const ROLLUP_RETENTION_DEFAULT: Duration = Duration::from_secs(30 * 24 * 3600);
pub const RETENTION_DEFAULT: Duration = Duration::from_secs(7 * 24 * 3600);

impl Default for HistoryConfig {
    fn default() -> Self {
        Self {
            retention: RETENTION_DEFAULT,
            rollup_retention: ROLLUP_RETENTION_DEFAULT,
        }
    }
}

impl HistoryConfig {
    pub(super) fn read(mut section: Section<'_>) -> Self {
        let retention = section.or(
            "retention",
            RETENTION_DEFAULT,
            &value_parsers::duration(&HISTORY_RETENTION),
        );
        let rollup_retention = section.or(
            "rollup_retention",
            ROLLUP_RETENTION_DEFAULT,
            &value_parsers::duration(&HISTORY_ROLLUP_RETENTION),
        );
        section.finish();
        Self {
            retention,
            rollup_retention,
        }
    }
}
