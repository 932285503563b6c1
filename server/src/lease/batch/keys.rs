//! Idempotency keys: what a key was bound to, and what a request with a known key answers.

use domain::lease::invariants::Broken;
use domain::lease::limits::KEY_WINDOW_MS;
use domain::lease::{Command, LeaseId};

use super::{KeyRow, Run};
use crate::lease::operation::{AcquireOp, Done, Key, Turn};

impl Run<'_> {
    /// What a key that was used before answers; none when the request is to be run.
    pub(super) fn replay(&mut self, key: &Key, op: &AcquireOp) -> Result<Option<Done>, Broken> {
        let now = self.loaded.now;
        let known = self.loaded.keys.get(&key.name);
        let Some(known) = known.filter(|row| now.since(row.created_at) < KEY_WINDOW_MS) else {
            self.bind(key, None);
            return Ok(None);
        };
        if known.fingerprint != key.fingerprint {
            return Ok(Some(Done::KeyReused));
        }
        let lease = known.lease.and_then(|id| self.lease(&op.resource, id));
        let Some(lease) = lease.cloned() else {
            return Ok(None);
        };
        if op.turn == Turn::Waiting {
            self.remove(&op.resource, op.id);
        }
        if lease.ending.is_none() && !lease.lives_at(now) {
            // An expiry is stored before an answer reports it.
            if let Done::Expired(lease) = self.step(&op.resource, &Command::Expire)?
                && let Some(ending) = lease.ending.clone()
            {
                return Ok(Some(Done::Lost(lease, ending)));
            }
        }
        Ok(Some(match lease.ending_at(now) {
            Some(ending) => Done::Lost(lease, ending),
            None => Done::Acquired {
                lease,
                reclaimed: false,
                replayed: true,
            },
        }))
    }

    pub(super) fn bind(&mut self, key: &Key, lease: Option<LeaseId>) {
        let row = KeyRow {
            fingerprint: key.fingerprint.clone(),
            lease,
            created_at: self.loaded.now,
        };
        self.loaded.keys.insert(key.name.clone(), row.clone());
        self.ran.changes.keys.insert(key.name.clone(), row);
    }
}
