//! Recent changes per backend, stored in memory for the "Recent events" of pages.

use std::collections::VecDeque;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use domain::lock_detail::{EventKind, SeenEvent};
use domain::names::OwnerId;
use domain::token::FencingToken;

use super::template_groups::GroupId;

/// Events stored per backend, and the bytes of their names together: a name may have 64 KiB.
const EVENTS_MAX: usize = 8_192;
const NAME_BYTES_MAX: usize = 16 * 1024 * 1024;

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
    /// TTL after the change; `None` without a TTL or if it was not reported.
    pub(super) ttl_ms: Option<u32>,
    /// If the TTL is not reported: the largest time left that was observed.
    pub(super) ttl_seen_ms: Option<u32>,
    /// Without a TTL: silence longer than this counts as not renewing.
    pub(super) stale_after_ms: Option<u32>,
    /// Waiters after the change, if the backend reports them.
    pub(super) waiters: Option<u32>,
    /// Hold time of an ended holding, if its beginning is known.
    pub(super) held_ms: Option<i64>,
    /// `held_ms` is the middle of two bounds: the holding ended in an outage.
    pub(super) is_held_uncertain: bool,
    /// First seen after an outage: it happened between this time and `at`.
    pub(super) not_before: Option<DateTime<Utc>>,
    /// Wait before a grant.
    pub(super) waited_ms: Option<i64>,
    /// More changes happened between two readings than are observable.
    pub(super) is_sampled: bool,
}

#[derive(Debug, Default)]
pub(super) struct Recent {
    events: VecDeque<LockEvent>,
    name_bytes: usize,
}

impl Recent {
    pub(super) fn extend(&mut self, events: Vec<LockEvent>) {
        // Renewals are left out: they are in the renewal interval.
        let is_published =
            |event: &LockEvent| !matches!(event.kind, EventKind::Renewed | EventKind::FewerWaiting);
        for event in events.into_iter().filter(is_published) {
            self.name_bytes += event.name.len();
            self.events.push_back(event);
            while (self.events.len() > EVENTS_MAX || self.name_bytes > NAME_BYTES_MAX)
                && let Some(oldest) = self.events.pop_front()
            {
                self.name_bytes -= oldest.name.len();
            }
        }
    }

    /// Newest first.
    pub(super) fn for_lock(&self, source: u16, name: &[u8], events_max: usize) -> Vec<SeenEvent> {
        self.events
            .iter()
            .rev()
            .filter(|event| event.source == source && *event.name == *name)
            .take(events_max)
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

    /// The newest event of this name in any source, for a lock that is no longer held.
    pub(super) fn newest_of_name(&self, name: &[u8]) -> Option<&LockEvent> {
        self.events.iter().rev().find(|event| *event.name == *name)
    }
}
