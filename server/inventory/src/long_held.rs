//! Long-held locks: by the conditions of the enabled alert rules, without their `for`, so that
//! an alert and the state of its lock agree. All servers use the same rules, whichever of them
//! evaluates alerts.
//!
//! Each entry has the time after which it counts as long-held, so a reading only compares two
//! numbers. The time is computed when a lock is acquired, when the rules change, and when its
//! usual hold time changes.

use std::collections::HashMap;
use std::sync::Arc;

use domain::alerts::{
    Baseline, ConditionResult, HeldLock, LockSnapshot, Rule, UsualHold, evaluate_lock, held_limit_ms,
    lock_sentence,
};
use domain::format;
use domain::names::{BackendName, LockId, Resource};
use domain::state::LockState;
use domain::tick::Tick;
use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::Inventory;
use super::backend_state::{Slot, SlotState};
use super::entry::Entry;
use super::missing_reasons::FILLED;
use super::shard::{Shard, SourceInfo};
use super::slab::Id;

/// No rule applies.
pub(super) const NEVER: Tick = Tick(i64::MAX);
/// Entries evaluated at a time; between two chunks the observer can write.
const CHUNK_ENTRIES: Id = 8 * 1024;
/// For more changed locks than this, all locks are evaluated again.
const SINGLY_MAX: usize = 2_000;

/// Locks with an open alert, and the acquisition that it concerns.
pub type Alerted = HashMap<LockId, String>;

/// Inputs of the state, replaced as a whole.
#[derive(Debug, Default)]
struct Followed {
    /// Enabled rules of this kind.
    rules: Vec<Rule>,
    /// Used if a backend does not report the acquisition time: after a restart an open alert
    /// has older information than the inventory.
    alerted: Alerted,
}

/// Shared by all backends. **Invariant:** a shard's lock is taken before those of this, never
/// after them.
#[derive(Debug, Default)]
pub struct LongHeld {
    followed: RwLock<Arc<Followed>>,
    baseline: RwLock<Baseline>,
}

impl LongHeld {
    /// Past hold times.
    pub fn baseline(&self) -> RwLockReadGuard<'_, Baseline> {
        self.baseline.read()
    }

    /// After a change call [`Inventory::reevaluate`] with the locks whose hold times changed.
    pub fn baseline_mut(&self) -> RwLockWriteGuard<'_, Baseline> {
        self.baseline.write()
    }

    pub fn p95_ms(&self, lock: &LockId) -> Option<i64> {
        self.baseline().p95_ms(lock)
    }

    pub fn usual_hold(&self, lock: &LockId) -> Option<UsualHold> {
        self.baseline().usual_hold(lock)
    }

    fn followed(&self) -> Arc<Followed> {
        self.followed.read().clone()
    }
}

/// The clock of a backend, for the acquisition times of its locks.
#[derive(Debug, Clone, Copy)]
pub(super) struct BackendClock {
    /// Milliseconds since 1970 at our tick 0.
    pub(super) epoch_ms: i64,
    /// Backend's clock minus ours.
    pub(super) offset_ms: i64,
}

/// The rules for the locks of one backend.
#[derive(Debug, Clone)]
pub(super) struct Judge {
    long_held: Arc<LongHeld>,
    followed: Arc<Followed>,
    backend: BackendName,
}

impl Judge {
    pub(super) fn new(long_held: &Arc<LongHeld>, backend: &BackendName) -> Self {
        Self {
            long_held: long_held.clone(),
            followed: long_held.followed(),
            backend: backend.clone(),
        }
    }

    fn id(&self, entry: &Entry, source: &SourceInfo) -> LockId {
        LockId {
            backend: self.backend.clone(),
            source: source.source.clone(),
            resource: Resource::from_bytes(&entry.name),
        }
    }

    /// The time after which this acquisition counts as long-held.
    pub(super) fn long_after(&self, entry: &Entry, source: &SourceInfo, clock: BackendClock) -> Tick {
        if self.followed.rules.is_empty() {
            return NEVER;
        }
        let lock = HeldLock {
            backend: &self.backend,
            name: &entry.name,
            owner: entry.owner.as_deref(),
            safety: Some(source.safety.class),
        };
        let p95 = || self.long_held.p95_ms(&self.id(entry, source));
        let rules = self.followed.rules.iter().filter(|rule| rule.covers(&lock));
        let limit = rules.filter_map(|rule| held_limit_ms(&rule.condition, p95)).min();
        let Some(limit) = limit else { return NEVER };
        if entry.gaps.acquired_at == FILLED {
            return Tick(entry.acquired_at - clock.epoch_ms - clock.offset_ms).plus(limit);
        }
        if self.is_alerted(entry, source) {
            return entry.first_seen.plus(-1);
        }
        entry.first_seen.plus(limit)
    }

    fn is_alerted(&self, entry: &Entry, source: &SourceInfo) -> bool {
        let alerted = &self.followed.alerted;
        let holding = || alerted.get(&self.id(entry, source));
        !alerted.is_empty() && holding().is_some_and(|holding| *holding == entry.holding())
    }

