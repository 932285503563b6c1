//! The writes of a transaction on one resource.

use domain::lease::StoreTime;
use etcd_client::{PutOptions, TxnOp};

use super::keys::Keys;
use super::snapshot::{Snapshot, SnapshotRequest};
use super::values::{
    IdempotencyValue, LeaseRecord, LeaseValue, RejectionValue, StateValue, WaiterValue, encode,
};
use crate::batch::BatchResult;
use crate::store::StoreError;

/// Resources of one transaction.
pub(super) const RESOURCES_MAX: usize = 32;
/// Operations on one resource of a transaction. Each writes at most four keys, and etcd allows 128 operations in a nested
/// transaction and the one around it together, which has two of its own.
pub(super) const RESOURCE_OPERATIONS_MAX: usize = 23;
const _: () = assert!(2 + RESOURCES_MAX + RESOURCE_OPERATIONS_MAX * 4 + 2 <= 128);

pub(super) struct ResourceWrites {
    pub(super) operations: Vec<TxnOp>,
    /// Whether the state is written, or its queue: every such write changes the revision of the state.
    pub(super) has_state: bool,
}

/// Where a write comes from.
#[derive(Clone, Copy)]
pub(super) struct WriteOrigin<'a> {
    /// Id of the nested transaction.
    pub(super) id: &'a str,
    /// The etcd lease of the waiters.
    pub(super) lease: i64,
    pub(super) replica: &'a str,
    /// Place of the first fencing rejection: those of one revision are numbered across its resources.
    pub(super) first_rejection: usize,
}

/// # Errors
/// A value cannot be encoded.
pub(super) fn writes(
    keys: &Keys,
    request: &SnapshotRequest,
    snapshot: &Snapshot,
    ran: &BatchResult,
    origin: WriteOrigin<'_>,
    now: StoreTime,
) -> Result<ResourceWrites, StoreError> {
    let changes = &ran.changes;
    let mut operations = Vec::new();
    let has_state = !changes.resources.is_empty()
        || !changes.leases.is_empty()
        || !changes.keys.is_empty()
        || !changes.unbound.is_empty()
        || !changes.joined.is_empty()
        || !changes.left.is_empty();
    // Claims of keys have no resource: they compare the keys alone.
    if has_state
        && !request.resource.as_bytes().is_empty()
        && let Some(after) = ran.after.get(&request.resource)
    {
        operations.extend(state(
            keys,
            request,
            snapshot,
            &StateValue::new(&after.state, origin.id.to_owned()),
            after,
        )?);
    }
    for change in changes.leases.values() {
        let has_ended = change.lease.ending.is_some();
        if has_ended || change.is_new {
            let record = LeaseRecord {
                resource: change.resource.text(),
                ended: has_ended.then(|| LeaseValue::new(&change.lease)),
            };
            operations.push(TxnOp::put(keys.lease(change.lease.id), encode(&record)?, None));
        }
    }
    for (name, row) in &changes.keys {
        let value = IdempotencyValue {
            fingerprint: row.fingerprint.to_string(),
            lease: row.lease,
            is_claimed: row.is_claimed,
            created_at: row.created_at.ms(),
        };
        operations.push(TxnOp::put(keys.idempotency(name), encode(&value)?, None));
    }
    // A transaction writes each key once.
    let deleted = changes
        .unbound
        .iter()
        .filter(|name| !changes.keys.contains_key(*name));
    operations.extend(deleted.map(|name| TxnOp::delete(keys.idempotency(name), None)));
    let left = changes
        .left
        .iter()
        .map(|waiter| keys.waiter(&request.resource, *waiter));
    operations.extend(left.map(|key| TxnOp::delete(key, None)));
    operations.extend(additions(keys, ran, origin, now)?);
    Ok(ResourceWrites {
        operations,
        has_state,
    })
}

/// New waiters and rejections.
fn additions(
    keys: &Keys,
    ran: &BatchResult,
    origin: WriteOrigin<'_>,
    now: StoreTime,
) -> Result<Vec<TxnOp>, StoreError> {
    let mut operations = Vec::new();
    for (place, joined) in (0..).zip(&ran.changes.joined) {
        let value = WaiterValue {
            owner: joined.owner.to_string(),
            replica: origin.replica.to_owned(),
            since: now.ms(),
            place,
        };
        let options = PutOptions::new().with_lease(origin.lease);
        let key = keys.waiter(&joined.resource, joined.waiter);
        operations.push(TxnOp::put(key, encode(&value)?, Some(options)));
    }
    for (place, rejection) in (origin.first_rejection..).zip(&ran.changes.rejections) {
        let value = RejectionValue::new(rejection, now, u32::try_from(place).unwrap_or(u32::MAX));
        let key = keys.rejection(now.ms(), &format!("{}{place:03}", origin.id));
        operations.push(TxnOp::put(key, encode(&value)?, None));
    }
    Ok(operations)
}

/// The state moves between `held/` and `free/`.
fn state(
    keys: &Keys,
    request: &SnapshotRequest,
    snapshot: &Snapshot,
    value: &StateValue,
    after: &crate::batch::HeldLease,
) -> Result<Vec<TxnOp>, StoreError> {
    let (held, free) = (keys.held(&request.resource), keys.free(&request.resource));
    let is_held = after
        .state
        .lease
        .as_ref()
        .is_some_and(|lease| lease.ending.is_none());
    let (to, from, from_revision) = if is_held {
        (held, free, snapshot.free_revision)
    } else {
        (free, held, snapshot.held_revision)
    };
    let mut operations = vec![TxnOp::put(to, encode(value)?, None)];
    if from_revision > 0 {
        operations.push(TxnOp::delete(from, None));
    }
    Ok(operations)
}
