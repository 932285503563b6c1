//! Users: creation, roles, password, disabling; each change with its audit entry in one transaction.

use domain::access::{Grant, Permission};
use domain::audit::Action;
use secrecy::SecretString;
use serde_json::json;

use super::access_change::{new_privileged_grants, read_only_switched, roles_granted};
use super::active_tokens::ActiveToken;
use super::created_credentials::{Creator, end_created};
use super::error::IdentityError;
use super::last_admin::{is_admin, require_an_admin};
use super::lineage::{AccountChange, ChangeKind, find_tie};
use super::names::check_name;
use super::principal::Principal;
use super::row_locks::{lock_creator, lock_session, lock_user};
use super::{Identity, principal_cache};
use runtime::db::{Tx, on_either};
use runtime::random;

#[derive(Debug)]
pub struct NewUser {
    pub name: String,
    pub grants: Vec<Grant>,
    /// `None`: signs in by a link or through an identity provider.
    pub password: Option<SecretString>,
}

impl Identity {
    /// # Errors
    /// The name is taken or invalid, or the password is too weak.
    pub async fn add_user(&self, who: &Principal, new: NewUser) -> Result<String, IdentityError> {
        check_name(&new.name)?;
        let password = self.hashed_password(&new).await?;
        let mut tx = self.db.begin().await?;
        // The hash takes time, in which the access may have ended.
        lock_creator(&mut tx, who).await?;
        lock_session(&mut tx, who).await?;
        self.insert_user(tx, who, new, password).await
    }

    pub(super) async fn hashed_password(&self, new: &NewUser) -> Result<Option<String>, IdentityError> {
        match &new.password {
            Some(password) => Ok(Some(self.hash_password(password).await?)),
            None => Ok(None),
        }
    }

    /// Inserts in the caller's transaction, and commits it.
    pub(super) async fn insert_user(
        &self,
        mut tx: Tx,
        who: &Principal,
        new: NewUser,
        password: Option<String>,
    ) -> Result<String, IdentityError> {
        let id = random::prefixed_id("p_");
        let insert = "INSERT INTO users (id, name, password_hash, created_at) VALUES ($1, $2, $3, $4)
            ON CONFLICT (name) DO NOTHING";
        let inserted = on_either!(&mut tx, Tx, |tx| {
            let query = sqlx::query(insert)
                .bind(&id)
                .bind(&new.name)
                .bind(&password)
                .bind(self.now_ms());
            query.execute(&mut **tx).await?.rows_affected()
        });
        if inserted == 0 {
            return Err(IdentityError::Exists {
                what: "user",
                name: new.name,
            });
        }
        for (place, grant) in new.grants.iter().enumerate() {
            insert_grant(&mut tx, Holder::User(&id), place, grant).await?;
        }
        principal_cache::touch(&mut tx).await?;
        self.record_account_change(&mut tx, who, &id, ChangeKind::Created)
            .await?;
        if new.grants.iter().any(approves) {
            self.record_account_change(&mut tx, who, &id, ChangeKind::Approver)
                .await?;
        }
        let after = json!({"id": id, "name": new.name, "grants": new.grants});
        let gained = new_privileged_grants(std::iter::empty(), &new.grants);
        let change = roles_granted(who.name(), ("user", &new.name), &gained);
        self.record_and_notify(tx, who, (Action::UserCreate, None, Some(after)), change)
            .await?;
        Ok(id)
    }

