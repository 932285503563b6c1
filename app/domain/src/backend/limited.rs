//! A backend as shown to a reader with a limited scope: the status stays, fields about the
//! whole backend are omitted.
//!
//! **Invariant:** every field is named here, so that a new field of [`BackendView`] does not
//! compile until it is classified.

use super::{BackendView, WatchState};
use crate::observation::Coverage;

/// Reason shown in place of a figure of the whole backend.
pub const OUTSIDE_SCOPE: &str = "it describes the whole backend, and your role covers a part of it";

impl BackendView {
    /// Keeps what a limited reader may know: whether the backend answers, how old its data is,
    /// its clock and its capabilities. Drops counts, texts and durations that depend on locks
    /// outside the scope. `locks`, `waiters` and `needing_attention` are those of the reader's
    /// part.
    #[must_use]
    pub fn limited(self, locks: u64, waiters: u64, needing_attention: u64) -> Self {
        let Self {
            name,
            kind,
            address: _,
            status,
            observed_at,
            age_ms,
            poll_interval_ms,
            coverage,
            fault: _,
            locks: _,
            waiters: of_all,
            needing_attention: _,
            clock_offset_ms,
            clock_error_ms,
            answers_ms: _,
            version,
            watch,
            passes: _,
            relist_differences: _,
            sources: _,
            capabilities,
            rights: _,
            past_faults: _,
            clusters: _,
            is_limited: _,
        } = self;
        Self {
            name,
            kind,
            address: String::new(),
            status,
            observed_at,
            age_ms,
            poll_interval_ms,
            coverage: match coverage {
                Coverage::Complete => Coverage::Complete,
                Coverage::Partial { .. } => Coverage::Partial {
                    seen: 0,
                    of: None,
                    why: OUTSIDE_SCOPE.into(),
                },
            },
            fault: None,
            locks,
            waiters: of_all.map(|_| waiters),
            needing_attention,
            clock_offset_ms,
            clock_error_ms,
            answers_ms: Vec::new(),
            version,
            watch: match watch {
                WatchState::Reconnecting { since, why: _ } => WatchState::Reconnecting {
                    since,
                    why: OUTSIDE_SCOPE.to_owned(),
                },
                WatchState::Live | WatchState::Off { .. } => watch,
            },
            passes: 0,
            relist_differences: 0,
            sources: Vec::new(),
            capabilities,
            rights: Vec::new(),
            past_faults: Vec::new(),
            clusters: Vec::new(),
            is_limited: true,
        }
    }
}
