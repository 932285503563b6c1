//! Forced unlock of our own leases: the lease is revoked by its id. Its owner is told who, why and under which record;
//! the token's counter stays; the next grant waits for the lock-delay, where one is configured.

use domain::generation::Generation;
use domain::lease::{How, LeaseId, Revocation};
use domain::names::{Resource, Source};
use domain::observation::Inspection;
use domain::release::{Act, Release};

use super::{Builtin, failed};
use crate::backends::release::{Acted, same, settle};
use crate::backends::{Backend, BackendError};
use crate::lease::{Ended, LeaseError};

const PREFIX: &str = "lease:";

/// A lease's id is its generation: every grant has another one, a renewal keeps it.
pub(super) fn generation(lease: LeaseId) -> Generation {
    Generation::new(format!("{PREFIX}{lease}"))
}

pub(super) async fn release(
    builtin: &Builtin,
    source: &Source,
    resource: &Resource,
    wanted: &Generation,
    act: &Act,
) -> Result<Release, BackendError> {
    let seen = builtin.inspect(source, resource).await?;
    if let Err(answer) = same(&seen, wanted) {
        return Ok(answer);
    }
    let id = wanted.as_str().strip_prefix(PREFIX).and_then(LeaseId::parse);
    let acted = match id {
        Some(id) => revoke(builtin, (id, &seen), act).await?,
        None => Acted::Missed,
    };
    settle(builtin, source, resource, wanted, acted).await
}

async fn revoke(
    builtin: &Builtin,
    (lease, seen): (LeaseId, &Inspection),
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
            if let Some(lock) = &seen.lock {
                builtin
                    .service
                    .traced()
                    .revoked(&lock.resource, ended.token.number());
            }
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
