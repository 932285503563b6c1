//! Sessions of people in browsers: begun by a password or a link, ended by time, by leaving, or by somebody else.

use std::net::IpAddr;

use domain::audit::Action;
use secrecy::SecretString;
use serde_json::json;
use sqlx::Row as _;

use super::error::IdentityError;
use super::hashing_queue::Share;
use super::limits::{
    FRESH, KNOWN_PAIRS_MAX, KNOWN_PAIRS_SINCE, SESSION_IDLE, SESSION_MAX, SESSION_SEEN_EVERY,
};
use super::lineage::Lineage;
use super::secret::{self, Secret};
use super::throttle::Key;
use super::who::{Subject, Who};
use super::{Identity, Person, directory, password};
use crate::audit::{Actor, Entry, Origin};
use crate::db::on_either;

const PREFIX: &str = "lhs_";

/// A living session, as one request found it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    pub id: String,
    pub person_id: String,
    /// Milliseconds since 1970.
    pub authenticated_at: i64,
    /// Who created the link that opened it; none where no link did.
    pub link_by_id: Option<String>,
    /// The person behind that link; none where it is unknown.
    pub root_id: Option<String>,
}

/// What a sign-in gives: the cookie's value, and who it is.
#[derive(Debug, Clone)]
pub struct SignedIn {
    pub secret: Secret,
    pub person: Person,
}

/// One session as it is listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionView {
    pub id: String,
    pub person_id: String,
    pub way: String,
    pub created_at: i64,
    pub seen_at: i64,
    pub ip: Option<String>,
    pub user_agent: Option<String>,
}

