//! What the batches before left behind: a batch about resources used lately reads nothing.
//!
//! **Invariant:** nothing is answered by what is remembered alone. The store that writes asks, in the very transaction,
//! whether it is still so: SQLite the file, whether anybody else has written it; Postgres each row.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, RandomState};

use domain::lease::LeaseId;
use domain::names::Resource;
use hashbrown::DefaultHashBuilder;

use crate::lease::batch::{ByLease, Held, Loaded};
use crate::lease::store::asked::Asked;

/// Resources in each of two generations: some 30 MB when all are used.
const MOST: usize = 16_384;

pub(super) struct Known {
    resources: Generations<Resource, Held, RandomState>,
    /// Of the newest lease of each, and of no other.
    homes: Generations<LeaseId, Resource, DefaultHashBuilder>,
}

impl Known {
    pub(super) fn new() -> Self {
        Self {
            resources: Generations::new(MOST),
            homes: Generations::new(MOST),
        }
    }

    /// What is known of this, and what has to be read. What is given is given away, until it is [kept](Self::keep).
    pub(super) fn recall(&mut self, asked: Asked) -> (Loaded, Asked) {
        let most = asked.resources.len() + asked.leases.len();
        let mut loaded = Loaded {
            resources: HashMap::with_capacity(most),
            homes: ByLease::with_capacity(most),
            ..Loaded::default()
        };
        let mut missing = Asked {
            keys: asked.keys,
            ..Asked::default()
        };
        for resource in asked.resources {
            if !self.recall_resource(&resource, &mut loaded) {
                missing.resources.push(resource);
            }
        }
        for lease in asked.leases {
            if !self.recall_lease(lease, &mut loaded) {
                missing.leases.push(lease);
            }
        }
        (loaded, missing)
    }

    /// With its newest lease, by whose id it may be asked for too.
    fn recall_resource(&mut self, resource: &Resource, loaded: &mut Loaded) -> bool {
        if loaded.resources.contains_key(resource) {
            return true;
        }
        let Some(held) = self.resources.take(resource) else {
            return false;
        };
        if let Some(lease) = &held.state.lease {
            self.homes.take(&lease.id);
            loaded.homes.insert(lease.id, resource.clone());
        }
        loaded.resources.insert(resource.clone(), held);
        true
    }

    /// One that is its resource's newest.
    fn recall_lease(&mut self, lease: LeaseId, loaded: &mut Loaded) -> bool {
        if !loaded.homes.contains_key(&lease)
            && let Some(home) = self.homes.get(&lease).cloned()
        {
            self.recall_resource(&home, loaded);
        }
        loaded.homes.contains_key(&lease)
    }

    /// After the commit.
    pub(super) fn keep(&mut self, after: impl IntoIterator<Item = (Resource, Held)>) {
        for (resource, held) in after {
            if let Some(lease) = &held.state.lease {
                self.homes.insert(lease.id, resource.clone());
            }
            self.resources.insert(resource, held);
        }
    }
}

/// A map that forgets what was not written for long: when the young are full, the old go.
struct Generations<K, V, S> {
    young: HashMap<K, V, S>,
    old: HashMap<K, V, S>,
    most: usize,
}

impl<K: Eq + Hash, V, S: BuildHasher + Default> Generations<K, V, S> {
    fn new(most: usize) -> Self {
        Self {
            young: HashMap::default(),
            old: HashMap::default(),
            most,
        }
    }

    fn get(&self, key: &K) -> Option<&V> {
        self.young.get(key).or_else(|| self.old.get(key))
    }

    fn take(&mut self, key: &K) -> Option<V> {
        let old = self.old.remove(key);
        self.young.remove(key).or(old)
    }

    fn insert(&mut self, key: K, value: V) {
        if self.young.len() >= self.most {
            std::mem::swap(&mut self.old, &mut self.young);
            // Its room is kept: it will be filled again.
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
    use crate::lease::LeasePrincipal;
    use crate::lease::batch::run;
    use crate::lease::operation::{AcquireOp, Operation, Turn};

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
            turn: Turn::Once,
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

    /// Recalls what these ask for, runs them on it, and keeps what they leave; how much was not known.
    fn batch(known: &mut Known, operations: &[Operation]) -> usize {
        let (loaded, missing) = known.recall(Asked::of(operations));
        let ran = run(loaded, operations, &"here".into()).unwrap();
        known.keep(ran.after);
        missing.resources.len() + missing.leases.len()
    }

    #[test]
    fn a_lease_is_known_while_it_is_its_resources_newest() {
        let mut known = Known::new();
        assert_eq!(batch(&mut known, &[acquire(1)]), 1);
        // Asked for beside its resource, before and after it, and twice.
        assert_eq!(batch(&mut known, &[acquire(2), release(1), release(1)]), 0);
        assert_eq!(batch(&mut known, &[release(1)]), 0);
        assert_eq!(batch(&mut known, &[acquire(3)]), 0);
        assert_eq!(batch(&mut known, &[release(1)]), 1);
        assert_eq!(batch(&mut known, &[release(3), acquire(4)]), 0);
        // However many there were, the last one is kept.
        assert_eq!(known.homes.young.len(), 1);
    }

    #[test]
    fn what_was_not_used_for_two_generations_is_forgotten() {
        // Two to a generation: the fifth insertion drops the first two, unless they were used meanwhile.
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
