//! Holdings that the backend cannot tell from the next one: every holder writes the same value.
//!
//! Such a holding is named in the review, and refused when it looks like another one: more time is
//! left than was reviewed, and no known renewal explains it.

use chrono::{DateTime, Utc};
use domain::lease::Scope;
use domain::names::LockId;
use domain::observation::{Lifetime, ObservedLock};
use domain::unlock::ObservedHolding;

use super::{UnlockError, Unlocks};

/// Combined error of two readings of a remaining time, in milliseconds.
const TOLERANCE_MS: i64 = 1_000;

impl Unlocks {
    /// Notes that other locks of the scope have the same identity now. Reads every lock of the backend, so not on a thread
    /// of the runtime.
    pub(super) async fn note_weak_identity(&self, id: &LockId, scope: Scope, observed: &mut ObservedHolding) {
        let is_identified = observed.lease_id.is_known() || observed.fencing_token.is_known();
        if is_identified || observed.blast_radius.weak_identity.is_some() {
            return;
        }
        let (inventory, id, generation) = (self.inventory.clone(), id.clone(), observed.generation.clone());
        let counting =
            tokio::task::spawn_blocking(move || inventory.others_with_generation(&id, &generation, &scope));
        let why = match counting.await {
            Ok(0) => return,
            Ok(others) => {
                let locks = domain::format::counted(others, "other lock", "other locks");
                format!("the same value is on {locks} now")
            }
            Err(_) => "whether other locks have the same value is unknown".to_owned(),
        };
        observed.blast_radius.weaken(why);
    }
}

/// # Errors
/// The holding looks like the reviewed one, and is more likely another.
pub(super) fn check_weak_identity(
    reviewed: &ObservedHolding,
    fresh: &ObservedLock,
    now: DateTime<Utc>,
) -> Result<(), UnlockError> {
    let Some(why) = &reviewed.blast_radius.weak_identity else {
        return Ok(());
    };
    let Some(reviewed_ms) = reviewed.remaining_ms.known() else {
        return Ok(());
    };
    let left_ms = match &fresh.lifetime {
        Lifetime::Leased { remaining_ms, .. } => *remaining_ms,
        _ => return Ok(()),
    };
    let expected_ms = reviewed_ms - (now - reviewed.read_at).num_milliseconds();
    if reviewed.renewal.is_known() || left_ms <= expected_ms + TOLERANCE_MS {
        return Ok(());
    }
    Err(UnlockError::Unavailable {
        why: format!(
            "more time is left than when it was reviewed ({} instead of {}), and no renewal was seen before: it may be \
             another grant, because {why}",
            domain::format::duration(left_ms),
            domain::format::duration(expected_ms.max(0)),
        ),
        remedy: Some("Review the lock again, or let its clients write a unique value.".to_owned()),
    })
}
