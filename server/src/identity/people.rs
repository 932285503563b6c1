//! People: added, given roles, given a password, disabled; each with its record in the same transaction.

use domain::access::{Grant, Right};
use domain::audit::Action;
use domain::escape::visible;
use secrecy::SecretString;
use serde_json::json;
use sqlx::Row as _;

use super::error::IdentityError;
use super::lineage::{ChangeKind, tie};
use super::names::check_name;
use super::notice::{AccessChange, gained, roles_granted};
use super::who::Who;
use super::{Identity, directory, secret};
use crate::db::{Tx, on_either};

#[derive(Debug)]
pub struct NewPerson {
    pub name: String,
    pub grants: Vec<Grant>,
    /// Absent: signs in by a link, or through an identity provider.
    pub password: Option<SecretString>,
}

impl Identity {
    /// # Errors
    /// The name is taken or does not fit, the password is too weak.
    pub async fn add_person(&self, who: &Who, new: NewPerson) -> Result<String, IdentityError> {
        check_name(&new.name)?;
        let password = self.hashed_password(&new).await?;
        let tx = self.db.begin().await?;
        self.insert_person(tx, who, new, password).await
    }

    pub(super) async fn hashed_password(&self, new: &NewPerson) -> Result<Option<String>, IdentityError> {
        match &new.password {
            Some(password) => Ok(Some(self.hash_password(password).await?)),
            None => Ok(None),
        }
    }

