//! Lease transitions as structured log events (`event`, `resource`, `leaseId` and others).
//!
//! Grants and releases are logged at `debug` under `leasehold::lock` because a busy service has
//! thousands per second; losses and revocations at `info`. Logged inside the request's span, so
//! that the events carry its trace.

use domain::lease::{EndCause, Lease, LeaseId};
use domain::names::Resource;

macro_rules! log_lease {
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
    log_lease!(debug, "lock_acquired", lease, resource = %resource.text(), "a lease was granted");
}

pub(super) fn released(lease: &Lease) {
    log_lease!(debug, "lock_released", lease, "a lease was released");
}

pub(super) fn revoked(lease: &Lease, audit_id: &str) {
    log_lease!(
        info,
        "lock_revoked",
        lease,
        auditId = audit_id,
        "a lease was revoked"
    );
}

pub(super) fn lost(lease: LeaseId, how: &EndCause) {
    tracing::info!(target: "leasehold::lock", event = "lock_lost", leaseId = %lease, cause = cause(how), "a lease operation failed: the lease had ended");
}

pub(super) const fn cause(how: &EndCause) -> &'static str {
    match how {
        EndCause::Expired => "expired",
        EndCause::Released => "released",
        EndCause::Revoked(_) => "revoked",
    }
}
