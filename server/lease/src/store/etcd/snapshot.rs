//! State of one resource at one revision, with the revisions that a transaction compares.

use std::collections::HashMap;
use std::sync::Arc;

use domain::lease::{Lease, LeaseId, StoreTime};
use domain::names::Resource;
use etcd_client::{Compare, CompareOp, GetOptions, KeyValue, TxnOp, TxnOpResponse};

use super::keys::{KeyRange, Keys};
use super::values::{self, IdempotencyValue, LeaseRecord, StateValue, WaiterValue, decode};
use crate::batch::{ByLease, HeldLease, KeyRow, QueueEntry};
use crate::operation::{KeyName, Operation};
use crate::store::StoreError;

/// Rows that the operations on one resource need.
#[derive(Debug, Clone)]
pub(super) struct SnapshotRequest {
    pub(super) resource: Resource,
    pub(super) leases: Vec<LeaseId>,
    pub(super) keys: Vec<KeyName>,
}

#[derive(Debug, Clone)]
pub(super) struct Snapshot {
    pub(super) held: HeldLease,
    /// Revisions of the keys of the resource; 0: the key does not exist.
    pub(super) held_revision: i64,
    pub(super) free_revision: i64,
    /// Id of the transaction that wrote the state.
    pub(super) write: Option<String>,
    pub(super) ended: ByLease<Lease>,
    /// The bound keys, and the revision of each requested key.
    pub(super) bound: HashMap<KeyName, KeyRow>,
    pub(super) key_revisions: Vec<(KeyName, i64)>,
}

impl SnapshotRequest {
    pub(super) fn new(resource: Resource, operations: &[&Operation]) -> Self {
        let mut request = Self {
            resource,
            leases: Vec::new(),
            keys: Vec::new(),
        };
        for operation in operations {
            match operation {
                Operation::Acquire(op) => {
                    request.add_key(op.key.as_ref().map(|key| &key.name));
                }
                Operation::ClaimKey(key) => request.add_key(Some(&key.name)),
                Operation::Release { lease, unbind, .. } => {
                    request.add_lease(*lease);
                    request.add_key(unbind.as_ref());
                }
                Operation::Renew { lease, .. } | Operation::Revoke { lease, .. } => request.add_lease(*lease),
                Operation::Expire { .. } | Operation::Leave { .. } | Operation::Reject(_) => {}
            }
        }
        request
    }

    fn add_lease(&mut self, lease: LeaseId) {
        if !self.leases.contains(&lease) {
            self.leases.push(lease);
        }
    }

    fn add_key(&mut self, name: Option<&KeyName>) {
        if let Some(name) = name
            && !self.keys.contains(name)
        {
            self.keys.push(name.clone());
        }
    }

    /// Reads of the snapshot, in the order of [`Snapshot::parse`].
    pub(super) fn reads(&self, keys: &Keys) -> Vec<TxnOp> {
        let mut reads = vec![
            TxnOp::get(keys.held(&self.resource), None),
            TxnOp::get(keys.free(&self.resource), None),
            get_range(keys.queue(&self.resource), GetOptions::new()),
        ];
        reads.extend(self.leases.iter().map(|id| TxnOp::get(keys.lease(*id), None)));
        reads.extend(
            self.keys
                .iter()
                .map(|key| TxnOp::get(keys.idempotency(key), None)),
        );
        reads
    }
}

pub(super) fn get_range(range: KeyRange, options: GetOptions) -> TxnOp {
    TxnOp::get(range.from, Some(options.with_range(range.to)))
}

/// The key-value pairs of each read of a transaction.
pub(super) fn read_results(responses: Vec<TxnOpResponse>) -> Vec<Vec<KeyValue>> {
    responses
        .into_iter()
        .map(|response| match response {
            TxnOpResponse::Get(mut response) => response.take_kvs(),
            _ => Vec::new(),
        })
        .collect()
}

impl Snapshot {
    /// A resource as it is before its first lease; the keys of the request are assumed to be new.
    pub(super) fn empty(request: &SnapshotRequest) -> Self {
        Self {
            held: values::empty(),
            held_revision: 0,
            free_revision: 0,
            write: None,
            ended: ByLease::default(),
            bound: HashMap::new(),
            key_revisions: request.keys.iter().map(|key| (key.clone(), 0)).collect(),
        }
    }