    /// In a transaction that may have changed something before, and is committed here.
    pub(super) async fn insert_person(
        &self,
        mut tx: Tx,
        who: &Who,
        new: NewPerson,
        password: Option<String>,
    ) -> Result<String, IdentityError> {
        let id = secret::id("p_")?;
        let insert = "INSERT INTO people (id, name, password, created_at) VALUES ($1, $2, $3, $4)
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
                what: "person",
                name: new.name,
            });
        }
        for (place, grant) in new.grants.iter().enumerate() {
            insert_grant(&mut tx, Holder::Person(&id), place, grant).await?;
        }
        directory::touch(&mut tx).await?;
        self.note_account_change(&mut tx, who, &id, ChangeKind::Created)
            .await?;
        if new.grants.iter().any(approves) {
            self.note_account_change(&mut tx, who, &id, ChangeKind::Approver)
                .await?;
        }
        let after = json!({"id": id, "name": new.name, "grants": new.grants});
        let gained = gained(std::iter::empty(), &new.grants);
        let change = roles_granted(who.name(), ("user", &new.name), &gained);
        self.record_and_notify(tx, who, (Action::PersonCreate, None, Some(after)), change)
            .await?;
        Ok(id)
    }

    /// Replaces all that somebody may do.
    ///
    /// # Errors
    /// Nobody has this id; nobody else could administer any more.
    pub async fn set_grants(&self, who: &Who, person: &str, grants: Vec<Grant>) -> Result<(), IdentityError> {
        let before = self.known_person(person).await?;
        if before.issuer.is_some() {
            let why = "come from the identity provider, at each sign-in";
            return Err(IdentityError::invalid("grants", why));
        }
        let admins_after = domain::access::Grants::new(grants.clone()).may_everywhere(Right::Administer);
        if !admins_after {
            self.keeps_an_admin_without(person)?;
        }
        let mut tx = self.db.begin().await?;
        let forget = "DELETE FROM grants WHERE person_id = $1";
        on_either!(&mut tx, Tx, |tx| sqlx::query(forget)
            .bind(person)
            .execute(&mut **tx)
            .await?
            .rows_affected());
        for (place, grant) in grants.iter().enumerate() {
            insert_grant(&mut tx, Holder::Person(person), place, grant).await?;
        }
        directory::touch(&mut tx).await?;
        if self.is_approver_change(who, &before, &grants).await? {
            self.note_account_change(&mut tx, who, person, ChangeKind::Approver)
                .await?;
        }
        let (old, new) = (
            json!({"name": before.name, "grants": *before.grants}),
            json!({"grants": grants}),
        );
        let gained = gained(before.grants.iter(), &grants);
        let change = roles_granted(who.name(), ("user", &before.name), &gained);
        self.record_and_notify(tx, who, (Action::PersonChange, Some(old), Some(new)), change)
            .await
    }

    /// Whether these grants give a role that approves, which was not there; or confirm one that an API token gave.
    async fn is_approver_change(
        &self,
        who: &Who,
        before: &super::Person,
        grants: &[Grant],
    ) -> Result<bool, IdentityError> {
        let is_new = |grant: &Grant| approves(grant) && !before.grants.iter().any(|old| old == grant);
        if grants.iter().any(is_new) {
            return Ok(true);
        }
        if who.is_token() || !grants.iter().any(approves) {
            return Ok(false);
        }
        let changes = self.account_changes(&before.id).await?;
        Ok(tie(&changes, &[], i64::MAX).is_some())
    }

    /// Ends their other sessions: whoever knew the old password is out.
    ///
    /// # Errors
    /// Nobody has this id; the password is too weak.
    pub async fn set_password(
        &self,
        who: &Who,
        person: &str,
        password: &SecretString,
    ) -> Result<(), IdentityError> {
        let known = self.known_person(person).await?;
        let hashed = self.hash_password(password).await?;
        let mut tx = self.db.begin().await?;
        let update = "UPDATE people SET password = $1 WHERE id = $2";
        let end = "UPDATE sessions SET ended_at = $1 WHERE person_id = $2 AND ended_at IS NULL AND id <> $3";
        let own = who.session.as_ref().map_or("", |session| session.id.as_str());
        on_either!(&mut tx, Tx, |tx| {
            let query = sqlx::query(update).bind(&hashed).bind(person);
            query.execute(&mut **tx).await?;
            let query = sqlx::query(end).bind(self.now_ms()).bind(person).bind(own);
            query.execute(&mut **tx).await?;
        });
        directory::touch(&mut tx).await?;
        self.note_account_change(&mut tx, who, person, ChangeKind::Password)
            .await?;
        let after = json!({"name": known.name, "password": "set"});
        let change = (who.id() != person).then(|| AccessChange {
            change: "password_set",
            subject: &known.name,
            by: who.name(),
            summary: format!(
                "{} set the password of {}",
                visible(who.name()),
                visible(&known.name)
            ),
            path: "/settings/people",
        });
        self.record_and_notify(tx, who, (Action::PersonChange, None, Some(after)), change)
            .await
    }

    /// Ends all their sessions; their record stays. A second time it changes nothing.
    ///
    /// # Errors
    /// Nobody has this id; nobody else could administer any more.
    pub async fn disable_person(&self, who: &Who, person: &str) -> Result<(), IdentityError> {
        let known = self.known_person(person).await?;
        if known.disabled_at.is_some() {
            return Ok(());
        }
        self.keeps_an_admin_without(person)?;
        let now = self.now_ms();
        let mut tx = self.db.begin().await?;
        let disable = "UPDATE people SET disabled_at = $1 WHERE id = $2";
        let end = "UPDATE sessions SET ended_at = $1 WHERE person_id = $2 AND ended_at IS NULL";
        on_either!(&mut tx, Tx, |tx| {
            sqlx::query(disable)
                .bind(now)
                .bind(person)
                .execute(&mut **tx)
                .await?;
            sqlx::query(end).bind(now).bind(person).execute(&mut **tx).await?;
        });
        directory::touch(&mut tx).await?;
        let before = json!({"name": known.name, "grants": *known.grants});
        self.record(tx, who, Action::PersonDisable, Some(before), None)
            .await
    }

    /// Somebody gives themselves another password. Who had none, because they came by a link, must have come just now.
    ///
    /// # Errors
    /// As [`prove_again`](Self::prove_again); the new one is too weak.
    pub async fn change_password(
        &self,
        who: &Who,
        old: &SecretString,
        new: &SecretString,
    ) -> Result<(), IdentityError> {
        super::password::check(new)?;
        let known = self.known_person(who.id()).await?;
        let has_none = !known.has_password;
        if has_none && known.issuer.is_some() {
            // Whoever leaves there must be out here.
            let why = "is the identity provider's affair: sign in there";
            return Err(IdentityError::invalid("password", why));
        }
        let is_fresh = who.session.as_ref().is_some_and(|session| self.is_fresh(session));
        if !(has_none && is_fresh) {
            self.prove_again(who, old).await?;
        }
        self.set_password(who, who.id(), new).await
    }

    /// May sign in again, with what they may do as it was. A second time it changes nothing.
    ///
    /// # Errors
    /// Nobody has this id.
    pub async fn enable_person(&self, who: &Who, person: &str) -> Result<(), IdentityError> {
        let known = self.known_person(person).await?;
        if known.disabled_at.is_none() {
            return Ok(());
        }
        let mut tx = self.db.begin().await?;
        let enable = "UPDATE people SET disabled_at = NULL WHERE id = $1";
        on_either!(&mut tx, Tx, |tx| {
            let query = sqlx::query(enable).bind(person);
            query.execute(&mut **tx).await?.rows_affected()
        });
        directory::touch(&mut tx).await?;
        let (before, after) = (
            json!({"disabled": true}),
            json!({"name": known.name, "disabled": false}),
        );
        self.record(tx, who, Action::PersonChange, Some(before), Some(after))
            .await
    }

    /// The one switch that stops every forced unlock.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn set_read_only(&self, who: &Who, read_only: bool) -> Result<(), IdentityError> {
        let word = if read_only { "yes" } else { "no" };
        let mut tx = self.db.begin().await?;
        let update = "UPDATE settings SET value = $1 WHERE key = 'read_only'";
        on_either!(&mut tx, Tx, |tx| sqlx::query(update)
            .bind(word)
            .execute(&mut **tx)
            .await?
            .rows_affected());
        directory::touch(&mut tx).await?;
        let before = json!({"readOnly": self.directory().read_only});
        let after = json!({"readOnly": read_only});
        self.record(tx, who, Action::ReadOnlyChange, Some(before), Some(after))
            .await
    }

    pub(super) async fn known_person(&self, id: &str) -> Result<super::Person, IdentityError> {
        self.person(id).await?.ok_or_else(|| IdentityError::NotFound {
            what: "person",
            name: id.to_owned(),
        })
    }

    /// From memory; one who is not there may have been made a moment ago by a command or another server.
    pub(super) async fn person(&self, id: &str) -> Result<Option<super::Person>, IdentityError> {
        let find = || self.directory.borrow().people.get(id).cloned();
        if let Some(person) = find() {
            return Ok(Some(person));
        }
        self.refresh().await?;
        Ok(find())
    }

    fn keeps_an_admin_without(&self, person: &str) -> Result<(), IdentityError> {
        let directory = self.directory();
        let is_one = directory.admins().any(|admin| admin.id == person);
        let others = directory.admins().any(|admin| admin.id != person);
        if is_one && !others {
            return Err(IdentityError::LastAdmin);
        }
        Ok(())
    }

    /// Id and stored password of somebody who may sign in.
    pub(super) async fn password_of(&self, name: &str) -> Result<Option<(String, String)>, IdentityError> {
        let select = "SELECT id, password FROM people
            WHERE name = $1 AND password IS NOT NULL AND disabled_at IS NULL";
        let row = on_either!(&self.db, Db, |pool| {
            let row = sqlx::query(select).bind(name).fetch_optional(pool).await?;
            row.map(|row| Ok::<_, sqlx::Error>((row.try_get(0)?, row.try_get(1)?)))
                .transpose()?
        });
        Ok(row)
    }
}

fn approves(grant: &Grant) -> bool {
    grant.role.rights().contains(&Right::Approve)
}

pub(super) enum Holder<'a> {
    Person(&'a str),
    Token(&'a str),
}

pub(super) async fn insert_grant(
    tx: &mut Tx,
    holder: Holder<'_>,
    place: usize,
    grant: &Grant,
) -> Result<(), IdentityError> {
    let (person, token) = match holder {
        Holder::Person(id) => (Some(id), None),
        Holder::Token(id) => (None, Some(id)),
    };
    check_prefix(grant.prefix.as_deref())?;
    let insert =
        "INSERT INTO grants (id, person_id, token_id, role, backend, prefix) VALUES ($1, $2, $3, $4, $5, $6)";
    // They are read back by id, and stay in the order in which they were given.
    let id = secret::id(&format!("g_{place:04}_"))?;
    on_either!(tx, Tx, |tx| {
        let query = sqlx::query(insert)
            .bind(&id)
            .bind(person)
            .bind(token)
            .bind(grant.role.wire());
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
            "is not empty; leave it out for everything",
        )),
        Some(text) if text.chars().any(char::is_control) => {
            Err(IdentityError::invalid("prefix", "has no control characters"))
        }
        _ => Ok(()),
    }
}
