//! What happens to leases as log events, for whoever reads logs by machine: `event`, `resource`, `leaseId` and the like.
//!
//! Each grant and release is a line at `debug` under `leasehold::lock`: a busy service would log little else. What an owner
//! or an operator should hear of is at `info`. Written where the request is, so that its trace is with it.

use domain::lease::{How, Lease, LeaseId};
use domain::names::Resource;

macro_rules! tell {
    ($level:ident, $event:literal, $lease:expr, $($rest:tt)*) => {
        tracing::$level!(
            target: "leasehold::lock",
            event = $event,
            ownerId = %$lease.owner,
            leaseId = %$lease.id,
            fencingToken = $lease.token.number(),
            ttlSeconds = $lease.ttl.seconds(),
            $($rest)*
        )
    };
}

pub(super) fn acquired(resource: &Resource, lease: &Lease) {
    tell!(debug, "lock_acquired", lease, resource = %resource.text(), "a lease was granted");
}

pub(super) fn released(lease: &Lease) {
    tell!(debug, "lock_released", lease, "a lease was given back");
}

pub(super) fn revoked(lease: &Lease, audit_id: &str) {
    tell!(
        info,
        "lock_revoked",
        lease,
        auditId = audit_id,
        "a lease was revoked"
    );
}

pub(super) fn lost(lease: LeaseId, how: &How) {
    tracing::info!(target: "leasehold::lock", event = "lock_lost", leaseId = %lease, cause = cause(how), "an owner learnt that its lease had ended");
}

pub(super) const fn cause(how: &How) -> &'static str {
    match how {
        How::Expired => "expired",
        How::Released => "released",
        How::Revoked(_) => "revoked",
    }
}
