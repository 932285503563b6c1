//! Shared parts of forced unlocks: comparing the named holding with the current one.
//!
//! Changes nothing. The release itself, with its guard inside the backend, is each adapter's.

use domain::force_release::{Holding, Release};
use domain::generation::Generation;
use domain::names::{Resource, Source};
use domain::observation::Inspection;
use domain::reported::Reported;

use super::{Backend, BackendError};

/// Readings of a lock with an unknown holder before "refused" is the result.
const ATTEMPTS_MAX: u32 = 5;

/// Result of a release before the lock is read again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Acted {
    Done,
    /// The guard did not match: nothing was touched.
    Missed,
    Refused {
        why: String,
        remedy: String,
    },
    Unknown {
        why: String,
    },
}

impl Acted {
    /// Failed before it could change anything.
    pub(super) fn refused(error: &BackendError) -> Self {
        Self::Refused {
            why: error.to_string(),
            remedy: error.remedy(),
        }
    }

    /// It was sent and no response came.
    pub(super) fn unanswered(error: &BackendError) -> Self {
        Self::Unknown {
            why: format!("the release was sent, but its answer was lost: {error}"),
        }
    }
}

/// An error of the account for forced unlocks: an adapter's own remedy names the settings of the watching account.
pub(super) fn explain_unlock_account(error: BackendError, remedy: &str) -> BackendError {
    match error {
        BackendError::Denied { detail, .. } => BackendError::Denied {
            detail: format!("the account for forced unlocks: {detail}"),
            remedy: remedy.to_owned(),
        },
        other => other,
    }
}

/// Whether the named holding is the one just read. `Err` is the result if it is not.
pub(super) fn check_generation(seen: &Inspection, generation: &Generation) -> Result<(), Release> {
    let Some(lock) = &seen.lock else {
        return Err(Release::AlreadyFree);
    };
    match &lock.generation {
        Reported::Value(now) if now == generation => Ok(()),
        Reported::Value(_) => Err(Release::HolderChanged {
            now: Box::new(Holding::from(lock)),
        }),
        Reported::Unknown(why) | Reported::NotApplicable(why) => Err(Release::refused(
            format!("this grant cannot be distinguished from the next one: {why}"),
            "Release it with the tools of the program that acquired it.",
        )),
    }
}

/// The final result of a release. A mismatch is explained by reading the lock again.
pub(super) async fn confirm_release(
    backend: &dyn Backend,
    source: &Source,
    resource: &Resource,
    generation: &Generation,
    acted: Acted,
) -> Result<Release, BackendError> {
    match acted {
        Acted::Done => Ok(Release::Released),
        Acted::Refused { why, remedy } => Ok(Release::Refused { why, remedy }),
        Acted::Unknown { why } => Ok(Release::OutcomeUnknown { why }),
        Acted::Missed => explain_mismatch(backend, source, resource, generation).await,
    }
}

async fn explain_mismatch(
    backend: &dyn Backend,
    source: &Source,
    resource: &Resource,
    generation: &Generation,
) -> Result<Release, BackendError> {
    let mut attempts = 1;
    loop {
        let seen = backend.inspect(source, resource).await?;
        match check_generation(&seen, generation) {
            // Its holder may have ended between two queries of one reading.
            Err(Release::Refused { .. }) if attempts < ATTEMPTS_MAX => attempts += 1,
            Err(answer) => return Ok(answer),
            // Visible to the watching account, not found by the unlocking one.
            Ok(()) => {
                return Ok(Release::refused(
                    "the account for forced unlocks did not find this holder, although the lock still exists",
                    "Review the lock again. If the error persists, check that this account uses the same server and \
                     database as the monitoring account, and may read this lock.",
                ));
            }
        }
    }
}
