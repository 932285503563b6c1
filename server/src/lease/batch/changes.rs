//! What a batch reads and what it has to write, in no store's words.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use domain::lease::{Lease, LeaseId, ResourceState, StoreTime};
use domain::names::{OwnerId, Resource};

use crate::lease::operation::{KeyName, Rejection};

/// By ids that we make ourselves: nobody can choose them so that they collide, so the hash need not guard against that.
/// Names, which others choose, are kept by the standard library's.
pub type ByLease<T> = hashbrown::HashMap<LeaseId, T>;

/// What a batch is decided on.
#[derive(Debug, Clone, Default)]
pub struct Loaded {
    pub now: StoreTime,
    pub floor: u64,
    pub resources: HashMap<Resource, Held>,
    /// Leases asked for by id: where they belong, and those that are not their resource's newest.
    pub homes: ByLease<Resource>,
    pub old_leases: ByLease<Lease>,
    pub keys: HashMap<KeyName, KeyRow>,
}

#[derive(Debug, Clone, Default)]
pub struct Held {
    pub state: ResourceState,
    /// In order, of replicas that are there.
    pub queue: VecDeque<Standing>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    pub waiter: LeaseId,
    pub replica: Arc<str>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRow {
    pub fingerprint: Arc<str>,
    pub lease: Option<LeaseId>,
    pub created_at: StoreTime,
}

/// What the store has to write.
#[derive(Debug, Default)]
pub struct Changes {
    /// The counter as it was found, and the state afterwards.
    pub resources: HashMap<Resource, (u64, ResourceState)>,
    pub leases: ByLease<LeaseChange>,
    pub keys: HashMap<KeyName, KeyRow>,
    pub unbound: Vec<KeyName>,
    pub joined: Vec<Joined>,
    pub left: Vec<LeaseId>,
    pub rejections: Vec<Rejection>,
    pub grants: u64,
}

#[derive(Debug)]
pub struct LeaseChange {
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
