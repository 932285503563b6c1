//! Counters that are written to `resource_tokens` later than the leases with their tokens: a resource that is granted
//! many times a second costs one write of its counter per second instead of one per grant.
//!
//! **Invariants:** the lease of a grant is committed before the grant is answered, and `store_meta.unwritten_from` with it:
//! every lease whose token is above its counter has an id at or after that. The writer writes all counters before it reads
//! any, and a new one restores them from the leases first. Readers see the counters of committed grants only.
//!
//! Only the token and the lease of a counter wait: a first counter, and one with a lock delay, is written with its batch.

use std::collections::{HashMap, VecDeque};

use domain::lease::{LeaseId, ResourceState, StoreTime};
use domain::names::Resource;

/// Milliseconds before a counter is written: further grants of its resource within this time cost no write.
const WAIT_MS: i64 = 1_000;
/// Counters that a batch writes, in the order of their names, so that they share pages.
const STEP_ROWS: usize = 32;
/// Counters that the maintenance task writes per transaction.
const IDLE_ROWS: usize = 512;
/// With more of them, a batch writes its counters itself. A batch that reads writes all of them first, so this bounds how
/// much longer it takes.
const WAITING_MAX: usize = 2_048;

/// The newest grant of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct UnwrittenCounter {
    /// The token in `resource_tokens`.
    written: u64,
    pub(super) token: u64,
    pub(super) lease: LeaseId,
}

/// A row to write to `resource_tokens`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct CounterRow {
    pub(super) resource: Resource,
    /// The token that the row has; 0 if it does not exist.
    pub(super) written: u64,
    pub(super) token: u64,
    pub(super) lease: Option<LeaseId>,
    pub(super) locked_until: Option<StoreTime>,
}

/// What a transaction does with counters. After the commit it is given to [`UnwrittenCounters::commit`].
#[derive(Debug, Default)]
pub(super) struct CounterPlan {
    pub(super) rows: Vec<CounterRow>,
    /// For `store_meta`.
    pub(super) unwritten_from: Option<LeaseId>,
    deferred: Vec<(Resource, UnwrittenCounter)>,
    /// How many of the due counters it writes, or need not be written any more.
    due_count: usize,
}

/// Which counters a transaction has already written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CountersWritten {
    No,
    All,
}

/// A counter, and when its newest grant was.
struct Waiting {
    counter: UnwrittenCounter,
    generation: u64,
}

#[derive(Default)]
pub(super) struct UnwrittenCounters {
    waiting: hashbrown::HashMap<Resource, Waiting>,
    /// Increased every second. Counters of an earlier one are due.
    generation: u64,
    turned_at: StoreTime,
    /// No lease of this generation with a token above its counter has a smaller id.
    young_from: Option<LeaseId>,
    /// Counters that the next batches write, by name. Some may have been written or granted again since.
    due: VecDeque<Resource>,
    /// As `young_from`, of the due counters.
    due_from: Option<LeaseId>,
    /// Whether these are all: not before the first batch of a writer, and not after a batch whose outcome is unknown.
    is_complete: bool,
}

impl UnwrittenCounters {
    /// For a reader: the counter of a resource if it is not written. `Err` if only the leases in the store show it.
    pub(super) fn read(&self, resource: &Resource) -> Result<Option<UnwrittenCounter>, Incomplete> {
        if self.is_complete {
            Ok(self.waiting.get(resource).map(|waiting| waiting.counter))
        } else {
            Err(Incomplete)
        }
    }

    /// Call when a transaction has failed.
    pub(super) fn set_incomplete(&mut self) {
        self.is_complete = false;
    }

    /// All of them, to be written before a read; by name, so that they share pages.
    pub(super) fn rows(&self) -> Vec<CounterRow> {
        let mut rows: Vec<_> = self.waiting.iter().map(row).collect();
        rows.sort_unstable_by(|one, other| one.resource.cmp(&other.resource));
        rows
    }

