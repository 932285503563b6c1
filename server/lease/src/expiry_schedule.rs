//! The leases that the batches of this process granted and renewed, ordered by expiry: the cost of recording expiries depends on
//! how many leases expire, not on how many are held. A regular sweep over the store finds the others: leases of replicas that are
//! gone, leases from before a restart, and leases that expire early because a clock was set.
//!
//! **Invariant:** only the time of cleaning up depends on this. Whether a lease has expired is decided by the store.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use domain::lease::StoreTime;
use domain::names::Resource;
use domain::tick::Tick;
use domain::token::FencingToken;
use parking_lot::Mutex;

use super::operation::{Applied, HeldUntil};

/// Entries of ended leases that are kept beyond the number of held ones.
const SPARE: usize = 4_096;

#[derive(Default)]
pub(super) struct ExpirySchedule {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The held lease of each resource.
    held: HashMap<Resource, Held>,
    /// One current entry for each held lease, and entries of ended ones until they are due.
    ends: BinaryHeap<Reverse<(StoreTime, Resource)>>,
    /// The store's clock, and ours just before it was read.
    reading: Option<(StoreTime, Tick)>,
}

struct Held {
    token: FencingToken,
    until: StoreTime,
    /// The time of its current entry: at most `until`, since a renewal leaves the entry where it is.
    entry_at: StoreTime,
}

impl ExpirySchedule {
    /// Call after the commit.
    pub(super) fn record_batch(&self, applied: &Applied) {
        let mut state = self.state.lock();
        // Of two batches that commit at the same time the older one may come last.
        if state
            .reading
            .is_none_or(|(_, read_at)| read_at <= applied.read_at)
        {
            state.reading = Some((applied.now, applied.read_at));
        }
        for change in &applied.held {
            state.record(change);
        }
        state.compact();
    }

    /// Resources, at most `limit`, whose leases may have expired at our time `at`. Each is returned once: call
    /// [`record_attempt`](Self::record_attempt) after the attempt to record its end.
    pub(super) fn take_due(&self, at: Tick, limit: usize) -> Vec<Resource> {
        let mut state = self.state.lock();
        let Some((read, read_at)) = state.reading else {
            return Vec::new();
        };
        // The store's clock shows at most this time, so an attempt comes early rather than late.
        let now = read.plus(at.since(read_at));
        let mut due = Vec::new();
        while due.len() < limit
            && state.ends.peek().is_some_and(|Reverse((end, _))| *end <= now)
            && let Some(Reverse((end, resource))) = state.ends.pop()
        {
            let held = state.held.get(&resource).filter(|held| held.entry_at == end);
            match held.map(|held| held.until) {
                Some(until) if until > now => state.schedule(resource, until),
                Some(_) => due.push(resource),
                None => {}
            }
        }
        due
    }

    /// `now`: the store's clock at the attempt to record the expiry; `None`: the attempt failed.
    pub(super) fn record_attempt(&self, resource: Resource, now: Option<StoreTime>) {
        let mut state = self.state.lock();
        let Some(until) = state.held.get(&resource).map(|held| held.until) else {
            return;
        };
        if now.is_some_and(|now| now >= until) {
            // Another replica has renewed it or has recorded its end.
            state.held.remove(&resource);
        } else {
            state.schedule(resource, until);
        }
    }
}

impl State {
    fn record(&mut self, change: &HeldUntil) {
        let known = self.held.get_mut(&change.resource);
        match (change.until, known) {
            // Of an older lease.
            (_, Some(held)) if held.token > change.token => {}
            (None, None) => {}
            (None, Some(_)) => drop(self.held.remove(&change.resource)),
            (Some(until), Some(held)) if held.token == change.token && held.entry_at <= until => {
                held.until = until;
            }
            (Some(until), _) => {
                let held = Held {
                    token: change.token,
                    until,
                    entry_at: until,
                };
                self.held.insert(change.resource.clone(), held);
                self.schedule(change.resource.clone(), until);
            }
        }
    }

    /// Replaces the entry of a held lease.
    fn schedule(&mut self, resource: Resource, at: StoreTime) {
        if let Some(held) = self.held.get_mut(&resource) {
            held.entry_at = at;
            self.ends.push(Reverse((at, resource)));
        }
    }

    /// Frees the memory of ended leases once it is more than that of the held ones.
    fn compact(&mut self) {
        if self.ends.len() > 2 * self.held.len() + SPARE {
            let held = &self.held;
            self.ends.retain(|Reverse((end, resource))| {
                held.get(resource).is_some_and(|held| held.entry_at == *end)
            });
            self.ends.shrink_to(2 * held.len() + SPARE);
        }
        if self.held.capacity() > 4 * self.held.len() + 2 * SPARE {
            self.held.shrink_to(2 * self.held.len() + SPARE);
        }
    }
}

#[cfg(test)]
mod tests;
