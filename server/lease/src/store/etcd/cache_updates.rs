//! Updates of what this replica knows without a read: states of resources, its waiters, and its own revisions.

use parking_lot::MutexGuard;

use super::EtcdStore;
use super::restore_guard::Basis;
use super::snapshot::{Snapshot, SnapshotRequest};
use super::state_cache::EtcdStateCache;
use crate::batch::{BatchResult, QueueEntry};
use crate::operation::Operation;

/// A commit.
pub(super) struct Written {
    pub(super) revision: i64,
    /// The etcd lease of the waiters that it added.
    pub(super) registered: i64,
    pub(super) basis: Basis,
}

impl EtcdStore {
    pub(super) fn remember(&self, request: &SnapshotRequest, snapshot: &Snapshot, basis: Basis) {
        if snapshot.held.queue.is_empty() && snapshot.held_revision.max(snapshot.free_revision) > 0 {
            let state = snapshot.held.state.clone();
            let revisions = (snapshot.held_revision, snapshot.free_revision);
            if let Some(mut cache) = self.cache_of(basis) {
                cache.put(request.resource.clone(), state, revisions.0, revisions.1);
            }
        }
    }

    /// The cache, if it is of this epoch: after a restore it must not get what was read before.
    fn cache_of(&self, basis: Basis) -> Option<MutexGuard<'_, EtcdStateCache>> {
        let cache = self.cache.lock();
        self.guard.is_current(basis).then_some(cache)
    }

    pub(super) fn remember_written(
        &self,
        request: &SnapshotRequest,
        snapshot: &Snapshot,
        ran: &BatchResult,
        written: Written,
    ) {
        let Written {
            revision,
            registered,
            basis,
        } = written;
        self.remember_revision(revision);
        for joined in &ran.changes.joined {
            self.registration
                .join(&joined.resource, joined.waiter, registered);
        }
        for waiter in &ran.changes.left {
            self.registration.leave(&request.resource, *waiter);
        }
        let Some(mut cache) = self.cache_of(basis) else {
            return;
        };
        for change in ran.changes.leases.values().filter(|change| change.is_new) {
            cache.put_lease_resource(change.lease.id, change.resource.clone());
        }
        let only_rejections = ran.changes.leases.is_empty() && ran.changes.resources.is_empty();
        let Some(after) = ran.after.get(&request.resource) else {
            return;
        };
        if !after.queue.is_empty() || !snapshot.held.queue.is_empty() || only_rejections {
            return;
        }
        let is_held = after
            .state
            .lease
            .as_ref()
            .is_some_and(|lease| lease.ending.is_none());
        let revisions = if is_held { (revision, 0) } else { (0, revision) };
        cache.put(
            request.resource.clone(),
            after.state.clone(),
            revisions.0,
            revisions.1,
        );
    }

    /// Registers waiters that were found in the queue: the answer to the transaction that wrote them was lost.
    pub(super) fn register_queued(&self, operations: &[Operation], snapshot: &Snapshot) {
        for operation in operations {
            let Operation::Acquire(op) = operation else {
                continue;
            };
            let is_ours = |waiting: &QueueEntry| waiting.waiter == op.id && waiting.replica == self.replica;
            if snapshot.held.queue.iter().any(is_ours) {
                self.registration
                    .join(&op.resource, op.id, self.registration.lease());
            }
        }
    }
}