pub(super) fn ms(time: std::time::Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

impl Identity {
    /// The same answer, after the same time, for an unknown name, a wrong password and somebody who was disabled.
    ///
    /// # Errors
    /// `WrongPassword`; `TooManyGuesses` and `Busy` with the wait; `Invalid` for a password that is too long.
    pub async fn sign_in(
        &self,
        name: &str,
        password: &SecretString,
        origin: &Origin,
    ) -> Result<SignedIn, IdentityError> {
        password::check_size(password)?;
        let (keys, is_known) = self.throttle.keys(origin.network(), name);
        let share = if is_known { Share::Known } else { Share::Anyone };
        let attempt = self.begin_attempt(keys, share).await?;
        let known = match self.password_of(name).await {
            Ok(known) => known,
            Err(error) => {
                attempt.cancel();
                return Err(error);
            }
        };
        let stored = known.as_ref().map(|(_, stored)| stored.clone());
        let person = match &known {
            Some((id, _)) => self.person(id).await?,
            None => None,
        };
        let fits = self.evaluate(attempt, password, stored).await?;
        let Some(person) = person.filter(|_| fits) else {
            let actor = Actor {
                id: "anonymous".to_owned(),
                name: name.chars().take(64).collect(),
                role: None,
            };
            let entry = Entry::new(Action::Login, "wrong_password", actor, origin.clone());
            self.audit.append_anonymous(entry, "").await;
            return Err(IdentityError::WrongPassword);
        };
        self.begin_session(person, "password", origin).await
    }

    /// Reads who signed in from where before this start, so that a restart does not treat known people as strangers.
    pub(super) async fn remember_sources(&self) -> Result<(), sqlx::Error> {
        let select = "SELECT p.name, s.ip FROM sessions s JOIN people p ON p.id = s.person_id
            WHERE s.ip IS NOT NULL AND s.created_at > $1 ORDER BY s.created_at DESC LIMIT $2";
        let since = self.now_ms() - ms(KNOWN_PAIRS_SINCE);
        let most = i64::try_from(KNOWN_PAIRS_MAX).unwrap_or(i64::MAX);
        let rows: Vec<(String, String)> = on_either!(&self.db, Db, |pool| {
            sqlx::query_as(select)
                .bind(since)
                .bind(most)
                .fetch_all(pool)
                .await?
        });
        // The newest last: the oldest is the first to be forgotten.
        for (name, ip) in rows.into_iter().rev() {
            if let Ok(ip) = ip.parse::<IpAddr>() {
                self.throttle.remember(ip.into(), &name);
            }
        }
        Ok(())
    }

    pub(super) async fn begin_session(
        &self,
        person: Person,
        way: &'static str,
        origin: &Origin,
    ) -> Result<SignedIn, IdentityError> {
        let now = self.now_ms();
        self.begin_session_at(person, way, (Some(now), None), origin)
            .await
    }

    /// `proved_at` is when they proved who they are, as far as anybody knows: without it the session is never fresh.
    /// `link_by` created the link that opens it.
    pub(super) async fn begin_session_at(
        &self,
        person: Person,
        way: &'static str,
        (proved_at, link_by): (Option<i64>, Option<&Lineage>),
        origin: &Origin,
    ) -> Result<SignedIn, IdentityError> {
        let (id, secret) = (secret::id("s_")?, Secret::new(PREFIX)?);
        let now = self.now_ms();
        let mut tx = self.db.begin().await?;
        let insert =
            "INSERT INTO sessions (id, secret, person_id, way, created_at, seen_at, authenticated_at, ip,
            user_agent, link_by_id, root_id) VALUES ($1, $2, $3, $4, $5, $5, $6, $7, $8, $9, $10)";
        on_either!(&mut tx, Tx, |tx| {
            let query = sqlx::query(insert)
                .bind(&id)
                .bind(secret.hash())
                .bind(&person.id)
                .bind(way);
            let query = query
                .bind(now)
                .bind(proved_at.unwrap_or(0))
                .bind(origin.ip.map(|ip| ip.to_string()))
                .bind(origin.user_agent.as_deref())
                .bind(link_by.map(|by| by.id.as_str()))
                .bind(link_by.and_then(|by| by.root.as_deref()));
            query.execute(&mut **tx).await?.rows_affected()
        });
        let actor = Actor {
            id: person.id.clone(),
            name: person.name.clone(),
            role: None,
        };
        let entry = Entry {
            after: Some(json!({"session": id, "way": way})),
            ..Entry::new(Action::Login, "ok", actor, origin.clone())
        };
        let appended = self.audit.append_in(&mut tx, entry).await?;
        tx.commit().await?;
        self.throttle.remember(origin.network(), &person.name);
        self.audit.export(&appended).await;
        Ok(SignedIn { secret, person })
    }

    /// Who a cookie's value belongs to, if its session still lives.
    ///
    /// # Errors
    /// The store does not answer: nobody is let in.
    pub async fn session(&self, secret: &str) -> Result<Option<Session>, IdentityError> {
        let now = self.now_ms();
        let select = "SELECT id, person_id, authenticated_at, seen_at, link_by_id, root_id FROM sessions
            WHERE secret = $1 AND ended_at IS NULL AND created_at > $2 AND seen_at > $3";
        let found = on_either!(&self.db, Db, |pool| {
            let query = sqlx::query(select).bind(secret::hash(secret));
            let query = query.bind(now - ms(SESSION_MAX)).bind(now - ms(SESSION_IDLE));
            match query.fetch_optional(pool).await? {
                None => None,
                Some(row) => Some((
                    Session {
                        id: row.try_get(0)?,
                        person_id: row.try_get(1)?,
                        authenticated_at: row.try_get(2)?,
                        link_by_id: row.try_get(4)?,
                        root_id: row.try_get(5)?,
                    },
                    row.try_get::<i64, _>(3)?,
                )),
            }
        });
        let Some((session, seen_at)) = found else {
            return Ok(None);
        };
        if now - seen_at > ms(SESSION_SEEN_EVERY) {
            let update = "UPDATE sessions SET seen_at = $1 WHERE id = $2";
            on_either!(&self.db, Db, |pool| {
                sqlx::query(update)
                    .bind(now)
                    .bind(&session.id)
                    .execute(pool)
                    .await?
                    .rows_affected()
            });
        }
        Ok(Some(session))
    }

    /// As [`person_of`](Self::person_of); somebody whom another server made a moment ago is known, too.
    ///
    /// # Errors
    /// The store does not answer: nobody is let in.
    pub async fn current_person_of(&self, session: &Session) -> Result<Option<Person>, IdentityError> {
        let person = self.person(&session.person_id).await?;
        Ok(person.filter(|person| person.disabled_at.is_none()))
    }

    /// The person of a session, with what they may do now; none when they were disabled.
    pub fn person_of(&self, session: &Session) -> Option<Person> {
        let directory = self.directory.borrow();
        let person = directory.people.get(&session.person_id)?;
        person.disabled_at.is_none().then(|| person.clone())
    }

    /// Proved who they are within the last 15 minutes.
    pub fn is_fresh(&self, session: &Session) -> bool {
        self.now_ms() - session.authenticated_at < ms(FRESH)
    }

    /// The person of this session proves again who they are.
    ///
    /// # Errors
    /// As [`sign_in`](Self::sign_in).
    pub async fn prove_again(&self, who: &Who, password: &SecretString) -> Result<(), IdentityError> {
        let (Subject::Person { name, .. }, Some(session)) = (&who.subject, &who.session) else {
            return Err(IdentityError::WrongPassword);
        };
        password::check_size(password)?;
        let keys = vec![Key::Session(session.id.clone())];
        let attempt = self.begin_attempt(keys, Share::Known).await?;
        let stored = match self.password_of(name).await {
            Ok(known) => known.map(|(_, stored)| stored),
            Err(error) => {
                attempt.cancel();
                return Err(error);
            }
        };
        if !self.evaluate(attempt, password, stored).await? {
            let entry = Entry::new(
                Action::Login,
                "wrong_password",
                who.actor(None),
                who.origin.clone(),
            );
            self.audit.append(entry).await?;
            return Err(IdentityError::WrongPassword);
        }
        let update = "UPDATE sessions SET authenticated_at = $1 WHERE id = $2";
        let now = self.now_ms();
        on_either!(&self.db, Db, |pool| {
            sqlx::query(update)
                .bind(now)
                .bind(&session.id)
                .execute(pool)
                .await?
                .rows_affected()
        });
        Ok(())
    }

    /// Living sessions, the one that was used last first.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn sessions(&self) -> Result<Vec<SessionView>, IdentityError> {
        let now = self.now_ms();
        let select = "SELECT id, person_id, way, created_at, seen_at, ip, user_agent FROM sessions
            WHERE ended_at IS NULL AND created_at > $1 AND seen_at > $2 ORDER BY seen_at DESC, id";
        let mut views = Vec::new();
        on_either!(&self.db, Db, |pool| {
            let query = sqlx::query(select)
                .bind(now - ms(SESSION_MAX))
                .bind(now - ms(SESSION_IDLE));
            for row in query.fetch_all(pool).await? {
                views.push(SessionView {
                    id: row.try_get(0)?,
                    person_id: row.try_get(1)?,
                    way: row.try_get(2)?,
                    created_at: row.try_get(3)?,
                    seen_at: row.try_get(4)?,
                    ip: row.try_get(5)?,
                    user_agent: row.try_get(6)?,
                });
            }
        });
        Ok(views)
    }

    /// Ends a session of one's own, or anybody's where `may_any`. Of others' sessions nothing is told, not even that they
    /// are there.
    ///
    /// # Errors
    /// There is no such living session that one may end.
    pub async fn end_session_if(&self, who: &Who, session: &str, may_any: bool) -> Result<(), IdentityError> {
        let known = self
            .sessions()
            .await?
            .into_iter()
            .find(|known| known.id == session);
        if may_any || known.is_some_and(|known| known.person_id == who.id()) {
            return self.end_session(who, session).await;
        }
        Err(IdentityError::NotFound {
            what: "session",
            name: session.to_owned(),
        })
    }

    /// Ends a session: one's own is leaving, another's is revoking.
    ///
    /// # Errors
    /// There is no such living session.
    pub async fn end_session(&self, who: &Who, session: &str) -> Result<(), IdentityError> {
        let own = who.session.as_ref().is_some_and(|own| own.id == session);
        let action = if own {
            Action::Logout
        } else {
            Action::SessionRevoke
        };
        let mut tx = self.db.begin().await?;
        let update = "UPDATE sessions SET ended_at = $1 WHERE id = $2 AND ended_at IS NULL";
        let now = self.now_ms();
        let ended = on_either!(&mut tx, Tx, |tx| {
            sqlx::query(update)
                .bind(now)
                .bind(session)
                .execute(&mut **tx)
                .await?
                .rows_affected()
        });
        if ended == 0 {
            return Err(IdentityError::NotFound {
                what: "session",
                name: session.to_owned(),
            });
        }
        // So that other servers cut its streams, too.
        directory::touch(&mut tx).await?;
        self.record(tx, who, action, Some(json!({"session": session})), None)
            .await
    }
}
