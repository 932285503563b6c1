//! Input and output of a batch, independent of the store.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use domain::lease::{Lease, LeaseId, ResourceState, StoreTime};
use domain::names::{OwnerId, Resource};

use crate::operation::{KeyName, Rejection};

/// Lease ids are random and made by the server, so a fast hash without collision resistance is
/// safe. Resource names come from clients and use the standard hasher.
pub type ByLease<T> = hashbrown::HashMap<LeaseId, T>;

/// State that a batch is based on.
#[derive(Debug, Clone, Default)]
pub struct Loaded {
    pub now: StoreTime,
    pub floor: u64,
    /// Margin of the leases to be granted: see [`Lease::margin_ms`].
    pub margin_ms: i64,
    pub resources: HashMap<Resource, HeldLease>,
    /// Resources of the leases requested by id; leases that are not the newest of their resource
    /// are in `old_leases`.
    pub lease_resources: ByLease<Resource>,
    pub old_leases: ByLease<Lease>,
    /// Bound keys that were read. A store that skips the read rejects the batch if another key turns out to be bound.
    pub keys: HashMap<KeyName, KeyRow>,
}

#[derive(Debug, Clone, Default)]
pub struct HeldLease {
    pub state: ResourceState,
    /// In queue order; only waiters of live replicas.
    pub queue: VecDeque<QueueEntry>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueEntry {
    pub waiter: LeaseId,
    pub replica: Arc<str>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRow {
    pub fingerprint: Arc<str>,
    pub lease: Option<LeaseId>,
    /// Whether the lease stays when the client that acquired it is gone: it was granted at once, or a retry has received it.
    pub is_claimed: bool,
    pub created_at: StoreTime,
}

/// Rows that the store has to write.
#[derive(Debug, Default)]
pub struct Changes {
    /// The fencing counter as loaded, and the new state.
    pub resources: HashMap<Resource, (u64, ResourceState)>,
    pub leases: ByLease<LeaseRowChange>,
    pub keys: HashMap<KeyName, KeyRow>,
    /// Stored keys to delete, before any of `keys` is written. The store checks that they are not claimed.
    pub unbound: Vec<KeyName>,
    pub joined: Vec<Joined>,
    pub left: Vec<LeaseId>,
    pub rejections: Vec<Rejection>,
    pub grants: u64,
}

#[derive(Debug)]
pub struct LeaseRowChange {
    pub resource: Resource,
    pub lease: Lease,
    pub is_new: bool,
}

#[derive(Debug)]
pub struct Joined {
    pub resource: Resource,
    pub waiter: LeaseId,
    pub owner: OwnerId,
}

impl Changes {
    pub fn is_empty(&self) -> bool {
        self.resources.is_empty()
            && self.leases.is_empty()
            && self.keys.is_empty()
            && self.unbound.is_empty()
            && self.joined.is_empty()
            && self.left.is_empty()
            && self.rejections.is_empty()
    }
}
