//! Passwords of local users: set by an admin for another user, or changed by the user.

use domain::audit::Action;
use domain::escape::visible;
use secrecy::SecretString;
use serde_json::json;
use sqlx::Row as _;

use super::access_change::AccessChange;
use super::error::IdentityError;
use super::lineage::ChangeKind;
use super::names::is_storable;
use super::principal::Principal;
use super::row_locks::{lock_creator, lock_sessions};
use super::{Identity, User, principal_cache};
use runtime::db::on_either;

impl Identity {
    /// Sets the password of another user, and ends their sessions and unused links. Not one's own: a session that was taken over
    /// would need no password to keep the account.
    ///
    /// # Errors
    /// No user has this id; the user is `who`, or one of the identity provider; the password is too weak.
    pub async fn set_password(
        &self,
        who: &Principal,
        user: &str,
        password: &SecretString,
    ) -> Result<(), IdentityError> {
        let known = self.known_user(user).await?;
        check_is_local(&known, "password", "change it there")?;
        if who.id() == user {
            let why = "must be another user: change your own password at /settings, with the current one";
            return Err(IdentityError::invalid("user", why));
        }
        self.store_password(who, &known, password, None).await
    }

    /// Stores a password and ends the user's other sessions and unused links, unless the session of the request was ended
    /// meanwhile. With `verified`, only if that hash is still stored; an empty one is that of a user without a password.
    async fn store_password(
        &self,
        who: &Principal,
        known: &User,
        password: &SecretString,
        verified: Option<&str>,
    ) -> Result<(), IdentityError> {
        let user = known.id.as_str();
        let hashed = self.hash_password(password).await?;
        let mut tx = self.db.begin().await?;
        if verified.is_some() || who.is_token() {
            // A revoked token would set it; a disabled user would know the password once they are enabled.
            lock_creator(&mut tx, who).await?;
        }
        let update = "UPDATE users SET password_hash = $1
            WHERE id = $2 AND ($3 IS NULL OR coalesce(password_hash, '') = $3)";
        let links = "UPDATE one_time_links SET used_at = $1 WHERE user_id = $2 AND used_at IS NULL";
        let sessions =
            "UPDATE sessions SET ended_at = $1 WHERE user_id = $2 AND ended_at IS NULL AND id <> $3";
        let own = who.session.as_ref().map_or("", |session| session.id.as_str());
        let now = self.now_ms();
        let updated = on_either!(&mut tx, Tx, |tx| {
            let query = sqlx::query(update).bind(&hashed).bind(user).bind(verified);
            let updated = query.execute(&mut **tx).await?.rows_affected();
            let query = sqlx::query(links).bind(now).bind(user);
            query.execute(&mut **tx).await?;
            updated
        });
        if updated == 0 {
            return Err(IdentityError::PasswordChanged);
        }
        lock_sessions(&mut tx, who, user).await?;
        on_either!(&mut tx, Tx, |tx| {
            let query = sqlx::query(sessions).bind(now).bind(user).bind(own);
            query.execute(&mut **tx).await?.rows_affected()
        });
        principal_cache::touch(&mut tx).await?;
        self.record_account_change(&mut tx, who, user, ChangeKind::Password)
            .await?;
        let after = json!({"name": known.name, "password": "set"});
        let change = (who.id() != user).then(|| AccessChange {
            change: "password_set",
            subject: &known.name,
            by: who.name(),
            summary: format!(
                "{} set the password of {}",
                visible(who.name()),
                visible(&known.name)
            ),
            path: "/settings/users",
        });
        self.record_and_notify(tx, who, (Action::UserChange, None, Some(after)), change)
            .await
    }

    /// Changes the own password. A user without one, who signed in by a link, must have done so within the fresh
    /// period.
    ///
    /// # Errors
    /// As [`prove_again`](Self::prove_again); the user is one of the identity provider; the new one is too weak.
    /// `PasswordChanged`: another password was stored meanwhile, and stays. `AccessEnded`: the user was disabled, or the
    /// session ended.
    pub async fn change_password(
        &self,
        who: &Principal,
        old: &SecretString,
        new: &SecretString,
    ) -> Result<(), IdentityError> {
        super::password::check(new)?;
        let known = self.known_user(who.id()).await?;
        check_is_local(&known, "password", "change it there")?;
        let has_none = !known.has_password;
        let is_fresh = who.session.as_ref().is_some_and(|session| self.is_fresh(session));
        let verified = if has_none && is_fresh {
            String::new()
        } else {
            self.verify_own_password(who, old).await?
        };
        self.store_password(who, &known, new, Some(&verified)).await
    }

    /// Id and stored password of a user who may sign in with it.
    pub(super) async fn password_of(&self, name: &str) -> Result<Option<(String, String)>, IdentityError> {
        if !is_storable(name) {
            return Ok(None);
        }
        let select = "SELECT id, password_hash FROM users
            WHERE name = $1 AND password_hash IS NOT NULL AND issuer IS NULL AND disabled_at IS NULL";
        let row = on_either!(&self.db, Db, |pool| {
            let row = sqlx::query(select).bind(name).fetch_optional(pool).await?;
            row.map(|row| Ok::<_, sqlx::Error>((row.try_get(0)?, row.try_get(1)?)))
                .transpose()?
        });
        Ok(row)
    }
}

/// Users of the identity provider must lose access here when they are removed there: no password or link of their own.
pub(super) fn check_is_local(user: &User, field: &'static str, remedy: &str) -> Result<(), IdentityError> {
    if user.issuer.is_none() {
        return Ok(());
    }
    let why = format!("is managed by the identity provider: {remedy}");
    Err(IdentityError::invalid(field, why))
}
