//! The second approver: another user, signed in and freshly authenticated, who does not depend on the first, and who may
//! approve when it was said and when it counts.

use std::collections::BTreeSet;
use std::sync::Arc;

use domain::access::Grants;
use domain::unlock::Unlock;

use super::protection::Protection;
use super::{UnlockError, Unlocks};
use crate::identity::{AccountChange, Lineage, Person, Who, is_opened_by, recent_authors, tie};

/// The principal that an intent is bound to, with the person behind it.
pub(super) fn first(unlock: &Unlock) -> Lineage {
    Lineage::new(unlock.by_id.clone(), unlock.by_root_id.clone())
}

impl Unlocks {
    /// Whether a principal may be the second one for this unlock, as far as its permissions are not concerned.
    pub(super) async fn check_second(&self, who: &Who, unlock: &Unlock) -> Result<(), UnlockError> {
        if who.is_token() {
            return Err(UnlockError::forbidden(
                "an API token neither approves nor reviews: sign in as a user",
            ));
        }
        let second = self.identity.lineage(who);
        match self.dependence(&second, &[first(unlock)]).await? {
            Some(why) => Err(UnlockError::forbidden(why)),
            None => Ok(()),
        }
    }

    /// Why one user does not count as independent of others; none when they do.
    async fn dependence(&self, second: &Lineage, firsts: &[Lineage]) -> Result<Option<String>, UnlockError> {
        if firsts.iter().any(|first| self.is_one_user(first, second)) {
            return Ok(Some(
                "nobody approves what they began themselves, however they sign in".to_owned(),
            ));
        }
        if firsts.iter().any(|first| first.is_related(second)) {
            return Ok(Some(
                "the same person is behind both sessions, by a token or a link: another approver is needed"
                    .to_owned(),
            ));
        }
        let now = self.now_ms();
        let changes = self.identity.account_changes(&second.id).await?;
        if let Some(tie) = tie(&changes, firsts, now) {
            return Ok(Some(format!("{tie}: another approver is needed")));
        }
        if self.is_opened_in_between(&changes, firsts, now).await? {
            return Ok(Some(
                "the account that changed this one was opened within 24 h by the other user, by creating it, a link or a \
                 password: another approver is needed"
                    .to_owned(),
            ));
        }
        for first in firsts {
            let changes = self.identity.account_changes(&first.id).await?;
            if is_opened_by(&changes, std::slice::from_ref(second), now) {
                return Ok(Some(
                    "the approver opened the account that began this within 24 h, by creating it, a link or a password: \
                     another approver is needed"
                        .to_owned(),
                ));
            }
        }
        Ok(None)
    }

    /// Whether one of `firsts` may have made these changes as another user, whose account it opened within a day: by
    /// itself, or as one more user.
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
        let (mut asked, mut open) = (BTreeSet::new(), ids(changes, false));
        while let Some(id) = open.pop() {
            if !asked.insert(id.clone()) {
                continue;
            }
            // More accounts than this in a day are a way to hide: refuse.
            if asked.len() > AUTHORS_MAX {
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

    /// One id, or the local account and the provider's account of one person.
    fn is_one_user(&self, first: &Lineage, second: &Lineage) -> bool {
        let directory = self.identity.directory();
        let is_namesake = |one: &str, other: &str| {
            let people = directory.people.get(one).zip(directory.people.get(other));
            people.is_some_and(|(one, other)| is_one_person(one, other))
        };
        let pairs = first
            .ids()
            .flat_map(|one| second.ids().map(move |other| (one, other)));
        first.id == second.id || pairs.into_iter().any(|(one, other)| is_namesake(one, other))
    }

    /// An approval exists, its author may still approve and does not depend on any of `firsts`. `who` reads why not.
    pub(super) async fn is_approved(
        &self,
        who: &Who,
        unlock: &Unlock,
        protection: &Protection,
        firsts: &[Lineage],
    ) -> Result<(), UnlockError> {
        let needs = |why: String| UnlockError::NeedsApproval { why };
        let Some(approval) = &unlock.approval else {
            let why = protection.why(who, &unlock.backend);
            return Err(needs(format!("{why}: a second person must approve first")));
        };
        let second = Lineage::new(approval.by_id.clone(), None);
        if let Some(why) = self.dependence(&second, firsts).await? {
            return Err(needs(why));
        }
        // Approvals of tokens, as older versions took them, do not count.
        let grants = self.grants_of(&approval.by_id);
        if grants.is_some_and(|grants| protection.may_be_approved_with(&grants, unlock)) {
            Ok(())
        } else {
            Err(UnlockError::approval_lapsed())
        }
    }

    /// What a user may do now; none when they are disabled.
    fn grants_of(&self, id: &str) -> Option<Arc<Grants>> {
        let directory = self.identity.directory();
        let person = directory.people.get(id);
        person
            .filter(|person| person.disabled_at.is_none())
            .map(|person| person.grants.clone())
    }

    /// Names of users who could approve, at most so many.
    pub(super) async fn approvers(
        &self,
        unlock: &Unlock,
        protection: &Protection,
        most: usize,
    ) -> Result<Vec<String>, UnlockError> {
        let directory = self.identity.directory();
        let mut able: Vec<&Person> = directory
            .people
            .values()
            .filter(|person| {
                person.disabled_at.is_none() && protection.may_be_approved_with(&person.grants, unlock)
            })
            .collect();
        able.sort_by(|one, other| one.name.cmp(&other.name));
        let (first, mut names) = ([first(unlock)], Vec::new());
        for person in able.into_iter().take(ASKED_MAX) {
            let second = Lineage::new(person.id.clone(), Some(person.id.clone()));
            if self.dependence(&second, &first).await?.is_none() {
                names.push(person.name.clone());
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

/// Users whose independence is looked up for one page.
const ASKED_MAX: usize = 24;

/// A local account and one of the identity provider's that are called alike: most likely somebody with two ways in. Wrong
/// at times, and then a third person approves; the other way round somebody would approve their own act.
fn is_one_person(one: &Person, other: &Person) -> bool {
    one.issuer.is_some() != other.issuer.is_some() && called(one) == called(other)
}

/// Without the number that keeps namesakes apart, and without the domain of an address.
fn called(person: &Person) -> String {
    let name = person.name.as_str();
    let numbered = name.rsplit_once('+').filter(|(_, number)| {
        person.issuer.is_some() && !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    });
    let name = numbered.map_or(name, |(name, _)| name);
    let name = name.split_once('@').map_or(name, |(name, _)| name);
    name.to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn person(name: &str, issuer: Option<&str>) -> Person {
        Person {
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
    fn namesakes_of_here_and_of_the_provider_count_as_one() {
        // With the number, with an address, in other letters; never two of one kind, nor a name that is merely alike.
        let (here, there) = (
            |name| person(name, None),
            |name| person(name, Some("https://id.example")),
        );
        for name in ["ada", "ada+2", "Ada@example.com", "ADA@example.com+3"] {
            assert!(is_one_person(&here("ada"), &there(name)), "{name}");
            assert!(is_one_person(&there(name), &here("ada")), "{name}");
        }
        for name in ["adam", "a", "ada+x"] {
            assert!(!is_one_person(&here("ada"), &there(name)), "{name}");
        }
        assert!(
            !is_one_person(&here("ada"), &here("ada+2")) && !is_one_person(&there("ada"), &there("ada+2"))
        );
    }
}
