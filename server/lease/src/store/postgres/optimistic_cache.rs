//! Last known state of resources without waiters, as this process read or wrote it. A batch on
//! such resources alone reads nothing: it is decided on this state, and `save_lease_batch` compares it
//! with the rows.
//!
//! Idempotency keys are assumed to be new: clients send each once, and the write of a batch whose key is bound fails.
//!
//! **Invariant:** a batch is based on cached state only if every moment within [`MARGIN_MS`]
//! gives the same result, because the time is estimated and not read. The estimate is never too
//! early, so a lease never gets less than its TTL.

use std::collections::{HashMap, HashSet};

use domain::lease::{ResourceState, StoreTime};
use domain::names::Resource;
use domain::tick::Tick;

use super::load::{LoadedRows, LoadedState};
use super::monotonic_clock::{MonotonicClock, STEP_MS};
use crate::batch::HeldLease;
use crate::store::batch_request::BatchRequest;
use crate::store::state_cache::StateCache;

/// The write may be one clock step off, and the estimate another.
const MARGIN_MS: i64 = 2 * STEP_MS;

pub(super) struct OptimisticCache {
    known: StateCache,
    /// Token floor of the store as last read.
    floor: Option<i64>,
}

/// State after a batch.
pub(super) struct StateAfter {
    pub(super) floor: i64,
    /// Resources with rows that the state does not include.
    pub(super) more: HashSet<Resource>,
    pub(super) states: HashMap<Resource, HeldLease>,
}

impl Default for OptimisticCache {
    fn default() -> Self {
        Self {
            known: StateCache::new(),
            floor: None,
        }
    }
}

impl OptimisticCache {
    /// The loaded state of a request, if all of it is cached and no key is known to be bound. Returned entries are removed from
    /// the cache until [`put`](Self::put) restores them: the second of two concurrent batches on
    /// one resource reads the tables.
    pub(super) fn recall(
        &mut self,
        request: BatchRequest,
        at: Tick,
        clock: &MonotonicClock,
    ) -> Option<LoadedRows> {
        if request.has_bound_keys {
            return None;
        }
        let floor = self.floor?;
        let now = clock.estimate(at)?;
        let (mut loaded, mut missing) = self.known.recall(request);
        let are_keys_new = !missing.keys.is_empty();
        missing.keys.clear();
        let states = loaded.resources.values().map(|held| &held.state);
        if !missing.is_empty() || !states.into_iter().all(|state| is_clear(state, now)) {
            return None;
        }
        let mut seen = LoadedState {
            floor,
            are_keys_new,
            ..LoadedState::default()
        };
        for (resource, held) in &loaded.resources {
            seen.add_state(resource.text(), &held.state);
        }
        loaded.now = now;
        loaded.floor = floor.unsigned_abs();
        Some(LoadedRows {
            read_at: at,
            loaded,
            seen,
        })
    }

    pub(super) fn floor(&self) -> Option<i64> {
        self.floor
    }

    /// Call after the commit.
    pub(super) fn put(&mut self, after: StateAfter) {
        let StateAfter { floor, more, states } = after;
        self.floor = Some(floor);
        let states = states.into_iter();
        self.known
            .put(states.filter(|(resource, held)| held.queue.is_empty() && !more.contains(resource)));
    }
}

/// Whether the state is the same at every moment within the margin.
fn is_clear(state: &ResourceState, now: StoreTime) -> bool {
    let unended = state.lease.as_ref().filter(|lease| lease.ending.is_none());
    unended.is_none_or(|lease| lease.expires_at.since(now) > MARGIN_MS)
        && state
            .locked_until
            .is_none_or(|until| until.since(now).abs() > MARGIN_MS)
}

#[cfg(test)]
mod tests;
