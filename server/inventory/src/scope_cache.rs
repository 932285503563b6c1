//! Cache per scope: the sums of its locks, computed once per state of the inventory, and a
//! revision of its own.
//!
//! **Invariant:** revision and number of changes of a scope depend on the locks of that scope,
//! the health of its backends and the clock, never on other locks.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use domain::access::Visible;
use domain::backend::{BackendStatus, WatchState};
use domain::lease::Scope;
use domain::names::BackendName;
use domain::state::LockState;
use parking_lot::{Mutex, MutexGuard};

use super::Inventory;
use super::backend_state::Slot;
use super::fingerprint::Fingerprint;
use super::name_index::Aggregates;
use runtime::clock::ClockReading;

/// Scopes stored; the least recently used is evicted first.
const PARTS_MAX: usize = 1_000;
/// Each scan reads unchanged rows again: their age counts as changed once per this interval, in
/// milliseconds. Earlier ends of scans, due to changes elsewhere, do not show.
const AGE_STEP_MS: i64 = 5_000;

/// The backends of a scope, each with its visible part.
type PartKey = Box<[(BackendName, Scope)]>;

#[derive(Debug, Default)]
pub(super) struct ScopeParts {
    known: Mutex<HashMap<PartKey, Arc<Shared>>>,
    /// Counts requests; determines the least recently used scope.
    lookups: AtomicU64,
    #[cfg(test)]
    pub(super) computed: AtomicU64,
}

#[derive(Debug, Default)]
struct Shared {
    lookups: AtomicU64,
    /// With the state of the inventory that it was computed from.
    latest: Mutex<Option<(u64, Arc<Part>)>>,
}

/// Sums of one scope by backend, in the order of the configuration.
#[derive(Debug)]
pub(super) struct Part {
    backends: Vec<(BackendName, BackendPart)>,
    /// Rises when a lock in the scope may have changed. A time of this process, so that it does
    /// not decrease after an eviction.
    pub(super) revision: u64,
    pub(super) changes: u64,
}

#[derive(Debug, PartialEq, Eq)]
struct BackendPart {
    sums: Aggregates,
    fingerprint: Fingerprint,
    status: BackendStatus,
    watch: WatchState,
    /// End of the last scan, in steps of [`AGE_STEP_MS`].
    age_step: Option<i64>,
}

impl BackendPart {
    fn new(slot: &Slot, scope: &Scope, now: ClockReading) -> Self {
        let state = slot.read();
        let shard = &state.shard;
        let ranges = shard.visible_ranges(b"", scope);
        let mut fingerprint = Fingerprint::default();
        for range in &ranges {
            fingerprint.add(&shard.order.fingerprint(range, &shard.slab));
        }
        let last_end = state.passes.last_end;
        Self {
            sums: shard.sums_over(&ranges, now.tick),
            fingerprint,
            status: slot.status(&state, now),
            watch: state.watch.clone(),
            age_step: last_end.map(|tick| tick.0.div_euclid(AGE_STEP_MS)),
        }
    }

    /// A lower bound of the rows added, removed or changed.
    fn changes_since(&self, old: &Self) -> u64 {
        let (before, now) = (&old.sums.states, &self.sums.states);
        let differences = LockState::ALL.map(|state| before.count(state).abs_diff(now.count(state)));
        // A row that changes its state leaves one count and joins another.
        let changes = differences.iter().sum::<u64>().div_ceil(2);
        changes.max(u64::from(old.fingerprint.content != self.fingerprint.content))
    }
}

impl Part {
    pub(super) fn sums(&self, backend: &BackendName) -> Option<&Aggregates> {
        let mut backends = self.backends.iter();
        backends
            .find(|(name, _)| name == backend)
            .map(|(_, part)| &part.sums)
    }

    /// No lease of it has expired since it was computed.
    fn is_exact(&self, now: ClockReading) -> bool {
        let mut ends = self.backends.iter().filter_map(|(_, part)| part.sums.runs_out);
        ends.all(|end| end > now.tick)
    }

    /// Continues revision and changes of `before`, an earlier state of the same scope.
    fn following(mut self, before: &Self) -> Self {
        (self.revision, self.changes) = if self.backends == before.backends {
            (before.revision, before.changes)
        } else {
            let pairs = before.backends.iter().zip(&self.backends);
            let changes: u64 = pairs.map(|((_, old), (_, new))| new.changes_since(old)).sum();
            (self.revision.max(before.revision + 1), before.changes + changes)
        };
        self
    }
}

