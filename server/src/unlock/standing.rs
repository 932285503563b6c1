//! How one unlock stands for whoever looks at it: what is still wanted, and what they may do about it.

use std::time::Duration;

use chrono::{DateTime, Utc};
use domain::access::Right;
use domain::unlock::{Tier, TierReason, Unlock, UnlockState};

use super::intent::may_unlock;
use super::second::first;
use super::{UnlockError, Unlocks, VisibleUnlock, seen_by};
use crate::identity::Who;

/// Names that are listed of those who may approve.
const APPROVERS_MAX: usize = 6;

#[derive(Debug)]
pub struct Standing {
    /// Shown as expired from its very last moment on, also before that is written down.
    pub unlock: Unlock,
    pub now: DateTime<Utc>,
    /// As it is now, if that is stricter than it was.
    pub tier: Tier,
    /// None where the tier is `standard`.
    pub tier_reason: Option<TierReason>,
    pub is_owner: bool,
    /// Why its owner could not confirm it any more.
    pub hindrance: Option<UnlockError>,
    /// When the reader last authenticated; none for a token.
    pub proved_ago: Option<Duration>,
    pub is_proved: bool,
    /// Why there is no second person yet, or not any more; none when there is one, or none is wanted.
    pub unapproved: Option<String>,
    /// Who looks is a second person.
    pub may_approve: bool,
    pub may_review: bool,
    /// Why a user with the role does not count as second person here.
    pub refused_as_second: Option<String>,
    /// Names of some who may approve.
    pub approvers: Vec<String>,
    /// How many receivers are told of acting alone.
    pub receivers: u64,
}

impl Unlocks {
    /// # Errors
    /// `NotFound`, also for a name that the caller may not see.
    pub async fn standing_for(&self, who: &Who, id: &str) -> Result<Standing, UnlockError> {
        let mut unlock = self.get(who, id).await?;
        let now = self.clock.now().wall;
        if unlock.state == UnlockState::Pending && now >= unlock.expires_at {
            unlock.state = UnlockState::Expired;
        }
        let name = unlock.resource.text();
        let protection = self.protection(&unlock, &unlock.observed.blast_radius).await?;
        let is_wanted = protection.is_protected() && unlock.state == UnlockState::Pending;
        let unapproved = match self
            .is_approved(who, &unlock, &protection, &[first(&unlock)])
            .await
        {
            Err(UnlockError::NeedsApproval { why }) if is_wanted => Some(why),
            Err(error @ UnlockError::AuditUnavailable(_)) => return Err(error),
            _ => None,
        };
        let may = who.may(Right::Approve, &unlock.backend, &name)
            && protection.may_be_approved_with(&who.grants, &unlock);
        let refused_as_second = match self.check_second(who, &unlock).await {
            Err(UnlockError::Forbidden { why }) => Some(why),
            checked => checked.map(|()| None)?,
        };
        let is_second = may && refused_as_second.is_none();
        let approvers = match &unapproved {
            Some(_) => self.approvers(&unlock, &protection, APPROVERS_MAX).await?,
            None => Vec::new(),
        };
        let session = who.session.as_ref();
        let ago = |at: i64| u64::try_from(now.timestamp_millis() - at).unwrap_or_default();
        Ok(Standing {
            is_owner: unlock.by_id == who.id(),
            hindrance: may_unlock(who, &unlock.backend, &name).err(),
            proved_ago: session.map(|session| Duration::from_millis(ago(session.authenticated_at))),
            is_proved: session.is_some_and(|session| self.identity.is_fresh(session)),
            may_approve: is_second && unapproved.is_some(),
            may_review: is_second && is_unreviewed(&unlock),
            refused_as_second: refused_as_second.filter(|_| may && unapproved.is_some()),
            approvers,
            unapproved,
            receivers: self.notifier.count().await?,
            tier: protection.tier,
            tier_reason: seen_by(who, &unlock.backend, protection.reason),
            now,
            unlock: VisibleUnlock::new(unlock, who).into_inner(),
        })
    }
}

fn is_unreviewed(unlock: &Unlock) -> bool {
    let alone = unlock.break_glass.as_ref();
    alone.is_some_and(|alone| alone.review.is_none())
}
