//! The person behind a subject: found by issuer and subject, made at the first sign-in, given what the claim says.

use domain::access::Grant;
use domain::audit::Action;
use serde_json::json;
use sqlx::Row as _;

use super::OidcError;
use super::provider::Known;
use crate::audit::Origin;
use crate::config::OidcConfig;
use crate::db::on_either;
use crate::identity::limits::{NAME_BYTES_MAX, NAMESAKES_MAX};
use crate::identity::names::{check_name, fitting};
use crate::identity::notice::{gained, roles_granted};
use crate::identity::people::{Holder, insert_grant};
use crate::identity::who::{Subject, Who};
use crate::identity::{Identity, IdentityError, Person, directory, secret};

impl Identity {
    pub(super) async fn person_of_provider(
        &self,
        config: &OidcConfig,
        known: &Known,
        origin: &Origin,
    ) -> Result<Person, OidcError> {
        let grants = granted(config, &known.words);
        let select = "SELECT id FROM people WHERE issuer = $1 AND subject = $2";
        let id: Option<String> = on_either!(&self.db, Db, |pool| {
            let query = sqlx::query(select).bind(&config.issuer).bind(&known.subject);
            let row = query.fetch_optional(pool).await?;
            row.map(|row| row.try_get(0)).transpose()?
        });
        let person = match &id {
            Some(id) => Some(self.known_person(id).await?),
            None => None,
        };
        if person.as_ref().is_some_and(|person| person.disabled_at.is_some()) {
            return Err(OidcError::refused("disabled", "this person was disabled here"));
        }
        if grants.is_empty() {
            // What they could do before, they may not any more.
            if let Some(person) = &person {
                self.take_over_grants(person, grants, origin).await?;
            }
            let detail = format!("no [[oidc.role]] is for one of {:?}", known.words);
            return Err(OidcError::refused("no_role", detail));
        }
        let id = match person {
            Some(person) => {
                self.take_over_grants(&person, grants, origin).await?;
                person.id
            }
            None => self.add_of_provider(config, known, grants, origin).await?,
        };
        Ok(self.known_person(&id).await?)
    }

    /// The provider's word counts over what was here, the last admin's too: who may be one is decided there.
    async fn take_over_grants(
        &self,
        person: &Person,
        grants: Vec<Grant>,
        origin: &Origin,
    ) -> Result<(), IdentityError> {
        if person.grants.iter().eq(grants.iter()) {
            return Ok(());
        }
        let mut tx = self.db.begin().await?;
        let forget = "DELETE FROM grants WHERE person_id = $1";
        on_either!(&mut tx, Tx, |tx| sqlx::query(forget)
            .bind(&person.id)
            .execute(&mut **tx)
            .await?
            .rows_affected());
        for (place, grant) in grants.iter().enumerate() {
            insert_grant(&mut tx, Holder::Person(&person.id), place, grant).await?;
        }
        directory::touch(&mut tx).await?;
        let who = of_themselves(&person.id, &person.name, origin);
        let (before, after) = (
            json!({"name": person.name, "grants": *person.grants}),
            json!({"grants": grants, "by": "identity provider"}),
        );
        let gained = gained(person.grants.iter(), &grants);
        let change = roles_granted("the identity provider", ("user", &person.name), &gained);
        self.record_and_notify(
            tx,
            &who,
            (Action::PersonChange, Some(before), Some(after)),
            change,
        )
        .await
    }

    async fn add_of_provider(
        &self,
        config: &OidcConfig,
        known: &Known,
        grants: Vec<Grant>,
        origin: &Origin,
    ) -> Result<String, OidcError> {
        let id = secret::id("p_")?;
        let mut tx = self.db.begin().await?;
        let insert = "INSERT INTO people (id, name, issuer, subject, created_at) VALUES ($1, $2, $3, $4, $5)
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
            what: "person",
            name: known.name.clone(),
        })?;
        for (place, grant) in grants.iter().enumerate() {
            insert_grant(&mut tx, Holder::Person(&id), place, grant).await?;
        }
        directory::touch(&mut tx).await?;
        let after = json!({"id": id, "name": name, "grants": grants, "issuer": config.issuer, "subject": known.subject});
        let who = of_themselves(&id, &name, origin);
        let gained = gained(std::iter::empty(), &grants);
        let change = roles_granted("the identity provider", ("user", &name), &gained);
        self.record_and_notify(tx, &who, (Action::PersonCreate, None, Some(after)), change)
            .await?;
        Ok(id)
    }
}

/// Each word's grants, in the order of the configuration, each once.
fn granted(config: &OidcConfig, words: &[String]) -> Vec<Grant> {
    let mut grants: Vec<Grant> = Vec::new();
    for rule in &config.roles {
        let is_theirs = rule.value == "*" || words.contains(&rule.value);
        if is_theirs && !grants.contains(&rule.grant) {
            grants.push(rule.grant.clone());
        }
    }
    grants
}

fn of_themselves(id: &str, name: &str, origin: &Origin) -> Who {
    let mut who = Who::anonymous(origin.clone());
    who.subject = Subject::Person {
        id: id.into(),
        name: name.into(),
    };
    who
}

/// The name that the provider gives, fit for ours; where somebody here has it already, the same with a number. Never
/// theirs: a name at the provider may be anybody's choice.
fn names(known: &Known) -> impl Iterator<Item = String> {
    // Room for the number.
    let mut name = fitting(&known.name, NAME_BYTES_MAX - 6);
    if check_name(&name).is_err() {
        "somebody".clone_into(&mut name);
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
    fn a_name_from_elsewhere_is_made_fit_and_never_takes_one_that_is_there() {
        // White space, controls and bidi, too long, nothing at all; and the numbers that follow.
        let first = |name: &str| {
            let known = Known {
                subject: "s".to_owned(),
                name: name.to_owned(),
                words: Vec::new(),
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
        assert_eq!(first(""), "somebody");
        // Letters of another script, which look like those of the first.
        assert_eq!(first("ad\u{430}"), "ad_");
        assert!(first(&"ä".repeat(200)).len() < NAME_BYTES_MAX);
    }
}