    /// From the results of [`SnapshotRequest::reads`].
    ///
    /// # Errors
    /// `Corrupt`.
    pub(super) fn parse(
        request: &SnapshotRequest,
        results: impl IntoIterator<Item = Vec<KeyValue>>,
    ) -> Result<Self, StoreError> {
        let mut results = results.into_iter();
        let mut next = || results.next().unwrap_or_default();
        let mut snapshot = Self::empty(request);
        let (held, free) = (next(), next());
        snapshot.held_revision = held.first().map_or(0, KeyValue::mod_revision);
        snapshot.free_revision = free.first().map_or(0, KeyValue::mod_revision);
        if let Some(found) = held.first().or(free.first()) {
            let value: StateValue = decode(found.key(), found.value())?;
            snapshot.write = Some(value.write.clone());
            snapshot.held.state = value.into_state()?;
        }
        for (_, waiter, value) in parse_queue(&next())? {
            snapshot.held.queue.push_back(QueueEntry {
                waiter,
                replica: value.replica.into(),
            });
        }
        for _ in &request.leases {
            if let Some(found) = next().first() {
                let record: LeaseRecord = decode(found.key(), found.value())?;
                if let Some(lease) = record.ended {
                    let lease = lease.into_lease()?;
                    snapshot.ended.insert(lease.id, lease);
                }
            }
        }
        for (key, revision) in &mut snapshot.key_revisions {
            if let Some(found) = next().first() {
                *revision = found.mod_revision();
                let value: IdempotencyValue = decode(found.key(), found.value())?;
                let row = KeyRow {
                    fingerprint: value.fingerprint.into(),
                    lease: value.lease,
                    is_claimed: value.is_claimed,
                    created_at: StoreTime::from_ms(value.created_at),
                };
                snapshot.bound.insert(key.clone(), row);
            }
        }
        Ok(snapshot)
    }

    /// Leases of bound keys that are not part of the snapshot.
    pub(super) fn missing_leases(&self) -> Vec<LeaseId> {
        let newest = self.held.state.lease.as_ref().map(|lease| lease.id);
        let bound = self.bound.values().filter_map(|row| row.lease);
        bound
            .filter(|id| Some(*id) != newest && !self.ended.contains_key(id))
            .collect()
    }

    /// Holds while the state is as in this snapshot.
    pub(super) fn compare_state(&self, keys: &Keys, resource: &Resource) -> [Compare; 2] {
        [
            Compare::mod_revision(keys.held(resource), CompareOp::Equal, self.held_revision),
            Compare::mod_revision(keys.free(resource), CompareOp::Equal, self.free_revision),
        ]
    }

    /// Holds while the idempotency keys are as in this snapshot.
    pub(super) fn compare_keys(&self, keys: &Keys) -> impl Iterator<Item = Compare> {
        self.key_revisions
            .iter()
            .map(|(key, revision)| Compare::mod_revision(keys.idempotency(key), CompareOp::Equal, *revision))
    }
}

/// Waiters in the order in which they joined, each with the name of its key.
///
/// # Errors
/// `Corrupt`.
pub(super) fn parse_queue(found: &[KeyValue]) -> Result<Vec<(Vec<u8>, LeaseId, WaiterValue)>, StoreError> {
    let mut waiters = Vec::with_capacity(found.len());
    for pair in found {
        let value: WaiterValue = decode(pair.key(), pair.value())?;
        let end = pair
            .key()
            .iter()
            .rposition(|byte| *byte == 0)
            .map_or(0, |place| place + 1);
        let id = std::str::from_utf8(&pair.key()[end..])
            .ok()
            .and_then(LeaseId::parse);
        let id = id.ok_or_else(|| StoreError::Corrupt(domain::escape::text(pair.key()).into_owned()))?;
        waiters.push((pair.create_revision(), pair.key().to_vec(), id, value));
    }
    waiters.sort_by_key(|(revision, _, _, value)| (*revision, value.place));
    Ok(waiters
        .into_iter()
        .map(|(_, key, id, value)| (key, id, value))
        .collect())
}

/// A waiter's replica, shared.
pub(super) fn replica(text: &str) -> Arc<str> {
    text.into()
}
