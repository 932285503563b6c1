//! Status of an unlock for one reader: what is missing, and what the reader may do.

use std::time::Duration;

use chrono::{DateTime, Utc};
use domain::unlock::{ProtectionLevel, ProtectionReason, Unlock, UnlockState};

use super::intent::may_unlock;
use super::second_approver::requester;
use super::{UnlockError, Unlocks, VisibleUnlock, seen_by};
use crate::identity::Principal;

/// Names of possible approvers that are listed.
const APPROVERS_MAX: usize = 6;

#[derive(Debug)]
pub struct UnlockStatus {
    /// Shown as expired from its deadline on, before the expiry is stored.
    pub unlock: Unlock,
    pub now: DateTime<Utc>,
    /// The current level, if stricter than the recorded one.
    pub protection: ProtectionLevel,
    /// `None` if the level is `standard`.
    pub protection_reason: Option<ProtectionReason>,
    pub is_owner: bool,
    /// Why its owner could not confirm it any more.
    pub hindrance: Option<UnlockError>,
    /// Time since the reader's last authentication; `None` for a token.
    pub proved_ago: Option<Duration>,
    pub is_proved: bool,
    /// Why an approval is missing or no longer valid; `None` if there is one or none is needed.
    pub unapproved: Option<String>,
    /// The reader qualifies as second approver.
    pub may_approve: bool,
    pub may_review: bool,
    /// Why a user with the role does not qualify as second approver.
    pub refused_as_second: Option<String>,
    /// Some users who may approve.
    pub approvers: Vec<String>,
    /// Number of receivers notified of a break-glass unlock.
    pub receivers: u64,
}

impl Unlocks {
    /// # Errors
    /// `NotFound`, also for a name that the caller may not see.
    pub async fn status_for(&self, who: &Principal, id: &str) -> Result<UnlockStatus, UnlockError> {
        let mut unlock = self.get(who, id).await?;
        let now = self.clock.now().wall;
        if unlock.state == UnlockState::Pending && now >= unlock.expires_at {
            unlock.state = UnlockState::Expired;
        }
        let name = unlock.resource.text();
        let protection = self.protection(&unlock, &unlock.observed.blast_radius).await?;
        let is_wanted = protection.is_protected() && unlock.state == UnlockState::Pending;
        let unapproved = match self
            .check_approval(who, &unlock, &protection, &[requester(&unlock)])
            .await
        {
            Err(UnlockError::NeedsApproval { why }) if is_wanted => Some(why),
            Err(error @ UnlockError::AuditUnavailable(_)) => return Err(error),
            _ => None,
        };
        let may = protection.check_approver(who, &unlock).is_ok();
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
        Ok(UnlockStatus {
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
            protection: protection.level,
            protection_reason: seen_by(who, &unlock.backend, protection.reason),
            now,
            unlock: VisibleUnlock::new(unlock, who).into_inner(),
        })
    }
}

fn is_unreviewed(unlock: &Unlock) -> bool {
    let break_glass = unlock.break_glass.as_ref();
    break_glass.is_some_and(|break_glass| break_glass.review.is_none())
}
