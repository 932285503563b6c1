//! Counters that are written to `resource_tokens` later than the leases with their tokens: a resource that is granted
//! many times a second costs one write of its counter per second instead of one per grant.
//!
//! **Invariants:** the lease of a grant is committed before the grant is answered, and `store_meta.unwritten_from` with it:
//! every lease whose token is above its counter has an id at or after that. The writer writes all counters before it reads
//! any, and a new one restores them from the leases first. Readers see the counters of committed grants only.
//!
//! Only the token and the lease of a counter wait: a first counter, and one with a lock delay, is written with its batch.

use std::collections::{BTreeMap, HashMap};

use domain::lease::{LeaseId, ResourceState, StoreTime};
use domain::names::Resource;

/// Milliseconds before a counter is written: further grants of its resource within this time cost no write.
const WAIT_MS: i64 = 1_000;
/// Counters that a batch writes, in the order of their names, so that they share pages.
const STEP_ROWS: usize = 32;
/// Counters that the maintenance task writes per transaction.
const IDLE_ROWS: usize = 512;
/// With more of them, a batch writes its counters itself.
const ENTRIES_MAX: usize = 65_536;

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
}

/// Which counters a transaction has already written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CountersWritten {
    No,
    All,
}

#[derive(Default)]
struct Generation {
    counters: BTreeMap<Resource, UnwrittenCounter>,
    /// No lease with a token above its counter has a smaller id.
    from: Option<LeaseId>,
}

#[derive(Default)]
pub(super) struct UnwrittenCounters {
    /// Grants of the last second.
    young: Generation,
    /// Counters that the next batches write.
    old: Generation,
    turned_at: StoreTime,
    /// Whether these are all: not before the first batch of a writer, and not after a batch whose outcome is unknown.
    is_complete: bool,
}

impl UnwrittenCounters {
    /// For a reader: the counter of a resource if it is not written. `Err` if only the leases in the store show it.
    pub(super) fn read(&self, resource: &Resource) -> Result<Option<UnwrittenCounter>, Incomplete> {
        if self.is_complete {
            Ok(self.find(resource))
        } else {
            Err(Incomplete)
        }
    }

    fn find(&self, resource: &Resource) -> Option<UnwrittenCounter> {
        let young = self.young.counters.get(resource);
        young.or_else(|| self.old.counters.get(resource)).copied()
    }

    fn len(&self) -> usize {
        self.young.counters.len() + self.old.counters.len()
    }

    /// Call when a transaction has failed.
    pub(super) fn set_incomplete(&mut self) {
        self.is_complete = false;
    }

    /// All of them, to be written before a read.
    pub(super) fn rows(&self) -> Vec<CounterRow> {
        // A resource is in one generation only.
        let counters = self.old.counters.iter().chain(&self.young.counters);
        counters.map(row).collect()
    }

    /// What a batch with these changes writes. The changes have the counters as loaded, and the new states.
    pub(super) fn plan(
        &self,
        changes: &HashMap<Resource, (u64, ResourceState)>,
        already: CountersWritten,
    ) -> CounterPlan {
        let mut plan = CounterPlan::default();
        for (resource, (loaded, state)) in changes {
            let unwritten = self.find(resource).filter(|_| already == CountersWritten::No);
            let written = unwritten.map_or(*loaded, |counter| counter.written);
            // A due counter is written also if its resource is granted again: otherwise it would never be.
            let is_due = unwritten.is_some() && self.old.counters.contains_key(resource);
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
            self.plan_old(&mut plan, changes, step_rows);
        }
        plan
    }

    /// What the maintenance task writes.
    pub(super) fn plan_idle(&self) -> CounterPlan {
        let mut plan = CounterPlan::default();
        self.plan_old(&mut plan, &HashMap::new(), IDLE_ROWS);
        plan
    }

    fn may_wait(&self, written: u64, state: &ResourceState) -> bool {
        let is_granted = state
            .lease
            .as_ref()
            .is_some_and(|lease| lease.token == state.last_token);
        written > 0 && is_granted && state.locked_until.is_none() && self.len() < ENTRIES_MAX
    }

    /// Adds some of the old counters that do not change.
    fn plan_old(
        &self,
        plan: &mut CounterPlan,
        changes: &HashMap<Resource, (u64, ResourceState)>,
        step_rows: usize,
    ) {
        let mut old = self.old.counters.iter();
        let unchanged = old
            .by_ref()
            .filter(|(resource, _)| !changes.contains_key(*resource));
        plan.rows.extend(unchanged.take(step_rows).map(row));
        let remaining = old.next().and(self.old.from);
        let from = [plan.unwritten_from, remaining, self.young.from];
        plan.unwritten_from = from.into_iter().flatten().min();
    }

    /// Call after the commit of a transaction that has written all of them.
    pub(super) fn clear(&mut self) {
        self.young = Generation::default();
        self.old = Generation::default();
        self.is_complete = true;
    }

    /// Call after the commit.
    pub(super) fn commit(&mut self, plan: CounterPlan, now: StoreTime) {
        for row in &plan.rows {
            self.remove(&row.resource);
        }
        for (resource, counter) in plan.deferred {
            self.remove(&resource);
            self.young.from = Some(
                self.young
                    .from
                    .map_or(counter.lease, |from| from.min(counter.lease)),
            );
            self.young.counters.insert(resource, counter);
        }
        if self.old.counters.is_empty() && now.since(self.turned_at) >= WAIT_MS {
            self.old = std::mem::take(&mut self.young);
            self.turned_at = now;
        }
    }

    fn remove(&mut self, resource: &Resource) {
        self.young.counters.remove(resource);
        self.old.counters.remove(resource);
    }
}

/// The counters in memory are not all: see [`UnwrittenCounters::read`].
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Incomplete;

fn row((resource, counter): (&Resource, &UnwrittenCounter)) -> CounterRow {
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