    /// Replaces all grants of a user.
    ///
    /// # Errors
    /// No user has this id; no other admin would remain.
    pub async fn set_grants(
        &self,
        who: &Principal,
        user: &str,
        grants: Vec<Grant>,
    ) -> Result<(), IdentityError> {
        let known = self.known_user(user).await?;
        if known.issuer.is_some() {
            let why = "come from the identity provider, at each sign-in";
            return Err(IdentityError::invalid("grants", why));
        }
        let admins_after = domain::access::Grants::new(grants.clone()).may_everywhere(Permission::Administer);
        // Not in the transaction: it would wait for a second connection, and those that wait for its locks may have them all.
        let changes = self.account_changes(user).await?;
        let mut tx = self.db.begin().await?;
        let before = lock_user(&mut tx, &known).await?;
        let forget = "DELETE FROM role_grants WHERE user_id = $1";
        on_either!(&mut tx, Tx, |tx| sqlx::query(forget)
            .bind(user)
            .execute(&mut **tx)
            .await?
            .rows_affected());
        for (place, grant) in grants.iter().enumerate() {
            insert_grant(&mut tx, Holder::User(user), place, grant).await?;
        }
        principal_cache::touch(&mut tx).await?;
        if is_admin(&before) && !admins_after {
            require_an_admin(&mut tx).await?;
        }
        if is_approver_change(who, &before, &grants, &changes) {
            self.record_account_change(&mut tx, who, user, ChangeKind::Approver)
                .await?;
        }
        let (old, new) = (
            json!({"name": before.name, "grants": *before.grants}),
            json!({"grants": grants}),
        );
        let gained = new_privileged_grants(before.grants.iter(), &grants);
        let change = roles_granted(who.name(), ("user", &before.name), &gained);
        self.record_and_notify(tx, who, (Action::UserChange, Some(old), Some(new)), change)
            .await
    }

    /// Disables a user and ends all their sessions and unused links, and those that they gave to other users, directly
    /// or through users who signed in by their links. Their audit entries and API tokens stay; returns the tokens that
    /// work. Idempotent.
    ///
    /// # Errors
    /// No user has this id; no other admin would remain.
    pub async fn disable_user(&self, who: &Principal, user: &str) -> Result<Vec<ActiveToken>, IdentityError> {
        let known = self.known_user(user).await?;
        let mut tx = self.db.begin().await?;
        let known = lock_user(&mut tx, &known).await?;
        if known.disabled_at.is_some() {
            return self.read_active_tokens(&mut tx, user).await;
        }
        let now = self.now_ms();
        let disable = "UPDATE users SET disabled_at = $1 WHERE id = $2";
        on_either!(&mut tx, Tx, |tx| {
            let query = sqlx::query(disable).bind(now).bind(user);
            query.execute(&mut **tx).await?.rows_affected()
        });
        end_created(&mut tx, Creator::User(user), now).await?;
        principal_cache::touch(&mut tx).await?;
        if is_admin(&known) {
            require_an_admin(&mut tx).await?;
        }
        let tokens = self.read_active_tokens(&mut tx, user).await?;
        let names: Vec<&str> = tokens.iter().map(|token| token.name.as_str()).collect();
        let before = json!({"name": known.name, "grants": *known.grants});
        let after = json!({"activeTokens": names});
        self.record(tx, who, Action::UserDisable, Some(before), Some(after))
            .await?;
        Ok(tokens)
    }

    /// Enables a user with their previous grants, which counts and is notified as granting them. Idempotent.
    ///
    /// # Errors
    /// No user has this id.
    pub async fn enable_user(&self, who: &Principal, user: &str) -> Result<(), IdentityError> {
        let known = self.known_user(user).await?;
        let mut tx = self.db.begin().await?;
        let known = lock_user(&mut tx, &known).await?;
        if known.disabled_at.is_none() {
            return Ok(());
        }
        let enable = "UPDATE users SET disabled_at = NULL WHERE id = $1";
        on_either!(&mut tx, Tx, |tx| {
            let query = sqlx::query(enable).bind(user);
            query.execute(&mut **tx).await?.rows_affected()
        });
        principal_cache::touch(&mut tx).await?;
        if known.grants.iter().any(approves) {
            self.record_account_change(&mut tx, who, user, ChangeKind::Approver)
                .await?;
        }
        let (before, after) = (
            json!({"disabled": true}),
            json!({"name": known.name, "disabled": false}),
        );
        let grants: Vec<Grant> = known.grants.iter().cloned().collect();
        let gained = new_privileged_grants(std::iter::empty(), &grants);
        let change = roles_granted(who.name(), ("user", &known.name), &gained);
        self.record_and_notify(tx, who, (Action::UserChange, Some(before), Some(after)), change)
            .await
    }

