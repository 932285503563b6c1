//! Held leases as observed locks.

use std::sync::Arc;

use chrono::DateTime;
use domain::generation::Generation;
use domain::lease::{Lease, StoreTime};
use domain::names::{OwnerId, Resource};
use domain::observation::{InLine, Lifetime, ObservedLock, WaitIdentity};
use domain::reported::Reported;
use domain::waits::{IdentityField, WaitParty};
use lease::ResourceNow;
use lease::store::{HeldRow, Read, WaiterView};

use super::stale_writes::ByResource;
use super::{Builtin, release, stale_writes};

/// A lease id authorizes ending the lease, so the inventory does not carry it.
const LEASE_ID_HIDDEN: &str = "a lease id is shown to the principal of the lease alone";

pub(super) fn to_datetime(time: StoreTime) -> DateTime<chrono::Utc> {
    DateTime::from_timestamp_millis(time.ms()).unwrap_or_default()
}

fn observed(
    resource: &Resource,
    lease: &Lease,
    now: StoreTime,
    waiters: u32,
    oldest: Option<i64>,
) -> ObservedLock {
    ObservedLock {
        source: Builtin::source(),
        resource: resource.clone(),
        owner: Reported::Value(lease.owner.clone()),
        owner_count: 1,
        sharers: Vec::new(),
        lease_id: Reported::unknown(LEASE_ID_HIDDEN),
        generation: Reported::Value(release::generation(lease)),
        fencing_token: Reported::Value(lease.token),
        acquired_at: Reported::Value(to_datetime(lease.acquired_at)),
        renewed_at: Reported::Value(to_datetime(lease.renewed_at)),
        lifetime: Lifetime::Leased {
            remaining_ms: lease.expires_at.since(now),
            ttl_ms: Reported::Value(lease.ttl.ms()),
        },
        waiter_count: Reported::Value(waiters),
        oldest_waiter_ms: oldest,
        line: Vec::new(),
        condition: None,
    }
}

pub(super) fn rows(
    read: &Read<Vec<HeldRow>>,
    stale_writes: &ByResource,
) -> impl Iterator<Item = ObservedLock> {
    read.value.iter().map(|row| {
        let oldest = row.first_since.map(|since| read.now.since(since).max(0));
        let write = stale_writes.get(&row.resource);
        ObservedLock {
            condition: stale_writes::condition(&row.lease, write, read.now),
            line: wait_queue(row, read.now),
            ..observed(&row.resource, &row.lease, read.now, row.waiters, oldest)
        }
    })
}

/// The service records waits itself: these are for the graph of waits.
fn wait_queue(row: &HeldRow, now: StoreTime) -> Vec<InLine> {
    let party = |owner: &OwnerId| {
        let fields = [(IdentityField::Owner, Some(owner.as_str()))];
        Arc::new(WaitParty::new(owner.as_str(), owner.clone(), fields))
    };
    let holder = party(&row.lease.owner);
    let queued = |(at, waiter): (usize, &WaiterView)| InLine {
        generation: Generation::new(format!("queue:{at}")),
        waited_ms: Some(now.since(waiter.since).max(0)),
        identity: Some(Box::new(WaitIdentity {
            party: party(&waiter.owner),
            wants: None,
            blocked_by: vec![holder.clone()],
            more_blockers: 0,
        })),
    };
    row.queue.iter().enumerate().map(queued).collect()
}

pub(super) fn from_resource(resource: &Resource, now: &ResourceNow) -> Option<ObservedLock> {
    let holder = now.holder.as_ref()?;
    let waiters = u32::try_from(now.waiters.len()).unwrap_or(u32::MAX);
    let oldest = now.waiters.first().map(|waiter| waiter.waited_ms);
    Some(observed(resource, &holder.lease, holder.now, waiters, oldest))
}
