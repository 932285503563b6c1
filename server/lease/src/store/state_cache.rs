//! Cached state of resources used by recent batches: a batch on such resources reads nothing.
//!
//! **Invariant:** no result is based on the cache alone. The writing transaction checks that the cached state is
//! current: SQLite through the file's data version, Postgres row by row.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, RandomState};

use domain::lease::LeaseId;
use domain::names::Resource;
use hashbrown::DefaultHashBuilder;

use crate::batch::{ByLease, HeldLease, Loaded};
use crate::store::batch_request::BatchRequest;

/// Resources per generation, of two; about 30 MB when both are full.
const ENTRIES_MAX: usize = 16_384;

pub(super) struct StateCache {
    resources: Generations<Resource, HeldLease, RandomState>,
    /// Only for the newest lease of each resource.
    lease_resources: Generations<LeaseId, Resource, DefaultHashBuilder>,
}

impl StateCache {
    pub(super) fn new() -> Self {
        Self {
            resources: Generations::new(ENTRIES_MAX),
            lease_resources: Generations::new(ENTRIES_MAX),
        }
    }

    /// The cached part of a request, and the part to read. Returned entries are removed from the cache until
    /// [`put`](Self::put) restores them.
    pub(super) fn recall(&mut self, request: BatchRequest) -> (Loaded, BatchRequest) {
        let capacity = request.resources.len() + request.leases.len();
        let mut loaded = Loaded {
            resources: HashMap::with_capacity(capacity),
            lease_resources: ByLease::with_capacity(capacity),
            ..Loaded::default()
        };
        let mut missing = BatchRequest {
            keys: request.keys,
            has_bound_keys: request.has_bound_keys,
            ..BatchRequest::default()
        };
        for resource in request.resources {
            if !self.recall_resource(&resource, &mut loaded) {
                missing.resources.push(resource);
            }
        }
        for lease in request.leases {
            if !self.recall_lease(lease, &mut loaded) {
                missing.leases.push(lease);
            }
        }
        (loaded, missing)
    }

    /// Includes the newest lease, which may also be requested by id.
    fn recall_resource(&mut self, resource: &Resource, loaded: &mut Loaded) -> bool {
        if loaded.resources.contains_key(resource) {
            return true;
        }
        let Some(held) = self.resources.take(resource) else {
            return false;
        };
        if let Some(lease) = &held.state.lease {
            self.lease_resources.take(&lease.id);
            loaded.lease_resources.insert(lease.id, resource.clone());
        }
        loaded.resources.insert(resource.clone(), held);
        true
    }

    /// Only finds a lease that is the newest of its resource.
    fn recall_lease(&mut self, lease: LeaseId, loaded: &mut Loaded) -> bool {
        if !loaded.lease_resources.contains_key(&lease)
            && let Some(resource) = self.lease_resources.get(&lease).cloned()
        {
            self.recall_resource(&resource, loaded);
        }
        loaded.lease_resources.contains_key(&lease)
    }

    /// Call after the commit.
    pub(super) fn put(&mut self, after: impl IntoIterator<Item = (Resource, HeldLease)>) {
        for (resource, held) in after {
            if let Some(lease) = &held.state.lease {
                self.lease_resources.insert(lease.id, resource.clone());
            }
            self.resources.insert(resource, held);
        }
    }
}

/// A map of bounded size: when the young generation is full, it replaces the old one.
pub(super) struct Generations<K, V, S> {
    young: HashMap<K, V, S>,
    old: HashMap<K, V, S>,
    entries_max: usize,
}

impl<K: Eq + Hash, V, S: BuildHasher + Default> Generations<K, V, S> {
    pub(super) fn new(entries_max: usize) -> Self {
        Self {
            young: HashMap::default(),
            old: HashMap::default(),
            entries_max,
        }
    }

    pub(super) fn get(&self, key: &K) -> Option<&V> {
        self.young.get(key).or_else(|| self.old.get(key))
    }

    pub(super) fn take(&mut self, key: &K) -> Option<V> {
        let old = self.old.remove(key);
        self.young.remove(key).or(old)
    }

    pub(super) fn insert(&mut self, key: K, value: V) {
        if self.young.len() >= self.entries_max {
            std::mem::swap(&mut self.old, &mut self.young);
            // Keeps its capacity for reuse.
            self.young.clear();
        }
        self.young.insert(key, value);
    }
}

#[cfg(test)]
mod tests {
    use domain::lease::{Metadata, Scope, Ttl};
    use domain::names::OwnerId;

    use super::*;
    use crate::LeasePrincipal;
    use crate::batch::run;
    use crate::operation::{AcquireMode, AcquireOp, Operation};

    fn id(number: u8) -> LeaseId {
        LeaseId::from_parts(1_700_000_000_000, [number; 10])
    }

    fn acquire(number: u8) -> Operation {
        Operation::Acquire(Box::new(AcquireOp {
            resource: Resource::from("r"),
            id: id(number),
            owner: OwnerId::new("o"),
            issuer: "t".into(),
            ttl: Ttl::parse(30, 3_600).unwrap(),
            metadata: Metadata::default(),
            key: None,
            mode: AcquireMode::Once,
        }))
    }

    fn release(number: u8) -> Operation {
        Operation::Release {
            lease: id(number),
            principal: LeasePrincipal::new("t"),
            scope: Scope::everything(),
            unbind: None,
        }
    }

    /// Recalls the request, runs the batch, stores the result; returns how many entries were missing.
    fn batch(known: &mut StateCache, operations: &[Operation]) -> usize {
        let (loaded, missing) = known.recall(BatchRequest::from_operations(operations));
        let ran = run(loaded, operations, &"here".into()).unwrap();
        known.put(ran.after);
        missing.resources.len() + missing.leases.len()
    }

    #[test]
    fn only_the_newest_lease_of_a_resource_is_cached() {
        let mut known = StateCache::new();
        assert_eq!(batch(&mut known, &[acquire(1)]), 1);
        // Requested with its resource, before and after it, and twice.
        assert_eq!(batch(&mut known, &[acquire(2), release(1), release(1)]), 0);
        assert_eq!(batch(&mut known, &[release(1)]), 0);
        assert_eq!(batch(&mut known, &[acquire(3)]), 0);
        assert_eq!(batch(&mut known, &[release(1)]), 1);
        assert_eq!(batch(&mut known, &[release(3), acquire(4)]), 0);
        // After any number of operations the last state is cached.
        assert_eq!(known.lease_resources.young.len(), 1);
    }

    #[test]
    fn entries_unused_for_two_generations_are_evicted() {
        // Capacity two: the fifth insertion drops the first two, unless they were used in between.
        let mut map: Generations<_, _, RandomState> = Generations::new(2);
        for number in 1..=4 {
            map.insert(number, number * 10);
        }
        assert_eq!(map.get(&1), Some(&10));
        assert_eq!(map.take(&2), Some(20));
        map.insert(2, 21);
        assert_eq!(
            (map.get(&1), map.get(&2), map.get(&4)),
            (None, Some(&21), Some(&40))
        );
        assert_eq!(map.take(&2), Some(21));
        assert_eq!(map.get(&2), None);
    }
}
