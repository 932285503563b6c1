//! `[history]`: how long what happened to locks is kept.

use std::time::Duration;

use super::limits::{HISTORY_KEEP, HISTORY_KEEP_ROLLUPS};
use super::reader::Section;
use super::rules;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryConfig {
    /// `keep`: how long events of locks are kept. Default `168h`.
    pub keep: Duration,
    /// `keep_rollups`: how long the sums are kept that charts are drawn from. Default `720h`.
    pub keep_rollups: Duration,
}

pub const KEEP_ROLLUPS_DEFAULT: Duration = Duration::from_secs(30 * 24 * 3600);
pub const KEEP_DEFAULT: Duration = Duration::from_secs(7 * 24 * 3600);

impl Default for HistoryConfig {
    fn default() -> Self {
        Self {
            keep: KEEP_DEFAULT,
            keep_rollups: KEEP_ROLLUPS_DEFAULT,
        }
    }
}

impl HistoryConfig {
    pub(super) fn read(mut section: Section<'_>) -> Self {
        let keep = section.or("keep", KEEP_DEFAULT, &rules::duration(&HISTORY_KEEP));
        let keep_rollups = section.or(
            "keep_rollups",
            KEEP_ROLLUPS_DEFAULT,
            &rules::duration(&HISTORY_KEEP_ROLLUPS),
        );
        section.finish();
        Self { keep, keep_rollups }
    }
}
