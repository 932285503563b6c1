//! One-time links: the setup link for the first admin, and sign-in links.

use domain::access::{Grant, Role};
use domain::audit::Action;
use domain::duration::millis;
use domain::escape::visible;
use secrecy::SecretString;
use serde_json::json;
use sqlx::Row as _;

use super::access_change::AccessChange;
use super::created_credentials::parent_id;
use super::error::IdentityError;
use super::limits::LINK_MAX;
use super::lineage::{ChangeKind, Lineage};
use super::principal::Principal;
use super::row_locks::{lock_creator, lock_session};
use super::secret::{self, Secret};
use super::session_start::Proof;
use super::sessions::SignedIn;
use super::sign_in_attempt::too_many;
use super::sign_in_throttle::{Attempts, Key};
use super::user_passwords::check_is_local;
use super::users::NewUser;
use super::{Identity, principal_cache};
use crate::audit::{Entry, Origin};
use runtime::db::{Tx, on_either};

const PREFIX: &str = "lhl_";

/// A link that can be used now.
struct UsableLink {
    /// `None`: a setup link.
    user_id: Option<String>,
    /// Its creator, or the session in which it was created; `None` if not recorded.
    by: Option<Lineage>,
}

impl Identity {
    /// A setup link, while there is no admin. Earlier setup links become invalid.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn setup_link(&self) -> Result<Option<Secret>, IdentityError> {
        if self.directory().admins().next().is_some() {
            return Ok(None);
        }
        let system = Principal::system("leasehold");
        let (tx, secret) = self.create_link(&system, "setup", None).await?;
        tx.commit().await?;
        Ok(Some(secret))
    }

    /// A sign-in link for another user. Earlier links of that user become invalid. Not for oneself: its session would
    /// count as freshly authenticated without the password, so a session could renew itself.
    ///
    /// # Errors
    /// No user has this id; the user is `who`, disabled, or one of the identity provider.
    pub async fn user_link(&self, who: &Principal, user: &str) -> Result<Secret, IdentityError> {
        if who.id() == user {
            let why = "must be another user: change your own password at /settings, or run `leasehold user link` on the server";
            return Err(IdentityError::invalid("user", why));
        }
        let known = self.known_user(user).await?;
        check_is_local(&known, "user", "they sign in there")?;
        if known.disabled_at.is_some() {
            return Err(IdentityError::invalid("user", "is disabled; enable it first"));
        }
        let name = known.name;
        let (mut tx, secret) = self.create_link(who, "user", Some(user)).await?;
        self.record_account_change(&mut tx, who, user, ChangeKind::Link)
            .await?;
        let after = json!({"name": name, "link": "made"});
        let change = AccessChange {
            change: "link_created",
            subject: &name,
            by: who.name(),
            summary: format!(
                "{} created a sign-in link for {}",
                visible(who.name()),
                visible(&name)
            ),
            path: "/settings/users",
        };
        self.record_and_notify(tx, who, (Action::UserChange, None, Some(after)), Some(change))
            .await?;
        Ok(secret)
    }

    async fn create_link(
        &self,
        who: &Principal,
        purpose: &'static str,
        user: Option<&str>,
    ) -> Result<(Tx, Secret), IdentityError> {
        let root = self.lineage(who).root;
        let secret = Secret::new(PREFIX)?;
        let now = self.now_ms();
        let expires_at = now + millis(LINK_MAX);
        let mut tx = self.db.begin().await?;
        lock_creator(&mut tx, who).await?;
        let expire_earlier = "UPDATE one_time_links SET used_at = $1
            WHERE purpose = $2 AND used_at IS NULL AND coalesce(user_id, '') = $3";
        let insert =
            "INSERT INTO one_time_links (secret_hash, purpose, user_id, created_at, expires_at, created_by_id,
                root_user_id)
            VALUES ($1, $2, $3, $4, $5, $6, $7)";
        on_either!(&mut tx, Tx, |tx| {
            let query = sqlx::query(expire_earlier).bind(now).bind(purpose);
            let query = query.bind(user.unwrap_or_default());
            query.execute(&mut **tx).await?.rows_affected()
        });
        lock_session(&mut tx, who).await?;
        on_either!(&mut tx, Tx, |tx| {
            let query = sqlx::query(insert).bind(secret.hash()).bind(purpose).bind(user);
            query
                .bind(now)
                .bind(expires_at)
                .bind(parent_id(who))
                .bind(root.as_deref())
                .execute(&mut **tx)
                .await?
                .rows_affected()
        });
        Ok((tx, secret))
    }

    /// Checks a sign-in link without using it. Counts as an attempt of its source.
    ///
    /// # Errors
    /// `BadLink`; `TooManyGuesses` after several of those.
    pub async fn check_user_link(&self, link: &str, origin: &Origin) -> Result<(), IdentityError> {
        let keys = self.count_link(origin)?;
        if self.usable_link(link, "user").await?.is_none() {
            return Err(IdentityError::BadLink);
        }
        self.throttle.refund(&keys);
        Ok(())
    }

    /// The same of a setup link; without a query once there is an admin.
    ///
    /// # Errors
    /// As [`Self::check_user_link`].
    pub async fn check_setup_link(&self, link: &str, origin: &Origin) -> Result<(), IdentityError> {
        if self.directory().admins().next().is_some() {
            return Err(IdentityError::BadLink);
        }
        let keys = self.count_link(origin)?;
        if self.usable_link(link, "setup").await?.is_none() {
            return Err(IdentityError::BadLink);
        }
        self.throttle.refund(&keys);
        Ok(())
    }

    /// A query without locks: anonymous clients can send links, and a write transaction would block all other
    /// writers.
    async fn usable_link(&self, link: &str, purpose: &str) -> Result<Option<UsableLink>, IdentityError> {
        let select = "SELECT user_id, created_by_id, root_user_id FROM one_time_links
            WHERE secret_hash = $1 AND purpose = $2 AND used_at IS NULL AND expires_at > $3";
        let now = self.now_ms();
        let found = on_either!(&self.db, Db, |pool| {
            let query = sqlx::query(select).bind(secret::hash(link)).bind(purpose);
            match query.bind(now).fetch_optional(pool).await? {
                None => None,
                Some(row) => {
                    let (by, root): (Option<String>, Option<String>) = (row.try_get(1)?, row.try_get(2)?);
                    Some(UsableLink {
                        user_id: row.try_get(0)?,
                        by: by.map(|id| Lineage::new(id, root)),
                    })
                }
            }
        });
        Ok(found)
    }

    /// Creates the first admin. The link is valid once, and only while there is no admin.
    ///
    /// # Errors
    /// `BadLink`; `TooManyGuesses` after several of those; an invalid or taken name or a weak password, in which
    /// case the link stays valid.
    pub async fn set_up(
        &self,
        link: &str,
        name: String,
        password: SecretString,
        origin: &Origin,
    ) -> Result<SignedIn, IdentityError> {
        super::names::check_name(&name)?;
        super::password::check(&password)?;
        self.check_setup_link(link, origin).await?;
        let mut who = Principal::system("setup link");
        who.origin = origin.clone();
        let new = NewUser {
            name,
            grants: vec![Grant::everywhere(Role::Admin)],
            password: Some(password),
        };
        let hashed = self.hashed_password(&new).await?;
        // One transaction: a taken name leaves the link valid.
        let mut tx = self.db.begin().await?;
        self.use_link(&mut tx, link, "setup").await?;
        let id = self.insert_user(tx, &who, new, hashed).await?;
        let user = self.known_user(&id).await?;
        let begun = self.begin_session(user, Proof::Link(None), origin).await?;
        begun.ok_or(IdentityError::BadLink)
    }

    /// Signs in the link's user. The use of the link and the session are one transaction: after a failure the link is
    /// still valid.
    ///
    /// # Errors
    /// `BadLink`; `TooManyGuesses` after several of those.
    pub async fn open_link(&self, link: &str, origin: &Origin) -> Result<SignedIn, IdentityError> {
        let keys = self.count_link(origin)?;
        let found = self.usable_link(link, "user").await?;
        let found = found.ok_or(IdentityError::BadLink)?;
        let user = self.user(found.user_id.as_deref().unwrap_or_default()).await?;
        let user = user.ok_or(IdentityError::BadLink)?;
        let mut tx = self.db.begin().await?;
        // Locks the user before the link, in the order of the changes that end links: no deadlock.
        let proof = Proof::Link(found.by.as_ref());
        let session = self.insert_session(&mut tx, &user, proof, origin).await?;
        let session = session.ok_or(IdentityError::BadLink)?;
        self.use_link(&mut tx, link, "user").await?;
        let signed_in = self.commit_session(tx, user, session, origin).await?;
        self.throttle.refund(&keys);
        Ok(signed_in)
    }

    /// Counts an attempt for its source before the store is queried; a valid link removes the count.
    fn count_link(&self, origin: &Origin) -> Result<Vec<Key>, IdentityError> {
        let keys = Key::of_source(origin.network(), Attempts::Links);
        self.throttle
            .count(keys.clone(), self.clock.tick())
            .map_err(too_many)?;
        Ok(keys)
    }

    /// Marks a link as used. Of concurrent uses, one succeeds.
    async fn use_link(&self, tx: &mut Tx, link: &str, purpose: &str) -> Result<(), IdentityError> {
        let now = self.now_ms();
        let update = "UPDATE one_time_links SET used_at = $1
            WHERE secret_hash = $2 AND purpose = $3 AND used_at IS NULL AND expires_at > $1";
        let used = on_either!(&mut *tx, Tx, |tx| {
            let query = sqlx::query(update)
                .bind(now)
                .bind(secret::hash(link))
                .bind(purpose);
            query.execute(&mut **tx).await?.rows_affected()
        });
        if used == 0 {
            return Err(IdentityError::BadLink);
        }
        principal_cache::touch(tx).await?;
        Ok(())
    }

    /// Counts an invalid link for the audit log.
    pub async fn record_bad_link(&self, origin: &Origin) {
        let who = Principal::anonymous(origin.clone());
        let entry = Entry {
            after: Some(json!({"way": "link"})),
            ..Entry::new(Action::Login, "bad_link", who.actor(None), origin.clone())
        };
        self.audit.append_anonymous(entry, "").await;
    }
}
