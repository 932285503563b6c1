//! The wait queue of a resource: joining, leaving, and notification of its head.

use domain::lease::{self, LeaseId};
use domain::names::Resource;

use super::{Joined, QueueEntry, Run};
use crate::operation::{AcquireMode, AcquireOp, OperationResult, QueueHead};

/// Whether a request that is about to wait finds no room: it is answered as one without a wait.
pub(super) fn is_full(op: &AcquireOp, waiters: usize) -> bool {
    op.mode == AcquireMode::OrWait && waiters >= domain::lease::limits::QUEUE_MAX
}

impl Run<'_> {
    pub(super) fn join(&mut self, op: &AcquireOp) {
        let held = self.loaded.resources.entry(op.resource.clone()).or_default();
        held.queue.push_back(QueueEntry {
            waiter: op.id,
            replica: self.replica.clone(),
        });
        self.ran.changes.joined.push(Joined {
            resource: op.resource.clone(),
            waiter: op.id,
            owner: op.owner.clone(),
        });
        self.touched.insert(op.resource.clone());
    }

    pub(super) fn leave(&mut self, resource: &Resource, waiter: LeaseId) -> OperationResult {
        self.delete_waiter(resource, waiter);
        let held = self.loaded.resources.entry(resource.clone()).or_default();
        OperationResult::Refused {
            refusal: lease::transition::refusal(&held.state, self.loaded.now),
            waiters: u32::try_from(held.queue.len()).unwrap_or(u32::MAX),
            reserved_for_waiter: false,
        }
    }

    /// Ends the wait of an operation that is answered.
    pub(super) fn end_wait(&mut self, op: &AcquireOp) {
        if op.mode == AcquireMode::Waiting {
            self.delete_waiter(&op.resource, op.id);
        } else {
            self.remove(&op.resource, op.id);
        }
    }

    /// The row is deleted even if it was not loaded: the waiters of a replica without a heartbeat are not loaded, and that
    /// replica may be this process.
    fn delete_waiter(&mut self, resource: &Resource, waiter: LeaseId) {
        if !self.remove(resource, waiter) {
            self.ran.changes.left.push(waiter);
        }
    }

    /// Whether the waiter was in the queue.
    fn remove(&mut self, resource: &Resource, waiter: LeaseId) -> bool {
        let held = self.loaded.resources.entry(resource.clone()).or_default();
        let before = held.queue.len();
        held.queue.retain(|waiting| waiting.waiter != waiter);
        let joined = &mut self.ran.changes.joined;
        if let Some(place) = joined.iter().position(|join| join.waiter == waiter) {
            joined.remove(place);
        } else if held.queue.len() < before {
            self.ran.changes.left.push(waiter);
        }
        let is_removed = held.queue.len() < before;
        if is_removed {
            self.touched.insert(resource.clone());
        }
        is_removed
    }

    /// Marks the queue of a free lock as changed, so that its head is notified again in case an earlier notification was lost.
    pub(super) fn touched_line(&mut self, resource: &Resource) {
        let held = self.loaded.resources.get(resource);
        if held.is_some_and(|held| {
            !held.queue.is_empty() && lease::transition::is_free(&held.state, self.loaded.now)
        }) {
            self.touched.insert(resource.clone());
        }
    }

    pub(super) fn name_heads(&mut self) {
        for resource in &self.touched {
            let Some(held) = self.loaded.resources.get(resource) else {
                continue;
            };
            let Some(first) = held.queue.front() else { continue };
            self.ran.heads.push(QueueHead {
                resource: resource.clone(),
                waiter: first.waiter,
                replica: first.replica.clone(),
                in_ms: lease::transition::refusal(&held.state, self.loaded.now).retry_after_ms,
            });
        }
    }
}
