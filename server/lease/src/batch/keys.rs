//! Idempotency keys: their bindings and the replay of earlier results.

use domain::lease::invariants::InvariantError;
use domain::lease::limits::KEY_WINDOW_MS;
use domain::lease::{Command, LeaseId};

use super::{KeyRow, Run};
use crate::operation::{AcquireMode, AcquireOp, IdempotencyKey, OperationResult};

impl Run<'_> {
    /// The earlier result for a known key; `None` if the request must run.
    pub(super) fn replay(
        &mut self,
        key: &IdempotencyKey,
        op: &AcquireOp,
    ) -> Result<Option<OperationResult>, InvariantError> {
        let now = self.loaded.now;
        let Some(known) = self.bound(key) else {
            self.bind(key, None);
            return Ok(None);
        };
        if known.fingerprint != key.fingerprint {
            return Ok(Some(OperationResult::KeyReused));
        }
        let lease = known.lease.and_then(|id| self.lease(&op.resource, id));
        let Some(lease) = lease.cloned() else {
            return Ok(None);
        };
        if op.mode == AcquireMode::Waiting {
            self.remove(&op.resource, op.id);
        }
        if lease.ending.is_none() && !lease.lives_at(now) {
            // An expiry is stored before an answer reports it.
            if let OperationResult::Expired(lease) = self.step(&op.resource, &Command::Expire)?
                && let Some(ending) = lease.ending.clone()
            {
                return Ok(Some(OperationResult::Lost(lease, ending)));
            }
        }
        Ok(Some(match lease.ending_at(now) {
            Some(ending) => OperationResult::Lost(lease, ending),
            None => OperationResult::Acquired {
                lease,
                reclaimed: false,
                replayed: true,
            },
        }))
    }

    /// Binds a key to its request, unless it is bound already.
    pub(super) fn claim(&mut self, key: &IdempotencyKey) -> OperationResult {
        match self.bound(key) {
            Some(known) if known.fingerprint != key.fingerprint => OperationResult::KeyReused,
            Some(_) => OperationResult::Nothing,
            None => {
                self.bind(key, None);
                OperationResult::Nothing
            }
        }
    }

    /// The row of a key within its window: as this batch binds it, otherwise as it was read.
    fn bound(&self, key: &IdempotencyKey) -> Option<&KeyRow> {
        let changed = self.ran.changes.keys.get(&key.name);
        changed
            .or_else(|| self.loaded.keys.get(&key.name))
            .filter(|row| self.loaded.now.since(row.created_at) < KEY_WINDOW_MS)
    }

    pub(super) fn bind(&mut self, key: &IdempotencyKey, lease: Option<LeaseId>) {
        let row = KeyRow {
            fingerprint: key.fingerprint.clone(),
            lease,
            created_at: self.loaded.now,
        };
        self.ran.changes.keys.insert(key.name.clone(), row);
    }
}
