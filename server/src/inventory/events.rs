//! What changed between two readings, kept for a short while: the pages' "what we saw happen".

use std::collections::VecDeque;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use domain::detail::{EventKind, SeenEvent};
use domain::names::OwnerId;
use domain::token::FencingToken;

use super::groups::GroupId;

/// Events kept per backend.
const KEPT: usize = 8_192;

/// One change of one lock. The source is a number of its shard.
#[derive(Debug, Clone)]
pub(super) struct LockEvent {
    pub(super) kind: EventKind,
    pub(super) at: DateTime<Utc>,
    pub(super) source: u16,
    pub(super) name: Box<[u8]>,
    pub(super) owner: Option<Arc<str>>,
    pub(super) token: Option<u64>,
    pub(super) group: GroupId,
    /// From here on; none without a TTL, and where nobody tells.
    pub(super) ttl_ms: Option<u32>,
    /// Where the TTL is not told: the most that was ever left of this lease.
    pub(super) ttl_seen_ms: Option<u32>,
    /// Without a TTL: silent for longer, it is not renewing.
    pub(super) stale_after_ms: Option<u32>,
    /// From here on, where the backend tells.
    pub(super) waiters: Option<u32>,
    /// Of what ended: how long it was held, as far as its beginning is known.
    pub(super) held_ms: Option<i64>,
    /// That is the middle of two bounds: it ended in an outage.
    pub(super) is_held_uncertain: bool,
    /// First seen after an outage: it happened between this time and `at`.
    pub(super) not_before: Option<DateTime<Utc>>,
    /// Of a grant after a wait: how long that was.
    pub(super) waited_ms: Option<i64>,
    /// More happened between two readings than they show.
    pub(super) is_sampled: bool,
}

#[derive(Debug, Default)]
pub(super) struct Recent(VecDeque<LockEvent>);

impl Recent {
    pub(super) fn extend(&mut self, events: Vec<LockEvent>) {
        // What a page tells of a lock; renewals are in its cadence.
        let is_told = |event: &LockEvent| !matches!(event.kind, EventKind::Renewed | EventKind::FewerWaiting);
        self.0.extend(events.into_iter().filter(is_told));
        let surplus = self.0.len().saturating_sub(KEPT);
        self.0.drain(..surplus);
    }

    /// Newest first.
    pub(super) fn of(&self, source: u16, name: &[u8], most: usize) -> Vec<SeenEvent> {
        self.0
            .iter()
            .rev()
            .filter(|event| event.source == source && *event.name == *name)
            .take(most)
            .map(|event| SeenEvent {
                trace_id: None,
                waited_ms: event.waited_ms,
                kind: event.kind,
                at: event.at,
                not_before: event.not_before,
                owner_id: event.owner.as_ref().map(OwnerId::new),
                fencing_token: event.token.map(FencingToken::new),
            })
            .collect()
    }

    /// The newest event of any source that holds this name: what is left of a lock that went.
    pub(super) fn newest_of_name(&self, name: &[u8]) -> Option<&LockEvent> {
        self.0.iter().rev().find(|event| *event.name == *name)
    }
}
