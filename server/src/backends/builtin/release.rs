//! Forced unlock of our own leases. The generation names the grant by its fencing token, which its resource never issues
//! again; a reading finds the lease id of that grant, and the store revokes the lease of this id or none. Its owner receives
//! who, why and the audit entry; the token's counter stays; the next grant waits for the lock-delay, where one is configured.

use domain::generation::Generation;
use domain::lease::{How, Lease, LeaseId, Revocation};
use domain::names::{Resource, Source};
use domain::release::{Act, Release};

use super::{Builtin, failed};
use crate::backends::BackendError;
use crate::backends::release::{Acted, same, settle};
use crate::lease::{Ended, LeaseError};

/// Each grant of a resource has another token, and a renewal keeps it; the time of the grant tells apart equal tokens of two
/// resources. Not the lease id: everyone who sees the lock sees its generation, and only the lease's principal may know the id.
pub(super) fn generation(lease: &Lease) -> Generation {
    Generation::new(format!("token:{}:{}", lease.token, lease.acquired_at.ms()))
}

pub(super) async fn release(
    builtin: &Builtin,
    source: &Source,
    resource: &Resource,
    wanted: &Generation,
    act: &Act,
) -> Result<Release, BackendError> {
    let now = builtin.read(resource).await?;
    if let Err(answer) = same(&builtin.inspection(resource, &now), wanted) {
        return Ok(answer);
    }
    let acted = match &now.holder {
        Some(holder) => revoke(builtin, (resource, holder.lease.id), act).await?,
        None => Acted::Missed,
    };
    settle(builtin, source, resource, wanted, acted).await
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
        // Our own act, asked for again after its answer was lost.
        Ok(Ended::Before(How::Revoked(before))) if before.audit_id == act.audit_id => Ok(Acted::Done),
        Ok(Ended::Before(_)) | Err(LeaseError::NotFound) => Ok(Acted::Missed),
        Err(error @ (LeaseError::Unavailable | LeaseError::ShuttingDown)) => {
            Ok(Acted::unanswered(&failed(error)))
        }
        Err(LeaseError::Invalid(invalid)) => Ok(Acted::Refused {
            why: invalid.to_string(),
            mend: "Say who and why without control characters, each in 1 to 2048 bytes.".to_owned(),
        }),
        Err(error) => Err(failed(error)),
    }
}
