//! What all adapters' forced unlocks share: comparing the holding that was named with what stands there now.
//!
//! Acts on nothing. The act itself, with its own guard inside the backend, is each adapter's.

use domain::generation::Generation;
use domain::known::Known;
use domain::names::{Resource, Source};
use domain::observation::Inspection;
use domain::release::{Holding, Release};

use super::{Backend, BackendError};

/// Looks at a lock whose holder cannot be told, before that is the answer.
const LOOKS_MAX: u32 = 5;

/// What an act told, before anyone looked again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Acted {
    Done,
    /// The guard did not let it through: nothing was touched.
    Missed,
    Refused {
        why: String,
        mend: String,
    },
    Unknown {
        why: String,
    },
}

impl Acted {
    /// It was sent and its answer never came.
    pub(super) fn unanswered(error: &BackendError) -> Self {
        Self::Unknown {
            why: format!("the act was sent and its answer was lost: {error}"),
        }
    }
}

/// Whether the named holding is the one that was just read. `Err` is the answer when it is not.
pub(super) fn same(seen: &Inspection, generation: &Generation) -> Result<(), Release> {
    let Some(lock) = &seen.lock else {
        return Err(Release::AlreadyFree);
    };
    match &lock.generation {
        Known::Known(now) if now == generation => Ok(()),
        Known::Known(_) => Err(Release::HolderChanged {
            now: Box::new(Holding::from(lock)),
        }),
        Known::Unknown(why) | Known::Absent(why) => Err(Release::refused(
            format!("this holding cannot be told from the next one: {why}"),
            "End it with the tools of the program that took it.",
        )),
    }
}

/// The answer to an act. A miss is explained by looking once more.
pub(super) async fn settle(
    backend: &dyn Backend,
    source: &Source,
    resource: &Resource,
    generation: &Generation,
    acted: Acted,
) -> Result<Release, BackendError> {
    match acted {
        Acted::Done => Ok(Release::Released),
        Acted::Refused { why, mend } => Ok(Release::Refused { why, mend }),
        Acted::Unknown { why } => Ok(Release::OutcomeUnknown { why }),
        Acted::Missed => explain(backend, source, resource, generation).await,
    }
}

async fn explain(
    backend: &dyn Backend,
    source: &Source,
    resource: &Resource,
    generation: &Generation,
) -> Result<Release, BackendError> {
    let mut looks = 1;
    loop {
        let seen = backend.inspect(source, resource).await?;
        match same(&seen, generation) {
            // Its holder may have gone between two questions of one look.
            Err(Release::Refused { .. }) if looks < LOOKS_MAX => looks += 1,
            Err(answer) => return Ok(answer),
            // Seen by the account that watches, not found by the one that unlocks.
            Ok(()) => {
                return Ok(Release::refused(
                    "the account of forced unlocks did not find this holding as it was seen, although it is there",
                    "Look again: others may wait now. If it stays so, check that this account is on the same server and database as the one that watches, and may see \
                     this lock.",
                ));
            }
        }
    }
}
