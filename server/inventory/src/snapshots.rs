//! Iterates over all locks; used by the alert evaluator. Borrowed, a chunk at a time, so that
//! no writer waits for long.

use domain::alerts::LockSnapshot;
use domain::backend::BackendStatus;
use domain::names::BackendName;

use super::Inventory;
use super::entry::Entry;
use super::missing_reasons::FILLED;
use super::shard::{Shard, SourceInfo};
use super::slab::Id;
use runtime::clock::ClockReading;

/// Entries visited at a time; between two chunks the observer can write.
const CHUNK_ENTRIES: Id = 8 * 1024;

/// Inputs of a lock snapshot besides its entry.
pub(super) struct Standpoint<'a> {
    pub(super) backend: &'a BackendName,
    pub(super) poll_interval_ms: i64,
    /// Backend's clock minus ours.
    pub(super) offset_ms: i64,
    pub(super) now: ClockReading,
    /// Longest delay until the next reading.
    pub(super) lag_ms: i64,
}

impl Shard {
    /// As of the last reading, unless the lease has expired since.
    pub(super) fn snapshot<'a>(
        &'a self,
        entry: &'a Entry,
        info: &'a SourceInfo,
        from: &Standpoint<'a>,
    ) -> LockSnapshot<'a> {
        let acquired_at = (entry.gaps.acquired_at == FILLED).then_some(entry.acquired_at);
        let backend_now = from.now.wall_at(entry.read_at).timestamp_millis() + from.offset_ms;
        let seen_ms = entry.read_at.since(entry.first_seen);
        LockSnapshot {
            backend: from.backend,
            source: &info.source,
            name: &entry.name,
            owner: entry.owner.as_deref(),
            safety: Some(info.safety.class),
            facts: entry.facts_at(&self.gaps, info.grain_ms, from.poll_interval_ms, from.now.tick),
            token: entry.reported_token(),
            held_ms: acquired_at.map_or(seen_ms, |at| backend_now - at).max(0),
            acquired_at,
            lag_ms: from.lag_ms,
        }
    }
}

impl Inventory {
    /// Calls `visit` with each lock of every observed backend. Returns the backends that are not
    /// observed.
    pub fn for_each_snapshot(
        &self,
        now: ClockReading,
        every_ms: i64,
        visit: &mut dyn FnMut(&LockSnapshot<'_>),
    ) -> Vec<BackendName> {
        let mut blind = Vec::new();
        for slot in self.slots().iter() {
            let mut from: Id = 0;
            loop {
                let state = slot.read();
                let status = slot.status(&state, now);
                if status.blinds_rows() || status == BackendStatus::Starting {
                    blind.push(slot.info.name.clone());
                    break;
                }
                let shard = &state.shard;
                let last = shard.slab.last();
                for id in from..last.min(from + CHUNK_ENTRIES) {
                    let Some((entry, info)) = shard
                        .slab
                        .get(id)
                        .and_then(|entry| Some((entry, shard.source(entry)?)))
                    else {
                        continue;
                    };
                    let from = Standpoint {
                        backend: &slot.info.name,
                        poll_interval_ms: slot.info.poll_interval_ms,
                        offset_ms: state.clock().offset_ms,
                        now,
                        lag_ms: slot.info.poll_interval_ms + every_ms,
                    };
                    visit(&shard.snapshot(entry, info, &from));
                }
                if last <= from + CHUNK_ENTRIES {
                    break;
                }
                from += CHUNK_ENTRIES;
            }
        }
        blind
    }
}
