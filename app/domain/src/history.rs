//! Rows of the lock history; timelines, charts, previews and recommendations read them.

pub mod histogram;
pub mod renewal_runs;
pub mod rollup;
pub mod series;
pub mod simulated_past;
pub mod template;

use crate::lock_detail::EventKind;
use crate::names::{BackendName, OwnerId, Resource, Source};
use crate::token::FencingToken;

/// One row of history. Times are milliseconds since 1970 by the console's clock, when observed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryEvent {
    pub at: i64,
    pub kind: EventKind,
    pub backend: BackendName,
    pub source: Source,
    pub resource: Resource,
    pub owner: Option<OwnerId>,
    pub token: Option<FencingToken>,
    /// First seen after an outage of its backend: time of the last reading before it. The event
    /// lies in between.
    pub not_before: Option<i64>,
    /// TTL from here on; `None` without a TTL or if it was not reported.
    pub ttl_ms: Option<i64>,
    /// Without a TTL: configured silence after which the holder counts as not renewing.
    pub stale_after_ms: Option<i64>,
    /// Number of waiters from here on, if the backend reports it.
    pub waiters: Option<u32>,
    /// Only for [`EventKind::GrantedAfterWait`]: how long its owner had waited; on polled
    /// backends to the poll interval.
    pub waited_ms: Option<i64>,
    /// Only for [`EventKind::Renewed`]: the renewals that this row sums up.
    pub run: Option<Run>,
    /// Inferred, not observed: shorter than the poll interval.
    pub is_sampled: bool,
}

/// Renewals folded into one row, about evenly spaced, from the row's time until the last one. A
/// renewal at another interval begins a new row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    pub count: u32,
    /// Time of the last renewal, milliseconds since 1970.
    pub until: i64,
}
