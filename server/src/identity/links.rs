//! One-time links: the one that makes the first admin, and ones that sign somebody in.

use domain::access::{Grant, Role};
use domain::audit::Action;
use domain::escape::visible;
use secrecy::SecretString;
use serde_json::json;
use sqlx::Row as _;

use super::attempt::too_many;
use super::error::IdentityError;
use super::limits::LINK_MAX;
use super::lineage::{ChangeKind, Lineage};
use super::notice::AccessChange;
use super::people::NewPerson;
use super::secret::{self, Secret};
use super::sessions::SignedIn;
use super::throttle::Key;
use super::who::Who;
use super::{Identity, directory};
use crate::audit::{Entry, Origin};
use crate::db::{Tx, on_either};

const PREFIX: &str = "lhl_";

/// A link that was just used.
struct SpentLink {
    person_id: Option<String>,
    /// Who created it; none for one of a version that did not record it.
    by: Option<Lineage>,
}

impl Identity {
    /// A link for the first admin, while there is none. Earlier ones stop working.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn setup_link(&self) -> Result<Option<Secret>, IdentityError> {
        if self.directory().admins().next().is_some() {
            return Ok(None);
        }
        let system = Who::system("leasehold");
        let (tx, secret) = self.make_link(&system, "setup", None).await?;
        tx.commit().await?;
        Ok(Some(secret))
    }

    /// A link that signs one person in, once. Their earlier ones stop working.
    ///
    /// # Errors
    /// Nobody has this id.
    pub async fn person_link(&self, who: &Who, person: &str) -> Result<Secret, IdentityError> {
        let name = self.known_person(person).await?.name;
        let (mut tx, secret) = self.make_link(who, "person", Some(person)).await?;
        self.note_account_change(&mut tx, who, person, ChangeKind::Link)
            .await?;
        let after = json!({"name": name, "link": "made"});
        let change = (who.id() != person).then(|| AccessChange {
            change: "link_created",
            subject: &name,
            by: who.name(),
            summary: format!(
                "{} created a sign-in link for {}",
                visible(who.name()),
                visible(&name)
            ),
            path: "/settings/people",
        });
        self.record_and_notify(tx, who, (Action::PersonChange, None, Some(after)), change)
            .await?;
        Ok(secret)
    }

    async fn make_link(
        &self,
        who: &Who,
        purpose: &'static str,
        person: Option<&str>,
    ) -> Result<(Tx, Secret), IdentityError> {
        let by = self.lineage(who);
        let secret = Secret::new(PREFIX)?;
        let now = self.now_ms();
        let expires_at = now + i64::try_from(LINK_MAX.as_millis()).unwrap_or(i64::MAX);
        let mut tx = self.db.begin().await?;
        let spend = "UPDATE links SET used_at = $1
            WHERE purpose = $2 AND used_at IS NULL AND coalesce(person_id, '') = $3";
        let insert =
            "INSERT INTO links (secret, purpose, person_id, created_at, expires_at, created_by_id, root_id)
            VALUES ($1, $2, $3, $4, $5, $6, $7)";
        on_either!(&mut tx, Tx, |tx| {
            sqlx::query(spend)
                .bind(now)
                .bind(purpose)
                .bind(person.unwrap_or_default())
                .execute(&mut **tx)
                .await?;
            let query = sqlx::query(insert).bind(secret.hash()).bind(purpose).bind(person);
            query
                .bind(now)
                .bind(expires_at)
                .bind(&by.id)
                .bind(by.root.as_deref())
                .execute(&mut **tx)
                .await?
                .rows_affected()
        });
        Ok((tx, secret))
    }

    /// Whether a setup link would still work, without using it.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn is_setup_link(&self, link: &str) -> Result<bool, IdentityError> {
        self.is_usable(link, "setup").await
    }

    /// By a query that locks nothing: anybody may send links, and a transaction that writes keeps every other writer of the
    /// store waiting.
    async fn is_usable(&self, link: &str, purpose: &str) -> Result<bool, IdentityError> {
        let select = "SELECT 1 FROM links WHERE secret = $1 AND purpose = $2 AND used_at IS NULL
            AND expires_at > $3";
        let now = self.now_ms();
        Ok(on_either!(&self.db, Db, |pool| {
            let query = sqlx::query(select).bind(secret::hash(link)).bind(purpose);
            query.bind(now).fetch_optional(pool).await?.is_some()
        }))
    }

    /// Makes the first admin. The link works once, and only while there is no admin.
    ///
    /// # Errors
    /// `BadLink`; `TooManyGuesses` after several of those; the name is taken, or the name or the password does not fit, and
    /// the link stays good.
    pub async fn set_up(
        &self,
        link: &str,
        name: String,
        password: SecretString,
        origin: &Origin,
    ) -> Result<SignedIn, IdentityError> {
        super::names::check_name(&name)?;
        super::password::check(&password)?;
        if self.directory().admins().next().is_some() {
            return Err(IdentityError::BadLink);
        }
        let key = self.count_link(origin)?;
        if !self.is_setup_link(link).await? {
            return Err(IdentityError::BadLink);
        }
        self.throttle.forgive(&key);
        let mut who = Who::system("setup link");
        who.origin = origin.clone();
        let new = NewPerson {
            name,
            grants: vec![Grant::everywhere(Role::Admin)],
            password: Some(password),
        };
        let hashed = self.hashed_password(&new).await?;
        // One transaction: a name that is taken leaves the link as it was.
        let mut tx = self.db.begin().await?;
        self.spend(&mut tx, link, "setup").await?;
        let id = self.insert_person(tx, &who, new, hashed).await?;
        self.sign_in_as(&id, None, origin).await
    }

    /// Signs the link's person in.
    ///
    /// # Errors
    /// `BadLink`; `TooManyGuesses` after several of those.
    pub async fn open_link(&self, link: &str, origin: &Origin) -> Result<SignedIn, IdentityError> {
        let key = self.count_link(origin)?;
        if !self.is_usable(link, "person").await? {
            return Err(IdentityError::BadLink);
        }
        let mut tx = self.db.begin().await?;
        let spent = self.spend(&mut tx, link, "person").await?;
        tx.commit().await?;
        self.throttle.forgive(&key);
        let person = spent.person_id.ok_or(IdentityError::BadLink)?;
        self.sign_in_as(&person, spent.by.as_ref(), origin).await
    }

    async fn sign_in_as(
        &self,
        person: &str,
        link_by: Option<&Lineage>,
        origin: &Origin,
    ) -> Result<SignedIn, IdentityError> {
        let person = self.person(person).await?;
        let person = person
            .filter(|person| person.disabled_at.is_none())
            .ok_or(IdentityError::BadLink)?;
        let proved_at = Some(self.now_ms());
        self.begin_session_at(person, "link", (proved_at, link_by), origin)
            .await
    }

    /// Counts an attempt for its source before the store is asked; a link that works is forgiven.
    fn count_link(&self, origin: &Origin) -> Result<Key, IdentityError> {
        let key = Key::Link(origin.network());
        self.throttle
            .count(key.clone(), self.clock.tick())
            .map_err(too_many)?;
        Ok(key)
    }

    /// Marks a link as used, or says that it is none. Of several who open it at once, one gets it.
    async fn spend(&self, tx: &mut Tx, link: &str, purpose: &str) -> Result<SpentLink, IdentityError> {
        let now = self.now_ms();
        let update = "UPDATE links SET used_at = $1
            WHERE secret = $2 AND purpose = $3 AND used_at IS NULL AND expires_at > $1
            RETURNING person_id, created_by_id, root_id";
        let spent = on_either!(&mut *tx, Tx, |tx| {
            let query = sqlx::query(update)
                .bind(now)
                .bind(secret::hash(link))
                .bind(purpose);
            let row = query.fetch_optional(&mut **tx).await?;
            match row {
                None => return Err(IdentityError::BadLink),
                Some(row) => {
                    let (by, root): (Option<String>, Option<String>) = (row.try_get(1)?, row.try_get(2)?);
                    SpentLink {
                        person_id: row.try_get(0)?,
                        by: by.map(|id| Lineage::new(id, root)),
                    }
                }
            }
        });
        directory::touch(tx).await?;
        Ok(spent)
    }

    /// Counts a link that did not work for the audit record.
    pub async fn note_bad_link(&self, origin: &Origin) {
        let who = Who::anonymous(origin.clone());
        let entry = Entry {
            after: Some(json!({"way": "link"})),
            ..Entry::new(Action::Login, "bad_link", who.actor(None), origin.clone())
        };
        self.audit.append_anonymous(entry, "").await;
    }
}
