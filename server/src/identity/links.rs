//! One-time links: the one that makes the first admin, and ones that sign somebody in.

use domain::access::{Grant, Role};
use domain::audit::Action;
use secrecy::SecretString;
use serde_json::json;
use sqlx::Row as _;

use super::attempt::too_many;
use super::error::IdentityError;
use super::limits::LINK_MAX;
use super::people::NewPerson;
use super::secret::{self, Secret};
use super::sessions::SignedIn;
use super::throttle::Key;
use super::who::Who;
use super::{Identity, directory};
use crate::audit::{Entry, Origin};
use crate::db::{Tx, on_either};

const PREFIX: &str = "lhl_";

impl Identity {
    /// A link for the first admin, while there is none. Earlier ones stop working.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn setup_link(&self) -> Result<Option<Secret>, IdentityError> {
        if self.directory().admins().next().is_some() {
            return Ok(None);
        }
        let (tx, secret) = self.make_link("setup", None).await?;
        tx.commit().await?;
        Ok(Some(secret))
    }

    /// A link that signs one person in, once. Their earlier ones stop working.
    ///
    /// # Errors
    /// Nobody has this id.
    pub async fn person_link(&self, who: &Who, person: &str) -> Result<Secret, IdentityError> {
        let name = self.known_person(person).await?.name;
        let (tx, secret) = self.make_link("person", Some(person)).await?;
        let after = json!({"name": name, "link": "made"});
        self.record(tx, who, Action::PersonChange, None, Some(after))
            .await?;
        Ok(secret)
    }

    async fn make_link(
        &self,
        purpose: &'static str,
        person: Option<&str>,
    ) -> Result<(Tx, Secret), IdentityError> {
        let secret = Secret::new(PREFIX)?;
        let now = self.now_ms();
        let expires_at = now + i64::try_from(LINK_MAX.as_millis()).unwrap_or(i64::MAX);
        let mut tx = self.db.begin().await?;
        let spend = "UPDATE links SET used_at = $1
            WHERE purpose = $2 AND used_at IS NULL AND coalesce(person_id, '') = $3";
        let insert = "INSERT INTO links (secret, purpose, person_id, created_at, expires_at)
            VALUES ($1, $2, $3, $4, $5)";
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
        let select = "SELECT 1 FROM links WHERE secret = $1 AND purpose = 'setup' AND used_at IS NULL
            AND expires_at > $2";
        let now = self.now_ms();
        Ok(on_either!(&self.db, Db, |pool| {
            let query = sqlx::query(select).bind(secret::hash(link)).bind(now);
            query.fetch_optional(pool).await?.is_some()
        }))
    }

    /// Makes the first admin. The link works once, and only while there is no admin.
    ///
    /// # Errors
    /// `BadLink`; `TooManyGuesses` after several of those; the name or the password does not fit, and the link stays good.
    pub async fn set_up(
        &self,
        link: &str,
        name: String,
        password: SecretString,
        origin: &Origin,
    ) -> Result<SignedIn, IdentityError> {
        super::people::check_name(&name)?;
        super::password::check(&password)?;
        if self.directory().admins().next().is_some() {
            return Err(IdentityError::BadLink);
        }
        self.spend(link, "setup", origin).await?;
        let mut who = Who::system("setup link");
        who.origin = origin.clone();
        let new = NewPerson {
            name,
            grants: vec![Grant::everywhere(Role::Admin)],
            password: Some(password),
        };
        let id = self.add_person(&who, new).await?;
        self.sign_in_as(&id, origin).await
    }

    /// Signs the link's person in.
    ///
    /// # Errors
    /// `BadLink`; `TooManyGuesses` after several of those.
    pub async fn open_link(&self, link: &str, origin: &Origin) -> Result<SignedIn, IdentityError> {
        let person = self.spend(link, "person", origin).await?;
        let person = person.ok_or(IdentityError::BadLink)?;
        self.sign_in_as(&person, origin).await
    }

    async fn sign_in_as(&self, person: &str, origin: &Origin) -> Result<SignedIn, IdentityError> {
        let person = self.person(person).await?;
        let person = person
            .filter(|person| person.disabled_at.is_none())
            .ok_or(IdentityError::BadLink)?;
        self.begin_session(person, "link", origin).await
    }

    /// Marks a link as used, or says that it is none. Of several who open it at once, one gets it.
    /// Links that do not work are counted for their source before the store is asked.
    async fn spend(
        &self,
        link: &str,
        purpose: &str,
        origin: &Origin,
    ) -> Result<Option<String>, IdentityError> {
        let key = Key::Link(origin.network());
        self.throttle
            .count(key.clone(), self.clock.tick())
            .map_err(too_many)?;
        let now = self.now_ms();
        let update = "UPDATE links SET used_at = $1
            WHERE secret = $2 AND purpose = $3 AND used_at IS NULL AND expires_at > $1 RETURNING person_id";
        let mut tx = self.db.begin().await?;
        let spent = on_either!(&mut tx, Tx, |tx| {
            let query = sqlx::query(update)
                .bind(now)
                .bind(secret::hash(link))
                .bind(purpose);
            let row = query.fetch_optional(&mut **tx).await?;
            row.map(|row| row.try_get::<Option<String>, _>(0)).transpose()?
        });
        let person = spent.ok_or(IdentityError::BadLink)?;
        directory::touch(&mut tx).await?;
        tx.commit().await?;
        self.throttle.forgive(&key);
        Ok(person)
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
