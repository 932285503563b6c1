//! The user of a subject: found by issuer and subject, created at the first sign-in, with grants from the roles
//! claim.

use domain::access::Grant;
use domain::audit::Action;
use serde_json::json;
use sqlx::Row as _;

use super::OidcError;
use super::provider::ProviderUser;
use crate::audit::Origin;
use crate::identity::access_change::{new_privileged_grants, roles_granted};
use crate::identity::limits::{NAME_BYTES_MAX, NAMESAKES_MAX};
use crate::identity::names::{check_name, sanitize_name};
use crate::identity::principal::{Principal, Subject};
use crate::identity::row_locks::lock_user;
use crate::identity::users::{Holder, insert_grant};
use crate::identity::{Identity, IdentityError, User, principal_cache};
use config::OidcConfig;
use runtime::db::on_either;
use runtime::random;

impl Identity {
    pub(super) async fn user_of_provider(
        &self,
        config: &OidcConfig,
        known: &ProviderUser,
        origin: &Origin,
    ) -> Result<User, OidcError> {
        let grants = granted(config, &known.claim_values);
        let select = "SELECT id FROM users WHERE issuer = $1 AND subject = $2";
        let id: Option<String> = on_either!(&self.db, Db, |pool| {
            let query = sqlx::query(select).bind(&config.issuer).bind(&known.subject);
            let row = query.fetch_optional(pool).await?;
            row.map(|row| row.try_get(0)).transpose()?
        });
        let user = match &id {
            Some(id) => Some(self.known_user(id).await?),
            None => None,
        };
        if user.as_ref().is_some_and(|user| user.disabled_at.is_some()) {
            return Err(OidcError::refused("disabled", "this user was disabled here"));
        }
        if grants.is_empty() {
            // Their previous grants are removed.
            if let Some(user) = &user {
                self.take_over_grants(user, grants, origin).await?;
            }
            let detail = format!("no [[oidc.role]] is for one of {:?}", known.claim_values);
            return Err(OidcError::refused("no_role", detail));
        }
        let id = match user {
            Some(user) => {
                self.take_over_grants(&user, grants, origin).await?;
                user.id
            }
            None => self.add_of_provider(config, known, grants, origin).await?,
        };
        Ok(self.known_user(&id).await?)
    }

    /// The provider decides, even about the last admin: admins are managed there.
    async fn take_over_grants(
        &self,
        user: &User,
        grants: Vec<Grant>,
        origin: &Origin,
    ) -> Result<(), IdentityError> {
        if user.grants.iter().eq(grants.iter()) {
            return Ok(());
        }
        let mut tx = self.db.begin().await?;
        let user = lock_user(&mut tx, user).await?;
        let forget = "DELETE FROM role_grants WHERE user_id = $1";
        on_either!(&mut tx, Tx, |tx| sqlx::query(forget)
            .bind(&user.id)
            .execute(&mut **tx)
            .await?
            .rows_affected());
        for (place, grant) in grants.iter().enumerate() {
            insert_grant(&mut tx, Holder::User(&user.id), place, grant).await?;
        }
        principal_cache::touch(&mut tx).await?;
        let who = self_principal(&user.id, &user.name, origin);
        let (before, after) = (
            json!({"name": user.name, "grants": *user.grants}),
            json!({"grants": grants, "by": "identity provider"}),
        );
        let gained = new_privileged_grants(user.grants.iter(), &grants);
        let change = roles_granted("the identity provider", ("user", &user.name), &gained);
        self.record_and_notify(tx, &who, (Action::UserChange, Some(before), Some(after)), change)
            .await
    }

    async fn add_of_provider(
        &self,
        config: &OidcConfig,
        known: &ProviderUser,
        grants: Vec<Grant>,
        origin: &Origin,
    ) -> Result<String, OidcError> {
        let id = random::prefixed_id("p_");
        let mut tx = self.db.begin().await?;
        let insert = "INSERT INTO users (id, name, issuer, subject, created_at) VALUES ($1, $2, $3, $4, $5)
            ON CONFLICT (name) DO NOTHING";
        let mut taken = None;
        for name in names(known) {
            let inserted = on_either!(&mut tx, Tx, |tx| {
                let query = sqlx::query(insert).bind(&id).bind(&name).bind(&config.issuer);
                let query = query.bind(&known.subject).bind(self.now_ms());
                query.execute(&mut **tx).await?.rows_affected()
            });
            if inserted == 1 {
                taken = Some(name);
                break;
            }
        }
        let name = taken.ok_or_else(|| IdentityError::Exists {
            what: "user",
            name: known.name.clone(),
        })?;
        for (place, grant) in grants.iter().enumerate() {
            insert_grant(&mut tx, Holder::User(&id), place, grant).await?;
        }
        principal_cache::touch(&mut tx).await?;
        let after = json!({"id": id, "name": name, "grants": grants, "issuer": config.issuer, "subject": known.subject});
        let who = self_principal(&id, &name, origin);
        let gained = new_privileged_grants(std::iter::empty(), &grants);
        let change = roles_granted("the identity provider", ("user", &name), &gained);
        self.record_and_notify(tx, &who, (Action::UserCreate, None, Some(after)), change)
            .await?;
        Ok(id)
    }
}

/// Grants of each claim value, in the order of the configuration, without duplicates.
fn granted(config: &OidcConfig, claim_values: &[String]) -> Vec<Grant> {
    let mut grants: Vec<Grant> = Vec::new();
    for rule in &config.roles {
        let is_theirs = rule.value == "*" || claim_values.contains(&rule.value);
        if is_theirs && !grants.contains(&rule.grant) {
            grants.push(rule.grant.clone());
        }
    }
    grants
}

fn self_principal(id: &str, name: &str, origin: &Origin) -> Principal {
    let mut who = Principal::anonymous(origin.clone());
    who.subject = Subject::User {
        id: id.into(),
        name: name.into(),
    };
    who
}

/// Candidate names from the provider's name, made valid; with a number if the name is taken. Never an existing
/// user's account: names at the provider may be chosen freely.
fn names(known: &ProviderUser) -> impl Iterator<Item = String> {
    // Leaves room for the number.
    let mut name = sanitize_name(&known.name, NAME_BYTES_MAX - 6);
    if check_name(&name).is_err() {
        "user".clone_into(&mut name);
    }
    let numbered = {
        let name = name.clone();
        (2..=NAMESAKES_MAX).map(move |number| format!("{name}+{number}"))
    };
    std::iter::once(name).chain(numbered)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_provider_name_is_normalized_and_never_duplicates_one() {
        // White space, controls and bidi characters, too long, empty; and the numbered candidates.
        let first = |name: &str| {
            let known = ProviderUser {
                subject: "s".to_owned(),
                name: name.to_owned(),
                claim_values: Vec::new(),
                authenticated_at: None,
            };
            let names: Vec<String> = names(&known).take(2).collect();
            assert!(names.iter().all(|name| check_name(name).is_ok()), "{names:?}");
            assert_eq!(names[1], format!("{}+2", names[0]));
            names[0].clone()
        };
        assert_eq!(first("ada@example.com"), "ada@example.com");
        assert_eq!(first("Ada Lovelace"), "Ada_Lovelace");
        assert_eq!(first("a\u{202e}b\n"), "a_b_");
        assert_eq!(first(""), "user");
        // Similar letters of another script.
        assert_eq!(first("ad\u{430}"), "ad_");
        assert!(first(&"ä".repeat(200)).len() < NAME_BYTES_MAX);
    }
}
