//! State shared by the cores of all shards: clocks, counters, subscriptions, and the tokens that end the service.

use std::sync::Arc;

use domain::names::Resource;
use tokio::sync::{SetOnce, broadcast};
use tokio_util::sync::CancellationToken;

use super::activity_log::ActivityLog;
use super::metrics::LeaseMetrics;
use super::trace_index::Traced;
use runtime::clock::Clock;

const CHANGES_KEPT: usize = 1_024;

/// Names whose state changed; `None` if changes may have been missed.
pub(super) type Changed = Option<Arc<[Resource]>>;

/// Clones share their state.
#[derive(Clone)]
pub(super) struct Common {
    pub(super) clock: Clock,
    pub(super) metrics: Arc<LeaseMetrics>,
    pub(super) activity: Arc<ActivityLog>,
    pub(super) traced: Arc<Traced>,
    pub(super) changes: broadcast::Sender<Changed>,
    /// Cancelled at shutdown: waiters are answered `ShuttingDown`.
    pub(super) stop: CancellationToken,
    /// Cancelled when the service closes: the lanes finish their queues and end.
    pub(super) closed: CancellationToken,
    /// Set with the reason when the lanes of a shard have panicked: no operation is accepted any more.
    pub(super) failure: Arc<SetOnce<String>>,
}

impl Common {
    pub(super) fn new(clock: Clock, stop: CancellationToken) -> Self {
        Self {
            clock,
            metrics: Arc::default(),
            activity: Arc::default(),
            traced: Arc::default(),
            changes: broadcast::Sender::new(CHANGES_KEPT),
            stop,
            closed: CancellationToken::new(),
            failure: Arc::default(),
        }
    }
}