    /// What a batch with these changes writes. The changes have the counters as loaded, and the new states.
    pub(super) fn plan(
        &self,
        changes: &HashMap<Resource, (u64, ResourceState)>,
        already: CountersWritten,
    ) -> CounterPlan {
        let mut plan = CounterPlan {
            deferred: Vec::with_capacity(changes.len()),
            ..CounterPlan::default()
        };
        for (resource, (loaded, state)) in changes {
            let waiting = match already {
                CountersWritten::No => self.waiting.get(resource),
                CountersWritten::All => None,
            };
            let written = waiting.map_or(*loaded, |waiting| waiting.counter.written);
            // A due counter is written also if its resource is granted again: otherwise it would never be.
            let is_due = waiting.is_some_and(|waiting| self.is_due(waiting));
            let token = state.last_token.number();
            // After several grants in one batch an earlier lease may have a smaller id than the newest.
            let is_one_grant = loaded.checked_add(1) == Some(token);
            match &state.lease {
                Some(lease) if is_one_grant && !is_due && self.may_wait(written, state) => {
                    let lease = lease.id;
                    let counter = UnwrittenCounter {
                        written,
                        token,
                        lease,
                    };
                    plan.deferred.push((resource.clone(), counter));
                }
                lease => plan.rows.push(CounterRow {
                    resource: resource.clone(),
                    written,
                    token,
                    lease: lease.as_ref().map(|lease| lease.id),
                    locked_until: state.locked_until,
                }),
            }
        }
        plan.unwritten_from = plan.deferred.iter().map(|(_, counter)| counter.lease).min();
        if already == CountersWritten::No {
            let step_rows = STEP_ROWS.max(2 * plan.deferred.len());
            self.plan_due(&mut plan, changes, step_rows);
        }
        plan
    }

    /// What the maintenance task writes.
    pub(super) fn plan_idle(&self) -> CounterPlan {
        let mut plan = CounterPlan::default();
        self.plan_due(&mut plan, &HashMap::new(), IDLE_ROWS);
        plan
    }

    fn may_wait(&self, written: u64, state: &ResourceState) -> bool {
        let is_granted = state
            .lease
            .as_ref()
            .is_some_and(|lease| lease.token == state.last_token);
        written > 0 && is_granted && state.locked_until.is_none() && self.waiting.len() < WAITING_MAX
    }

    const fn is_due(&self, waiting: &Waiting) -> bool {
        waiting.generation < self.generation
    }

    /// Adds some of the due counters that do not change.
    fn plan_due(
        &self,
        plan: &mut CounterPlan,
        changes: &HashMap<Resource, (u64, ResourceState)>,
        step_rows: usize,
    ) {
        let rows_max = plan.rows.len() + step_rows;
        for resource in &self.due {
            if plan.rows.len() == rows_max {
                break;
            }
            plan.due_count += 1;
            let entry = self.waiting.get_key_value(resource);
            let due = entry.filter(|(name, waiting)| self.is_due(waiting) && !changes.contains_key(*name));
            plan.rows.extend(due.map(row));
        }
        let is_rest_due = plan.due_count < self.due.len();
        let due_from = self.due_from.filter(|_| is_rest_due);
        let from = [plan.unwritten_from, due_from, self.young_from];
        plan.unwritten_from = from.into_iter().flatten().min();
    }

    /// Call after the commit of a transaction that has written all of them.
    pub(super) fn clear(&mut self) {
        self.waiting.clear();
        self.due.clear();
        self.young_from = None;
        self.due_from = None;
        self.is_complete = true;
    }

    /// Call after the commit.
    pub(super) fn commit(&mut self, plan: CounterPlan, now: StoreTime) {
        for row in &plan.rows {
            self.waiting.remove(&row.resource);
        }
        for (resource, counter) in plan.deferred {
            let from = self.young_from.get_or_insert(counter.lease);
            *from = counter.lease.min(*from);
            let generation = self.generation;
            self.waiting.insert(resource, Waiting { counter, generation });
        }
        self.due.drain(..plan.due_count);
        if self.due.is_empty() && now.since(self.turned_at) >= WAIT_MS {
            self.turn(now);
        }
    }

    /// All that wait become due.
    fn turn(&mut self, now: StoreTime) {
        let mut due: Vec<_> = self.waiting.keys().cloned().collect();
        due.sort_unstable();
        self.due = due.into();
        self.due_from = self.young_from.take();
        self.generation += 1;
        self.turned_at = now;
    }
}

/// The counters in memory are not all: see [`UnwrittenCounters::read`].
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Incomplete;

fn row((resource, Waiting { counter, .. }): (&Resource, &Waiting)) -> CounterRow {
    CounterRow {
        resource: resource.clone(),
        written: counter.written,
        token: counter.token,
        lease: Some(counter.lease),
        locked_until: None,
    }
}

#[cfg(test)]
mod tests;
