//! The second approver: another user, signed in and freshly authenticated, independent of the first, with the
//! permission both at the approval and at the execution.

use std::collections::BTreeSet;
use std::sync::Arc;

use domain::access::Grants;
use domain::unlock::Unlock;

use super::protection::Protection;
use super::{UnlockError, Unlocks};
use crate::identity::{AccountChange, Lineage, Principal, User, find_tie, is_opened_by, recent_authors};

/// The principal that an intent is bound to, with its underlying user.
pub(super) fn requester(unlock: &Unlock) -> Lineage {
    Lineage::new(unlock.by_id.clone(), unlock.by_root_user_id.clone())
}

impl Unlocks {
    /// Whether a principal can be the second approver of this unlock, apart from permissions.
    pub(super) async fn check_second(&self, who: &Principal, unlock: &Unlock) -> Result<(), UnlockError> {
        if who.is_token() {
            return Err(UnlockError::forbidden(
                "an API token cannot approve or review: sign in as a user",
            ));
        }
        let second = self.identity.lineage(who);
        match self.dependence(&second, &[requester(unlock)]).await? {
            Some(why) => Err(UnlockError::forbidden(why)),
            None => Ok(()),
        }
    }

    /// Why a user is not independent of the others; `None` if independent.
    async fn dependence(&self, second: &Lineage, firsts: &[Lineage]) -> Result<Option<String>, UnlockError> {
        if firsts.iter().any(|first| self.is_one_user(first, second)) {
            return Ok(Some(
                "a user cannot approve their own forced unlock, in any session".to_owned(),
            ));
        }
        if firsts.iter().any(|first| first.is_related(second)) {
            return Ok(Some(
                "both sessions belong to the same user, through a token or a link: another approver is needed"
                    .to_owned(),
            ));
        }
        let now = self.now_ms();
        let changes = self.identity.account_changes(&second.id).await?;
        if let Some(tie) = find_tie(&changes, firsts, now) {
            return Ok(Some(format!("{tie}: another approver is needed")));
        }
        if self.is_opened_in_between(&changes, firsts, now).await? {
            return Ok(Some(
                "within 24 h the other user created the account that changed this one, or gave it a link or a \
                 password: another approver is needed"
                    .to_owned(),
            ));
        }
        for first in firsts {
            let changes = self.identity.account_changes(&first.id).await?;
            if is_opened_by(&changes, std::slice::from_ref(second), now) {
                return Ok(Some(
                    "within 24 h the approver created the requesting account, or gave it a link or a password: \
                     another approver is needed"
                        .to_owned(),
                ));
            }
        }
        Ok(None)
    }

    /// Whether one of `firsts` may have made these changes through another user whose account it opened within a
    /// day, directly or through a further account.
    async fn is_opened_in_between(
        &self,
        changes: &[AccountChange],
        firsts: &[Lineage],
        now: i64,
    ) -> Result<bool, UnlockError> {
        let ids = |changes: &[AccountChange], opened| -> Vec<String> {
            let authors = recent_authors(changes, opened, now);
            authors.flat_map(Lineage::ids).map(str::to_owned).collect()
        };
        let (mut related, mut open) = (BTreeSet::new(), ids(changes, false));
        while let Some(id) = open.pop() {
            if !related.insert(id.clone()) {
                continue;
            }
            // More accounts than this in a day could hide a dependence: refuse.
            if related.len() > AUTHORS_MAX {
                return Ok(true);
            }
            let changes = self.identity.account_changes(&id).await?;
            if is_opened_by(&changes, firsts, now) {
                return Ok(true);
            }
            open.extend(ids(&changes, true));
        }
        Ok(false)
    }

    /// The same id, or the local and the provider account of one user.
    fn is_one_user(&self, first: &Lineage, second: &Lineage) -> bool {
        let directory = self.identity.directory();
        let is_namesake = |left: &str, right: &str| {
            let users = directory.users.get(left).zip(directory.users.get(right));
            users.is_some_and(|(left, right)| is_one_user(left, right))
        };
        let pairs = first
            .ids()
            .flat_map(|left| second.ids().map(move |right| (left, right)));
        first.id == second.id || pairs.into_iter().any(|(left, right)| is_namesake(left, right))
    }

