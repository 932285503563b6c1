//! Which locks are long-held: by the conditions of the enabled alert rules, without their `for`, so that an alert and the
//! state of its lock agree. Every server judges by the same rules, whichever of them evaluates alerts.
//!
//! Each entry has the moment after which it counts as long-held, so a reading only compares two numbers. The moment is
//! computed when a lock is acquired, when the rules change, and when its usual hold time changes.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use domain::alerts::{HeldLock, LockSight, Past, Rule, Sign, held_limit_ms, judge_lock, tell_lock};
use domain::human;
use domain::names::{BackendName, LockId, Resource};
use domain::observation::Tick;
use domain::state::LockState;

use super::Inventory;
use super::entry::Entry;
use super::gaps::FILLED;
use super::shard::{Shard, SourceInfo};
use super::slab::Id;
use super::slot::{Slot, SlotState};

/// No rule names it long-held.
pub(super) const NEVER: Tick = Tick(i64::MAX);
/// Entries judged again before the observer gets its turn.
const AT_ONCE: Id = 8 * 1024;
/// Of more locks than this, every lock is judged again.
const SINGLY_MAX: usize = 2_000;

/// Locks with an open alert, and the acquisition that the alert is about.
pub type Alerted = HashMap<LockId, String>;

/// What the state follows, replaced as a whole.
#[derive(Debug, Default)]
struct Followed {
    /// Enabled rules of this kind.
    rules: Vec<Rule>,
    /// It counts where a backend does not report since when a lock is held: after a restart the alert knows more than the
    /// inventory does.
    alerted: Alerted,
}

/// Shared by all backends. **Invariant:** a shard's lock is taken before those of this, never after them.
#[derive(Debug, Default)]
pub struct LongHeld {
    followed: RwLock<Arc<Followed>>,
    past: RwLock<Past>,
}

impl LongHeld {
    /// How long each lock was held before.
    pub fn past(&self) -> RwLockReadGuard<'_, Past> {
        self.past.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// After a change call [`Inventory::judge_again`] with the locks whose hold times changed.
    pub fn past_mut(&self) -> RwLockWriteGuard<'_, Past> {
        self.past.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn p95_ms(&self, lock: &LockId) -> Option<i64> {
        self.past().p95_ms(lock)
    }

    fn followed(&self) -> Arc<Followed> {
        self.followed
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

/// The clock of a backend, as the acquisition times of its locks need it.
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

    /// The moment after which this acquisition counts as long-held.
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
    pub(super) fn why(&self, sight: &LockSight<'_>) -> String {
        let lock = sight.lock();
        let p95 = |sight: &LockSight<'_>| self.long_held.p95_ms(&sight.id());
        let rules = self.followed.rules.iter().filter(|rule| rule.covers(&lock));
        let found = rules
            .map(|rule| (rule, judge_lock(&rule.condition, sight, &p95)))
            .find(|(_, (sign, _))| *sign == Sign::Holds);
        match found {
            Some((rule, (_, measure))) => tell_lock(&rule.condition, sight, measure, p95(sight)),
            None => format!(
                "Long-held before this server began to observe it, {} ago.",
                human::duration(sight.held_ms)
            ),
        }
    }
}

impl Inventory {
    /// The hold times that the state is judged by.
    pub const fn long_held(&self) -> &Arc<LongHeld> {
        &self.long_held
    }

    /// From now on the state follows these rules and open alerts.
    pub fn follow_long_held(&self, rules: Vec<Rule>, alerted: Alerted) {
        let before = self.long_held.followed();
        if before.rules == rules && before.alerted == alerted {
            return;
        }
        let are_rules_new = before.rules != rules;
        let changed =
            |(lock, holding): &(&LockId, &String), other: &Alerted| other.get(*lock) != Some(*holding);
        let gone = before.alerted.iter().filter(|one| changed(one, &alerted));
        let begun = alerted.iter().filter(|one| changed(one, &before.alerted));
        let locks: Vec<LockId> = gone.chain(begun).map(|(lock, _)| lock.clone()).collect();
        let followed = Arc::new(Followed { rules, alerted });
        *self
            .long_held
            .followed
            .write()
            .unwrap_or_else(PoisonError::into_inner) = followed;
        if are_rules_new {
            self.judge_all_again();
        } else {
            self.judge_again(&locks);
        }
    }

    /// The usual hold times of these locks changed.
    pub fn judge_again(&self, locks: &[LockId]) {
        if locks.len() > SINGLY_MAX {
            return self.judge_all_again();
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
            let changes = slot.judge_entries(&mut state, found);
            drop(state);
            self.count_changes(changes);
        }
    }

    /// As after a change of the rules. Chunk by chunk, so that no reading waits for long.
    pub fn judge_all_again(&self) {
        for slot in self.slots().iter() {
            self.judge_slot_again(slot);
        }
    }

    pub(super) fn judge_slot_again(&self, slot: &Slot) {
        let mut from: Id = 0;
        loop {
            let mut state = slot.write();
            let last = state.shard.slab.last();
            let to = last.min(from.saturating_add(AT_ONCE));
            let changes = slot.judge_entries(&mut state, from..to);
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
    /// Answers how many locks have another state now.
    fn judge_entries(&self, state: &mut SlotState, ids: impl IntoIterator<Item = Id>) -> u64 {
        let judge = self.judge();
        let (clock, poll_ms) = (state.clock(), self.info.poll_ms);
        let changed = ids
            .into_iter()
            .filter(|id| state.shard.judge_entry(*id, &judge, clock, poll_ms))
            .count();
        if changed > 0 {
            let shard = &mut state.shard;
            shard.order.settle(&shard.slab);
        }
        changed as u64
    }
}

impl Shard {
    /// Answers whether the lock's state is another one now.
    fn judge_entry(&mut self, id: Id, judge: &Judge, clock: BackendClock, poll_ms: i64) -> bool {
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
        let state = entry.judge(gaps, source.grain_ms, poll_ms).worst();
        if entry.state == LockState::Stale || entry.state == state {
            return false;
        }
        entry.state = state;
        order.touch(id, slab);
        true
    }
}