    /// The sentence of the first rule that holds.
    pub(super) fn why(&self, snapshot: &LockSnapshot<'_>) -> String {
        let lock = snapshot.lock();
        let usual_hold = |snapshot: &LockSnapshot<'_>| self.long_held.usual_hold(&snapshot.id());
        let rules = self.followed.rules.iter().filter(|rule| rule.covers(&lock));
        let found = rules
            .map(|rule| (rule, evaluate_lock(&rule.condition, snapshot, &usual_hold)))
            .find(|(_, (sign, _))| *sign == ConditionResult::Holds);
        match found {
            Some((rule, (_, measure))) => {
                let usual_hold = self.long_held.usual_hold(&snapshot.id());
                lock_sentence(&rule.condition, snapshot, measure, usual_hold)
            }
            None => format!(
                "Already long-held when this server first observed it, {} ago.",
                format::duration(snapshot.held_ms)
            ),
        }
    }
}

impl Inventory {
    /// Hold times that the state depends on.
    pub const fn long_held(&self) -> &Arc<LongHeld> {
        &self.long_held
    }

    /// Sets the rules and open alerts that the state depends on.
    pub fn follow_long_held(&self, rules: Vec<Rule>, alerted: Alerted) {
        let before = self.long_held.followed();
        if before.rules == rules && before.alerted == alerted {
            return;
        }
        let are_rules_new = before.rules != rules;
        let changed =
            |(lock, holding): &(&LockId, &String), other: &Alerted| other.get(*lock) != Some(*holding);
        let closed = before.alerted.iter().filter(|alert| changed(alert, &alerted));
        let opened = alerted.iter().filter(|alert| changed(alert, &before.alerted));
        let locks: Vec<LockId> = closed.chain(opened).map(|(lock, _)| lock.clone()).collect();
        let followed = Arc::new(Followed { rules, alerted });
        *self.long_held.followed.write() = followed;
        if are_rules_new {
            self.reevaluate_all();
        } else {
            self.reevaluate(&locks);
        }
    }

    /// The usual hold times of these locks changed.
    pub fn reevaluate(&self, locks: &[LockId]) {
        if locks.len() > SINGLY_MAX {
            return self.reevaluate_all();
        }
        for slot in self.slots().iter() {
            let mut of_slot = locks
                .iter()
                .filter(|lock| lock.backend == slot.info.name)
                .peekable();
            if of_slot.peek().is_none() {
                continue;
            }
            let mut state = slot.write();
            let found: Vec<Id> = of_slot
                .filter_map(|lock| {
                    let source = state.shard.source_number(&lock.source)?;
                    state.shard.lookup(source, lock.resource.as_bytes())
                })
                .collect();
            let changes = slot.evaluate_entries(&mut state, found);
            drop(state);
            self.count_changes(changes);
        }
    }

    /// Evaluates all locks again, as after a change of the rules. In chunks, so that no reading waits for long.
    pub fn reevaluate_all(&self) {
        for slot in self.slots().iter() {
            self.reevaluate_backend(slot);
        }
    }

    pub(super) fn reevaluate_backend(&self, slot: &Slot) {
        let mut from: Id = 0;
        loop {
            let mut state = slot.write();
            let last = state.shard.slab.last();
            let to = last.min(from.saturating_add(CHUNK_ENTRIES));
            let changes = slot.evaluate_entries(&mut state, from..to);
            drop(state);
            self.count_changes(changes);
            if to == last {
                break;
            }
            from = to;
        }
    }

    fn count_changes(&self, changes: u64) {
        if changes > 0 {
            self.bump(changes);
        }
    }
}

impl Slot {
    /// Returns how many locks changed their state.
    fn evaluate_entries(&self, state: &mut SlotState, ids: impl IntoIterator<Item = Id>) -> u64 {
        let judge = self.diagnosis_settings();
        let (clock, poll_interval_ms) = (state.clock(), self.info.poll_interval_ms);
        let changed = ids
            .into_iter()
            .filter(|id| state.shard.evaluate_entry(*id, &judge, clock, poll_interval_ms))
            .count();
        if changed > 0 {
            let shard = &mut state.shard;
            shard.order.recompute_sums(&shard.slab);
        }
        changed as u64
    }
}

impl Shard {
    /// Returns whether the lock changed its state.
    fn evaluate_entry(&mut self, id: Id, judge: &Judge, clock: BackendClock, poll_interval_ms: i64) -> bool {
        let Self {
            slab,
            sources,
            gaps,
            order,
            ..
        } = self;
        let Some(entry) = slab.get_mut(id) else {
            return false;
        };
        let Some(source) = sources.get(usize::from(entry.source)) else {
            return false;
        };
        entry.long_after = judge.long_after(entry, source, clock);
        // A stale row keeps its state until it is read again.
        let state = entry.diagnose(gaps, source.grain_ms, poll_interval_ms).worst();
        if entry.state == LockState::Stale || entry.state == state {
            return false;
        }
        entry.state = state;
        order.touch(id, slab);
        true
    }
}
