//! The second person: somebody else, however they sign in, who may approve when it was said and when it counts.

use std::sync::Arc;

use domain::access::{Grants, Right};
use domain::unlock::Unlock;

use super::{UnlockError, Unlocks};
use crate::identity::IdentityError;

impl Unlocks {
    /// Whether two ids stand for one and the same: a token stands for whoever made it.
    pub(super) async fn is_same_subject(&self, one: &str, other: &str) -> Result<bool, UnlockError> {
        if one == other {
            return Ok(true);
        }
        Ok(self.behind(one).await? == self.behind(other).await?)
    }

    /// The person behind an id: itself, or who made the token.
    async fn behind(&self, id: &str) -> Result<String, UnlockError> {
        let directory = self.identity.directory();
        if directory.people.contains_key(id) {
            return Ok(id.to_owned());
        }
        let tokens = self.identity.tokens().await.map_err(store)?;
        let made_by = tokens.into_iter().find(|token| token.id == id);
        let maker = made_by.and_then(|token| {
            directory
                .person_named(&token.created_by)
                .map(|person| person.id.clone())
        });
        Ok(maker.unwrap_or_else(|| id.to_owned()))
    }

    /// Somebody approved, and may still approve, and is not whoever began.
    pub(super) async fn is_approved(&self, unlock: &Unlock) -> Result<(), UnlockError> {
        let needs = |why: &str| UnlockError::NeedsApproval { why: why.to_owned() };
        let Some(approval) = &unlock.approval else {
            return Err(needs(
                "this lock is protected: a second person must approve first",
            ));
        };
        if self.is_same_subject(&unlock.by_id, &approval.by_id).await? {
            return Err(needs("whoever began it cannot be the second person"));
        }
        let grants = self.grants_of(&approval.by_id).await?;
        let may =
            grants.is_some_and(|grants| grants.may(Right::Approve, &unlock.backend, &unlock.resource.text()));
        if may {
            Ok(())
        } else {
            Err(needs(
                "whoever approved may not approve this any more; somebody else must",
            ))
        }
    }

    /// What somebody may do now; none when they were disabled, or their token ended.
    async fn grants_of(&self, id: &str) -> Result<Option<Arc<Grants>>, UnlockError> {
        if let Some(person) = self.identity.directory().people.get(id) {
            return Ok(person.disabled_at.is_none().then(|| person.grants.clone()));
        }
        let now = self.now_ms();
        let tokens = self.identity.tokens().await.map_err(store)?;
        let token = tokens.into_iter().find(|token| token.id == id);
        let is_good = |token: &crate::identity::TokenView| {
            token.revoked_at.is_none() && token.expires_at.is_none_or(|at| at > now)
        };
        Ok(token
            .filter(is_good)
            .map(|token| Arc::new(Grants::new(token.grants))))
    }
}

fn store(error: IdentityError) -> UnlockError {
    match error {
        IdentityError::Store(error) => UnlockError::AuditUnavailable(error),
        _ => UnlockError::CutOff,
    }
}
