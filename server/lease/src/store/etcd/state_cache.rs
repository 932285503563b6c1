//! Last known state of resources without waiters, with the revisions of their keys, and the resources of leases.
//!
//! **Invariant**: a decision on remembered state is written only while the revisions are the same; one that writes
//! nothing is made again on a read.

use domain::lease::{LeaseId, ResourceState};
use domain::names::Resource;

use super::snapshot::{Snapshot, SnapshotRequest};
use crate::store::state_cache::Generations;

/// Resources per generation, of two.
const RESOURCES_MAX: usize = 16_384;

struct Remembered {
    state: ResourceState,
    held_revision: i64,
    free_revision: i64,
}

pub(super) struct EtcdStateCache {
    resources: Generations<Resource, Remembered, std::hash::RandomState>,
    lease_resources: Generations<LeaseId, Resource, hashbrown::DefaultHashBuilder>,
}

impl Default for EtcdStateCache {
    fn default() -> Self {
        Self {
            resources: Generations::new(RESOURCES_MAX),
            lease_resources: Generations::new(RESOURCES_MAX),
        }
    }
}

impl EtcdStateCache {
    /// The remembered state of a resource, which is removed until [`put`](Self::put) restores it: the second of two
    /// concurrent writes reads. A lease of the request that is not the newest must be read; keys are assumed to be new.
    pub(super) fn take(&mut self, request: &SnapshotRequest) -> Option<Snapshot> {
        let known = self.resources.take(&request.resource)?;
        let newest = known.state.lease.as_ref().map(|lease| lease.id);
        if request.leases.iter().any(|id| Some(*id) != newest) {
            return None;
        }
        let mut snapshot = Snapshot::empty(request);
        snapshot.held.state = known.state;
        snapshot.held_revision = known.held_revision;
        snapshot.free_revision = known.free_revision;
        Some(snapshot)
    }

    /// Call after the commit, or with what was read.
    pub(super) fn put(
        &mut self,
        resource: Resource,
        state: ResourceState,
        held_revision: i64,
        free_revision: i64,
    ) {
        let known = Remembered {
            state,
            held_revision,
            free_revision,
        };
        self.resources.insert(resource, known);
    }

    pub(super) fn lease_resource(&self, lease: LeaseId) -> Option<Resource> {
        self.lease_resources.get(&lease).cloned()
    }

    /// The resource of a lease never changes.
    pub(super) fn put_lease_resource(&mut self, lease: LeaseId, resource: Resource) {
        self.lease_resources.insert(lease, resource);
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}
