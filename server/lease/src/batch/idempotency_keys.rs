//! Idempotency keys: their bindings and the replay of earlier results.

use domain::lease::invariants::InvariantError;
use domain::lease::limits::KEY_WINDOW_MS;
use domain::lease::{Command, Lease, LeaseId};

use super::{KeyRow, Run};
use crate::operation::{AcquireMode, AcquireOp, IdempotencyKey, KeyName, OperationResult};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unbinding {
    /// The key is not bound to the lease, or no longer.
    Done,
    /// A client has the lease: it must not be released.
    Claimed,
}

impl Run<'_> {
    /// The earlier result for a known key; `None` if the request must run.
    pub(super) fn replay(
        &mut self,
        key: &IdempotencyKey,
        op: &AcquireOp,
    ) -> Result<Option<OperationResult>, InvariantError> {
        let Some(mut known) = self.bound(key).cloned() else {
            self.bind(key, None, false);
            return Ok(None);
        };
        if known.fingerprint != key.fingerprint {
            return Ok(Some(OperationResult::KeyReused));
        }
        let lease = known.lease.and_then(|id| self.lease(&op.resource, id));
        let Some(lease) = lease.cloned() else {
            return Ok(None);
        };
        let is_own = lease.id == op.id;
        let result = self.earlier_grant(op, lease)?;
        if !is_own && !known.is_claimed && matches!(result, OperationResult::Acquired { .. }) {
            known.is_claimed = true;
            self.ran.changes.keys.insert(key.name.clone(), known);
        }
        Ok(Some(result))
    }

    /// The result of an operation whose lease was granted before. A lease with the operation's own id was granted by an
    /// attempt whose answer was lost.
    pub(super) fn earlier_grant(
        &mut self,
        op: &AcquireOp,
        lease: Lease,
    ) -> Result<OperationResult, InvariantError> {
        let now = self.loaded.now;
        if op.mode == AcquireMode::Waiting {
            self.end_wait(op);
        }
        if lease.ending.is_none() && !lease.lives_at(now) {
            // An expiry is stored before an answer reports it.
            if let OperationResult::Expired(lease) = self.step(&op.resource, &Command::Expire)?
                && let Some(ending) = lease.ending.clone()
            {
                return Ok(OperationResult::Lost(lease, ending));
            }
        }
        if let Some(ending) = lease.ending_at(now) {
            return Ok(OperationResult::Lost(lease, ending));
        }
        let replayed = lease.id != op.id;
        Ok(OperationResult::Acquired {
            lease,
            reclaimed: false,
            replayed,
        })
    }

    /// Binds a key to its request, unless it is bound already.
    pub(super) fn claim(&mut self, key: &IdempotencyKey) -> OperationResult {
        match self.bound(key) {
            Some(known) if known.fingerprint != key.fingerprint => OperationResult::KeyReused,
            Some(_) => OperationResult::Nothing,
            None => {
                self.bind(key, None, false);
                OperationResult::Nothing
            }
        }
    }

    /// Whether the key of a waiter that joins the queue was bound before.
    pub(super) fn is_repeated(&self, op: &AcquireOp) -> bool {
        op.mode == AcquireMode::OrWait && op.key.as_ref().is_some_and(|key| self.bound(key).is_some())
    }

    /// The row of a key within its window: as this batch binds it, otherwise as it was read.
    fn bound(&self, key: &IdempotencyKey) -> Option<&KeyRow> {
        let changed = self.ran.changes.keys.get(&key.name);
        changed
            .or_else(|| self.loaded.keys.get(&key.name))
            .filter(|row| self.loaded.now.since(row.created_at) < KEY_WINDOW_MS)
    }

    pub(super) fn bind(&mut self, key: &IdempotencyKey, lease: Option<LeaseId>, is_claimed: bool) {
        let row = KeyRow {
            fingerprint: key.fingerprint.clone(),
            lease,
            is_claimed,
            created_at: self.loaded.now,
        };
        self.ran.changes.keys.insert(key.name.clone(), row);
    }

    /// Deletes the key of a lease that no client has received, so that a retry does not get it.
    pub(super) fn unbind(&mut self, name: &KeyName, lease: LeaseId) -> Unbinding {
        let changed = self.ran.changes.keys.get(name);
        let Some(row) = changed.or_else(|| self.loaded.keys.get(name)) else {
            return Unbinding::Done;
        };
        if row.lease != Some(lease) {
            return Unbinding::Done;
        }
        if row.is_claimed {
            return Unbinding::Claimed;
        }
        self.ran.changes.keys.remove(name);
        if self.loaded.keys.remove(name).is_some() {
            self.ran.changes.unbound.push(name.clone());
        }
        Unbinding::Done
    }
}
