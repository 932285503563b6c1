//! Forced unlock of built-in leases. The generation names a grant by its fencing token, which
//! is never issued again; a reading finds the grant's lease id, and the store revokes exactly
//! that lease. The owner receives actor, reason and audit entry; the token counter stays; the
//! next grant waits for the lock delay, if configured.

use domain::force_release::{Act, Release};
use domain::generation::Generation;
use domain::lease::{EndCause, Lease, LeaseId, Revocation};
use domain::names::{Resource, Source};

use super::{Builtin, failed};
use crate::BackendError;
use crate::release::{Acted, check_generation, confirm_release};
use lease::{Ended, LeaseError};

/// Each grant of a resource has another token, and a renewal keeps it; the grant time
/// distinguishes equal tokens of two resources. Not the lease id: it would be visible to
/// everyone who sees the lock, and only the lease's principal may know it.
pub(super) fn generation(lease: &Lease) -> Generation {
    Generation::new(format!("token:{}:{}", lease.token, lease.acquired_at.ms()))
}

pub(super) async fn release(
    builtin: &Builtin,
    source: &Source,
    resource: &Resource,
    expected: &Generation,
    act: &Act,
) -> Result<Release, BackendError> {
    let now = builtin.read(resource).await?;
    if let Err(answer) = check_generation(&builtin.inspection(resource, &now), expected) {
        return Ok(answer);
    }
    let acted = match &now.holder {
        Some(holder) => revoke(builtin, (resource, holder.lease.id), act).await?,
        None => Acted::Missed,
    };
    confirm_release(builtin, source, resource, expected, acted).await
}

async fn revoke(
    builtin: &Builtin,
    (resource, lease): (&Resource, LeaseId),
    act: &Act,
) -> Result<Acted, BackendError> {
    let revocation = Revocation {
        by: act.by.clone(),
        reason: act.reason.clone(),
        audit_id: act.audit_id.clone(),
    };
    let delay = builtin.service.lock_delay();
    match builtin.service.revoke(lease, revocation, delay).await {
        Ok(Ended::Now(ended)) => {
            let traced = builtin.service.traced();
            traced.revoked(resource, ended.token.number());
            Ok(Acted::Done)
        }
        // A repeat of the same release after its response was lost.
        Ok(Ended::Before(EndCause::Revoked(before))) if before.audit_id == act.audit_id => Ok(Acted::Done),
        Ok(Ended::Before(_)) | Err(LeaseError::NotFound) => Ok(Acted::Missed),
        Err(error @ (LeaseError::Unavailable | LeaseError::ShuttingDown)) => {
            Ok(Acted::unanswered(&failed(error)))
        }
        Err(LeaseError::Invalid(invalid)) => Ok(Acted::Refused {
            why: invalid.to_string(),
            remedy: "Give actor and reason without control characters, each in 1 to 2048 bytes.".to_owned(),
        }),
        Err(error) => Err(failed(error)),
    }
}