/// The inventory part of a stream event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    pub revision: u64,
    /// Since the process started, or since the first use of the scope.
    pub changes: u64,
    pub held_total: u64,
    pub attention_total: u64,
    pub backends: Vec<BackendSummary>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackendSummary {
    pub name: BackendName,
    pub status: BackendStatus,
    pub age_ms: Option<i64>,
    pub poll_interval_ms: i64,
}

impl Inventory {
    /// Rises whenever a value displayed to this viewer may have changed.
    pub fn revision_of(&self, visible: &Visible, now: ClockReading) -> u64 {
        if visible.is_everything() {
            self.revision()
        } else {
            self.part(visible, now).revision
        }
    }

    /// Totals and health of what this viewer may see; cheap enough for every viewer twice a
    /// second.
    pub fn summary(&self, visible: &Visible, now: ClockReading) -> Summary {
        let part = (!visible.is_everything()).then(|| self.part(visible, now));
        let (revision, changes) = match &part {
            None => (self.revision(), self.changes()),
            Some(part) => (part.revision, part.changes),
        };
        let mut summary = Summary {
            revision,
            changes,
            held_total: 0,
            attention_total: 0,
            backends: Vec::new(),
        };
        for slot in self.slots().iter() {
            let state = slot.read();
            let sums = match &part {
                None => state.shard.sums_over(&[state.shard.order.everything()], now.tick),
                Some(part) => match part.sums(&slot.info.name) {
                    Some(sums) => *sums,
                    None => continue,
                },
            };
            let status = slot.status(&state, now);
            summary.held_total += sums.states.total();
            if !status.blinds_rows() {
                summary.attention_total += sums.states.needing_attention();
            }
            summary.backends.push(BackendSummary {
                name: slot.info.name.clone(),
                status,
                age_ms: state.passes.last_end.map(|tick| now.tick.since(tick)),
                poll_interval_ms: slot.period_ms(&state),
            });
        }
        summary
    }

    /// Current sums of this viewer's scope.
    pub(super) fn part(&self, visible: &Visible, now: ClockReading) -> Arc<Part> {
        let slots: Vec<(Arc<Slot>, Scope)> = self
            .slots()
            .iter()
            .map(|slot| (slot.clone(), visible.on(&slot.info.name)))
            .filter(|(_, scope)| !scope.is_nothing())
            .collect();
        let key = slots
            .iter()
            .map(|(slot, scope)| (slot.info.name.clone(), scope.clone()))
            .collect();
        let shared = self.parts.shared(key);
        let mut latest = locked(&shared.latest);
        // Read before the locks: a later write makes the next request compute again.
        let written = self.written.load(Ordering::Acquire);
        if let Some((computed_from, part)) = latest.as_ref()
            && *computed_from == written
            && part.is_exact(now)
        {
            return part.clone();
        }
        #[cfg(test)]
        self.parts.computed.fetch_add(1, Ordering::Relaxed);
        let backends = slots.iter().map(|(slot, scope)| {
            let part = BackendPart::new(slot, scope, now);
            (slot.info.name.clone(), part)
        });
        let fresh = Part {
            backends: backends.collect(),
            revision: u64::try_from(now.tick.0).unwrap_or(0) + 1,
            changes: 0,
        };
        let part = Arc::new(match latest.as_ref() {
            Some((_, before)) => fresh.following(before),
            None => fresh,
        });
        *latest = Some((written, part.clone()));
        part
    }
}

impl ScopeParts {
    fn shared(&self, key: PartKey) -> Arc<Shared> {
        let lookups = self.lookups.fetch_add(1, Ordering::Relaxed);
        let mut known = locked(&self.known);
        if let Some(shared) = known.get(&key) {
            shared.lookups.store(lookups, Ordering::Relaxed);
            return shared.clone();
        }
        if known.len() >= PARTS_MAX {
            let oldest = known
                .iter()
                .min_by_key(|(_, other)| other.lookups.load(Ordering::Relaxed));
            if let Some(oldest) = oldest.map(|(key, _)| key.clone()) {
                known.remove(&oldest);
            }
        }
        let shared = Arc::<Shared>::default();
        shared.lookups.store(lookups, Ordering::Relaxed);
        known.insert(key, shared.clone());
        shared
    }
}

/// A panic while it is locked is a bug that tests catch; the previous value is still valid.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}