    /// Checks that an approval exists, and that its author may still approve and is independent of `firsts`. `who`
    /// reads the error.
    pub(super) async fn check_approval(
        &self,
        who: &Principal,
        unlock: &Unlock,
        protection: &Protection,
        firsts: &[Lineage],
    ) -> Result<(), UnlockError> {
        let needs = |why: String| UnlockError::NeedsApproval { why };
        let Some(approval) = &unlock.approval else {
            let why = protection.why(who, &unlock.backend);
            return Err(needs(format!("{why}: a second approver must approve first")));
        };
        let second = Lineage::new(approval.by_id.clone(), None);
        if let Some(why) = self.dependence(&second, firsts).await? {
            return Err(needs(why));
        }
        // Approvals by tokens do not count.
        let grants = self.grants_of(&approval.by_id);
        if grants.is_some_and(|grants| protection.may_be_approved_with(&grants, unlock)) {
            Ok(())
        } else {
            Err(UnlockError::approval_lapsed())
        }
    }

    /// Current grants of a user; `None` when disabled.
    fn grants_of(&self, id: &str) -> Option<Arc<Grants>> {
        let directory = self.identity.directory();
        let user = directory.users.get(id);
        user.filter(|user| user.disabled_at.is_none())
            .map(|user| user.grants.clone())
    }

    /// Names of users who could approve, limited.
    pub(super) async fn approvers(
        &self,
        unlock: &Unlock,
        protection: &Protection,
        most: usize,
    ) -> Result<Vec<String>, UnlockError> {
        let directory = self.identity.directory();
        let mut eligible: Vec<&User> = directory
            .users
            .values()
            .filter(|user| {
                user.disabled_at.is_none() && protection.may_be_approved_with(&user.grants, unlock)
            })
            .collect();
        eligible.sort_by(|left, right| left.name.cmp(&right.name));
        let (first, mut names) = ([requester(unlock)], Vec::new());
        for user in eligible.into_iter().take(CANDIDATES_MAX) {
            let second = Lineage::new(user.id.clone(), Some(user.id.clone()));
            if self.dependence(&second, &first).await?.is_none() {
                names.push(user.name.clone());
            }
            if names.len() == most {
                break;
            }
        }
        Ok(names)
    }
}

/// Principals behind the changes of one account in a day.
const AUTHORS_MAX: usize = 64;

/// Users checked for independence per page.
const CANDIDATES_MAX: usize = 24;

/// A local and a provider account with the same name: most likely one user with two ways to sign in. A false
/// positive needs a third user; a false negative would let users approve their own unlocks.
fn is_one_user(left: &User, right: &User) -> bool {
    left.issuer.is_some() != right.issuer.is_some() && normalized_name(left) == normalized_name(right)
}

/// Without the suffix that distinguishes equal names, and without the domain of an address.
fn normalized_name(user: &User) -> String {
    let name = user.name.as_str();
    let numbered = name.rsplit_once('+').filter(|(_, number)| {
        user.issuer.is_some() && !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    });
    let name = numbered.map_or(name, |(name, _)| name);
    let name = name.split_once('@').map_or(name, |(name, _)| name);
    name.to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(name: &str, issuer: Option<&str>) -> User {
        User {
            id: name.to_owned(),
            name: name.to_owned(),
            created_at: 0,
            disabled_at: None,
            has_password: issuer.is_none(),
            issuer: issuer.map(str::to_owned),
            grants: Arc::default(),
        }
    }

    #[test]
    fn local_and_provider_namesakes_count_as_one() {
        // With the suffix, with an address, in other case; never two of one kind or merely similar names.
        let (local, external) = (
            |name| user(name, None),
            |name| user(name, Some("https://id.example")),
        );
        for name in ["ada", "ada+2", "Ada@example.com", "ADA@example.com+3"] {
            assert!(is_one_user(&local("ada"), &external(name)), "{name}");
            assert!(is_one_user(&external(name), &local("ada")), "{name}");
        }
        for name in ["adam", "a", "ada+x"] {
            assert!(!is_one_user(&local("ada"), &external(name)), "{name}");
        }
        assert!(
            !is_one_user(&local("ada"), &local("ada+2"))
                && !is_one_user(&external("ada"), &external("ada+2"))
        );
    }
}
