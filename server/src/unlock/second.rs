//! The second person: somebody else, however they sign in, who may approve when it was said and when it counts.

use std::sync::Arc;

use domain::access::Grants;
use domain::unlock::Unlock;

use super::protection::Protection;
use super::{UnlockError, Unlocks};
use crate::identity::{IdentityError, Person};

impl Unlocks {
    /// Whether two ids stand for one and the same: a token stands for whoever made it.
    pub(super) async fn is_same_subject(&self, one: &str, other: &str) -> Result<bool, UnlockError> {
        if one == other {
            return Ok(true);
        }
        let (one, other) = (self.behind(one).await?, self.behind(other).await?);
        let directory = self.identity.directory();
        let people = directory.people.get(&one).zip(directory.people.get(&other));
        Ok(one == other || people.is_some_and(|(one, other)| is_one_person(one, other)))
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
    pub(super) async fn is_approved(
        &self,
        unlock: &Unlock,
        protection: &Protection,
    ) -> Result<(), UnlockError> {
        let needs = |why: &str| UnlockError::NeedsApproval { why: why.to_owned() };
        let Some(approval) = &unlock.approval else {
            let why = protection.why();
            return Err(needs(&format!("{why}: a second person must approve first")));
        };
        if self.is_same_subject(&unlock.by_id, &approval.by_id).await? {
            return Err(needs("whoever began it cannot be the second person"));
        }
        let grants = self.grants_of(&approval.by_id).await?;
        if grants.is_some_and(|grants| protection.may_be_approved_with(&grants, unlock)) {
            Ok(())
        } else {
            Err(UnlockError::approval_lapsed())
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

fn store(error: IdentityError) -> UnlockError {
    match error {
        IdentityError::Store(error) => UnlockError::AuditUnavailable(error),
        _ => UnlockError::CutOff,
    }
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
