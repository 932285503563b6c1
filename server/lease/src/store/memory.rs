//! In-memory model store: the same batches on plain maps. Tests compare the real stores with it;
//! it never serves.

use std::collections::HashMap;
use std::sync::Arc;

use domain::lease::invariants::InvariantError;
use domain::lease::{Lease, LeaseId, StoreTime};
use domain::names::Resource;

use crate::batch::{BatchResult, HeldLease, KeyRow, Loaded, QueueEntry, run};
use crate::operation::{KeyName, Operation};

#[derive(Debug, Default)]
pub struct Model {
    pub resources: HashMap<Resource, HeldLease>,
    pub leases: HashMap<LeaseId, (Resource, Lease)>,
    pub keys: HashMap<KeyName, KeyRow>,
}

impl Model {
    /// Applies a batch at the given store time.
    ///
    /// # Errors
    /// As [`run`].
    pub fn apply(
        &mut self,
        operations: &[Operation],
        now: StoreTime,
        replica: &Arc<str>,
    ) -> Result<BatchResult, InvariantError> {
        let loaded = Loaded {
            now,
            floor: 0,
            margin_ms: 0,
            resources: self.resources.clone(),
            lease_resources: self
                .leases
                .iter()
                .map(|(id, (resource, _))| (*id, resource.clone()))
                .collect(),
            old_leases: self
                .leases
                .iter()
                .map(|(id, (_, lease))| (*id, lease.clone()))
                .collect(),
            keys: self.keys.clone(),
        };
        let ran = run(loaded, operations, replica)?;
        for (id, change) in &ran.changes.leases {
            self.leases
                .insert(*id, (change.resource.clone(), change.lease.clone()));
            let held = self.resources.entry(change.resource.clone()).or_default();
            let newest = held
                .state
                .lease
                .as_ref()
                .is_none_or(|lease| lease.token <= change.lease.token);
            if newest {
                held.state.lease = Some(change.lease.clone());
                held.state.touched_at = now.max(held.state.touched_at);
            }
        }
        for (resource, (_, state)) in &ran.changes.resources {
            let held = self.resources.entry(resource.clone()).or_default();
            held.state.last_token = state.last_token;
            held.state.locked_until = state.locked_until;
        }
        for name in &ran.changes.unbound {
            self.keys.remove(name);
        }
        self.keys.extend(ran.changes.keys.clone());
        for held in self.resources.values_mut() {
            held.queue
                .retain(|position| !ran.changes.left.contains(&position.waiter));
        }
        for joined in &ran.changes.joined {
            let held = self.resources.entry(joined.resource.clone()).or_default();
            held.queue.push_back(QueueEntry {
                waiter: joined.waiter,
                replica: replica.clone(),
            });
        }
        Ok(ran)
    }
}