    /// Sets or clears the read-only switch, which stops every forced unlock. Every receiver is notified. Idempotent.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn set_read_only(&self, who: &Principal, read_only: bool) -> Result<(), IdentityError> {
        let value = if read_only { "yes" } else { "no" };
        let mut tx = self.db.begin().await?;
        let update = "UPDATE settings SET value = $1 WHERE key = 'read_only' AND value <> $1";
        let changed = on_either!(&mut tx, Tx, |tx| sqlx::query(update)
            .bind(value)
            .execute(&mut **tx)
            .await?
            .rows_affected());
        if changed == 0 {
            return Ok(());
        }
        principal_cache::touch(&mut tx).await?;
        let before = json!({"readOnly": !read_only});
        let after = json!({"readOnly": read_only});
        let change = read_only_switched(who.name(), read_only);
        self.record_and_notify(
            tx,
            who,
            (Action::ReadOnlyChange, Some(before), Some(after)),
            Some(change),
        )
        .await
    }

    pub(super) async fn known_user(&self, id: &str) -> Result<super::User, IdentityError> {
        self.user(id).await?.ok_or_else(|| IdentityError::NotFound {
            what: "user",
            name: id.to_owned(),
        })
    }

    /// From memory; a miss reloads the directory, because the user may just have been created by a command or
    /// another replica.
    pub(super) async fn user(&self, id: &str) -> Result<Option<super::User>, IdentityError> {
        let find = || self.directory.borrow().users.get(id).cloned();
        if let Some(user) = find() {
            return Ok(Some(user));
        }
        self.refresh().await?;
        Ok(find())
    }

    /// A user who may sign in, and the stored password.
    pub(super) async fn user_with_password(
        &self,
        name: &str,
    ) -> Result<Option<(super::User, String)>, IdentityError> {
        let Some((id, stored)) = self.password_of(name).await? else {
            return Ok(None);
        };
        Ok(self.user(&id).await?.map(|user| (user, stored)))
    }
}

/// Whether these grants add an approving role, or confirm one that an API token granted.
fn is_approver_change(
    who: &Principal,
    before: &super::User,
    grants: &[Grant],
    changes: &[AccountChange],
) -> bool {
    let is_new = |grant: &Grant| approves(grant) && !before.grants.iter().any(|old| old == grant);
    let may_confirm = !who.is_token() && grants.iter().any(approves);
    grants.iter().any(is_new) || (may_confirm && find_tie(changes, &[], i64::MAX).is_some())
}

fn approves(grant: &Grant) -> bool {
    grant.role.rights().contains(&Permission::Approve)
}

pub(super) enum Holder<'a> {
    User(&'a str),
    Token(&'a str),
}

pub(super) async fn insert_grant(
    tx: &mut Tx,
    holder: Holder<'_>,
    place: usize,
    grant: &Grant,
) -> Result<(), IdentityError> {
    let (user, token) = match holder {
        Holder::User(id) => (Some(id), None),
        Holder::Token(id) => (None, Some(id)),
    };
    check_prefix(grant.prefix.as_deref())?;
    let insert = "INSERT INTO role_grants (id, user_id, token_id, role, backend, prefix) VALUES ($1, $2, $3, $4, $5, $6)";
    // Grants are ordered by id: the number keeps the order of the request.
    let id = random::prefixed_id(&format!("g_{place:04}_"));
    on_either!(tx, Tx, |tx| {
        let query = sqlx::query(insert)
            .bind(&id)
            .bind(user)
            .bind(token)
            .bind(grant.role.as_str());
        let backend = grant.backend.as_ref().map(domain::names::BackendName::as_str);
        let query = query.bind(backend).bind(grant.prefix.as_deref());
        query.execute(&mut **tx).await?.rows_affected()
    });
    Ok(())
}

fn check_prefix(prefix: Option<&str>) -> Result<(), IdentityError> {
    match prefix {
        Some("") => Err(IdentityError::invalid(
            "prefix",
            "must not be empty; leave it out to cover everything",
        )),
        Some(text) if text.chars().any(char::is_control) => Err(IdentityError::invalid(
            "prefix",
            "must not contain control characters",
        )),
        _ => Ok(()),
    }
}
