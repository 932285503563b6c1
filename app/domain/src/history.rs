//! What happened to locks, as history keeps it: the rows that timelines, charts, previews and advice are made of.

pub mod fold;
pub mod histogram;
pub mod rollup;
pub mod series;
pub mod template;

use crate::detail::EventKind;
use crate::names::{BackendName, OwnerId, Resource, Source};
use crate::token::FencingToken;

/// One row of history. Times are milliseconds since 1970 by the console's clock: when it was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryEvent {
    pub at: i64,
    pub kind: EventKind,
    pub backend: BackendName,
    pub source: Source,
    pub resource: Resource,
    pub owner: Option<OwnerId>,
    pub token: Option<FencingToken>,
    /// First seen after an outage of its backend: the last reading before it. It happened in between.
    pub not_before: Option<i64>,
    /// The time to live that the lease had from here on; none without a TTL, and where nobody told.
    pub ttl_ms: Option<i64>,
    /// Without a TTL: the time without a sign of life after which it is not renewing, where that is configured.
    pub stale_after_ms: Option<i64>,
    /// How many waited from here on, where the backend tells.
    pub waiters: Option<u32>,
    /// For [`EventKind::GrantedAfterWait`] only: how long its owner had waited, to the poll period where we look.
    pub waited_ms: Option<i64>,
    /// For [`EventKind::Renewed`] only: the renewals that this row stands for.
    pub run: Option<Run>,
    /// Inferred, not seen: shorter than the poll period.
    pub is_sampled: bool,
}

/// Renewals folded into one row: so many of them, about evenly spaced, from the row's time until the last one. A renewal that
/// breaks the rhythm begins a new row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    pub count: u32,
    /// When the last of them came, milliseconds since 1970.
    pub until: i64,
}
