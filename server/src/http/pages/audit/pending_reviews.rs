//! Unlocks that need a review, as far as the reader may see.

use app::pages::audit::data::{PendingKind, PendingReview, ReviewRight};
use domain::audit::Readable;
use domain::unlock::{Unlock, UnlockState};

use crate::http::state::Services;
use crate::identity::Principal;

impl Services {
    /// # Errors
    /// The store does not answer.
    pub(super) async fn pending(&self, who: &Principal) -> Result<Vec<PendingReview>, sqlx::Error> {
        let waiting = self.unlocks.waiting(&Readable::to(&who.grants)).await?;
        let all: Vec<&Unlock> = waiting.iter().collect();
        let approvable = self.unlocks.approvable(who, &all).await?;
        let pending = waiting.into_iter().map(|unlock| {
            let may_approve = approvable.contains(&unlock.id);
            pending(who, unlock, may_approve)
        });
        Ok(pending.collect())
    }
}

fn pending(who: &Principal, unlock: Unlock, may_approve: bool) -> PendingReview {
    let review = review(who, &unlock, may_approve);
    let at = unlock.acted_at.unwrap_or(unlock.created_at);
    let kind = match unlock.break_glass {
        Some(break_glass) if unlock.state != UnlockState::OutcomeUnknown => PendingKind::BreakGlass {
            reason: break_glass.reason,
            review: review.unwrap_or(ReviewRight::Others),
        },
        _ => PendingKind::OutcomeUnknown,
    };
    PendingReview {
        unlock_id: unlock.id,
        by: unlock.by_name,
        backend: unlock.backend.to_string(),
        resource: unlock.resource.text(),
        at: at.timestamp_millis(),
        kind,
    }
}

/// `None` if there is nothing to review. `may_approve`: on everything protected that it released. The review itself
/// checks that the reviewer is independent.
pub(super) fn review(who: &Principal, unlock: &Unlock, may_approve: bool) -> Option<ReviewRight> {
    let break_glass = unlock.break_glass.as_ref()?;
    if break_glass.review.is_some() || unlock.acted_at.is_none() {
        return None;
    }
    Some(if unlock.by_id == who.id() {
        ReviewRight::Own
    } else if may_approve {
        ReviewRight::May
    } else {
        ReviewRight::Others
    })
}
