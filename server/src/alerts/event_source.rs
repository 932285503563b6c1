//! The event source of rules: one small port, so that roll-ups can implement it.

mod sql;

use domain::alerts::{CountedEvent, Gap};
use domain::history::HistoryEvent;
use futures::future::BoxFuture;

use crate::history::signals::Signal;
use lease::{RejectionPosition, RejectionSpan};

pub use self::sql::SqlLedger;

type Answer<'a, T> = BoxFuture<'a, Result<T, sqlx::Error>>;

/// Positions of all sources. Equal positions mean no new data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadPositions {
    /// Revision of rules, silences and alerts, if available without cost.
    pub revision: Option<i64>,
    pub events: i64,
    /// Last ids of rejections and of the audit log, which has every unlock.
    pub records: (i64, i64),
    pub signals: i64,
}

/// Past events, oldest first.
pub trait Ledger: Send + Sync {
    /// Events after this position, limited; each with its position.
    fn events(&self, after: i64, most: i64) -> Answer<'_, Vec<(i64, HistoryEvent)>>;

    /// The position before the first event at or after a time.
    fn position_before(&self, at: i64) -> Answer<'_, i64>;

    /// The same for a recent time: reads all events since then.
    fn recent_position_before(&self, at: i64) -> Answer<'_, i64>;

    /// Where to start reading events since a time, limited to the newest `most`.
    fn start(&self, since: i64, most: i64) -> Answer<'_, Start>;

    /// The position of the last event; 0 without one.
    fn last_position(&self) -> Answer<'_, i64>;

    /// Gaps in observation that ended after a time, by their beginning.
    fn gaps(&self, since: i64) -> Answer<'_, Vec<Gap>>;

    /// Refused acquires and failed calls since a time, of all replicas.
    fn signals(&self, since: i64) -> Answer<'_, Vec<Signal>>;

    /// Forced unlocks since a time.
    fn unlocks(&self, since: i64) -> Answer<'_, Vec<CountedEvent>>;

    /// Fencing rejections, counted by lock, owner and second.
    fn rejections(&self, span: RejectionSpan) -> Answer<'_, Vec<CountedEvent>>;

    /// Position of the last rejection recorded before a time.
    fn last_rejection_before(&self, at: i64) -> Answer<'_, RejectionPosition>;

    /// Current positions: from memory if this server is the only writer, otherwise by one small query. `None`:
    /// unknown.
    fn positions(&self, now: i64) -> Answer<'_, Option<ReadPositions>>;

    /// Number of store queries.
    fn query_count(&self) -> u64;
}

/// Where to start reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Start {
    /// Read events after this position.
    pub position: i64,
    /// All events since this time are included.
    pub at: i64,
}
