//! Browser sessions: opened by a password, a link or a provider; ended by timeout, sign-out or revocation.

use std::net::IpAddr;

use domain::audit::Action;
use domain::duration::millis;
use secrecy::SecretString;
use serde_json::json;
use sqlx::Row as _;

use super::error::IdentityError;
use super::hashing_queue::Share;
use super::limits::{
    FRESH, KNOWN_PAIRS_MAX, KNOWN_PAIRS_SINCE, SESSION_IDLE, SESSION_MAX, SESSION_SEEN_EVERY, SKEW_MAX,
};
use super::names::is_storable;
use super::principal::{Principal, Subject};
use super::secret::{self, Secret};
use super::sign_in_throttle::Key;
use super::{Identity, User, password, principal_cache};
use crate::audit::Entry;
use runtime::db::on_either;

/// An open session as read by one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    pub id: String,
    pub user_id: String,
    /// Milliseconds since 1970.
    pub authenticated_at: i64,
    /// Creator of the link that opened it, or the session in which it was created; `None` without a link.
    pub link_created_by_id: Option<String>,
    /// The user behind that link; `None` if unknown.
    pub root_user_id: Option<String>,
}

/// Result of a sign-in: the cookie value and the user.
#[derive(Debug, Clone)]
pub struct SignedIn {
    pub secret: Secret,
    pub user: User,
}

/// A session in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionView {
    pub id: String,
    pub user_id: String,
    pub way: String,
    pub created_at: i64,
    pub seen_at: i64,
    pub ip: Option<String>,
    pub user_agent: Option<String>,
}

impl Identity {
    /// Loads known pairs of user and source, so that a restart does not treat known users as unknown.
    pub(super) async fn remember_sources(&self) -> Result<(), sqlx::Error> {
        let select = "SELECT p.name, s.ip FROM sessions s JOIN users p ON p.id = s.user_id
            WHERE s.ip IS NOT NULL AND s.created_at > $1 ORDER BY s.created_at DESC LIMIT $2";
        let since = self.now_ms() - millis(KNOWN_PAIRS_SINCE);
        let most = i64::try_from(KNOWN_PAIRS_MAX).unwrap_or(i64::MAX);
        let rows: Vec<(String, String)> = on_either!(&self.db, Db, |pool| {
            sqlx::query_as(select)
                .bind(since)
                .bind(most)
                .fetch_all(pool)
                .await?
        });
        // Newest last: the oldest is dropped first.
        for (name, ip) in rows.into_iter().rev() {
            if let Ok(ip) = ip.parse::<IpAddr>() {
                self.throttle.remember(ip.into(), &name);
            }
        }
        Ok(())
    }

    /// The open session of a cookie value. `is_use`: the request keeps the session from ending as an unused one.
    ///
    /// # Errors
    /// The store does not answer; access is denied.
    pub async fn session(&self, secret: &str, is_use: bool) -> Result<Option<Session>, IdentityError> {
        let now = self.now_ms();
        let select = "SELECT id, user_id, authenticated_at, last_seen_at, link_created_by_id, root_user_id FROM sessions
            WHERE secret_hash = $1 AND ended_at IS NULL AND created_at > $2 AND last_seen_at > $3";
        let found = on_either!(&self.db, Db, |pool| {
            let query = sqlx::query(select).bind(secret::hash(secret));
            let query = query
                .bind(now - millis(SESSION_MAX))
                .bind(now - millis(SESSION_IDLE));
            match query.fetch_optional(pool).await? {
                None => None,
                Some(row) => Some((
                    Session {
                        id: row.try_get(0)?,
                        user_id: row.try_get(1)?,
                        authenticated_at: row.try_get(2)?,
                        link_created_by_id: row.try_get(4)?,
                        root_user_id: row.try_get(5)?,
                    },
                    row.try_get::<i64, _>(3)?,
                )),
            }
        });
        let Some((session, seen_at)) = found else {
            return Ok(None);
        };
        if is_use && now - seen_at > millis(SESSION_SEEN_EVERY) {
            let update = "UPDATE sessions SET last_seen_at = $1 WHERE id = $2";
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

    /// As [`session`](Self::session), with its user; `None` when the user is disabled.
    ///
    /// # Errors
    /// The store does not answer; access is denied.
    pub async fn session_with_user(
        &self,
        secret: &str,
        is_use: bool,
    ) -> Result<Option<(Session, User)>, IdentityError> {
        let Some(session) = self.session(secret, is_use).await? else {
            return Ok(None);
        };
        let user = self.current_user_of(&session).await?;
        Ok(user.map(|user| (session, user)))
    }

    /// As [`user_of`](Self::user_of), but also finds a user whom another replica has just created.
    ///
    /// # Errors
    /// The store does not answer; access is denied.
    async fn current_user_of(&self, session: &Session) -> Result<Option<User>, IdentityError> {
        let user = self.user(&session.user_id).await?;
        Ok(user.filter(|user| user.disabled_at.is_none()))
    }

    /// The user of a session with current grants; `None` when disabled.
    pub fn user_of(&self, session: &Session) -> Option<User> {
        let directory = self.directory.borrow();
        let user = directory.users.get(&session.user_id)?;
        user.disabled_at.is_none().then(|| user.clone())
    }

    /// Whether the user authenticated within the last 15 minutes. Not if that is in the future, because our clock was set back.
    pub fn is_fresh(&self, session: &Session) -> bool {
        let elapsed_ms = self.now_ms() - session.authenticated_at;
        (-millis(SKEW_MAX)..millis(FRESH)).contains(&elapsed_ms)
    }

    /// Re-authenticates the user of this session.
    ///
    /// # Errors
    /// As [`sign_in`](Self::sign_in).
    pub async fn prove_again(&self, who: &Principal, password: &SecretString) -> Result<(), IdentityError> {
        self.verify_own_password(who, password).await.map(drop)
    }

    /// As [`prove_again`](Self::prove_again); returns the stored hash that was verified.
    pub(super) async fn verify_own_password(
        &self,
        who: &Principal,
        password: &SecretString,
    ) -> Result<String, IdentityError> {
        let (Subject::User { name, .. }, Some(session)) = (&who.subject, &who.session) else {
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
        let is_match = self.evaluate(attempt, password, stored.clone()).await?;
        let Some(verified) = stored.filter(|_| is_match) else {
            let entry = Entry::new(
                Action::Login,
                "wrong_password",
                who.actor(None),
                who.origin.clone(),
            );
            self.audit.append(entry).await?;
            return Err(IdentityError::WrongPassword);
        };
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
        Ok(verified)
    }

    /// Open sessions, most recently used first.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn sessions(&self) -> Result<Vec<SessionView>, IdentityError> {
        let now = self.now_ms();
        let select = "SELECT id, user_id, method, created_at, last_seen_at, ip, user_agent FROM sessions
            WHERE ended_at IS NULL AND created_at > $1 AND last_seen_at > $2 ORDER BY last_seen_at DESC, id";
        let mut views = Vec::new();
        on_either!(&self.db, Db, |pool| {
            let query = sqlx::query(select)
                .bind(now - millis(SESSION_MAX))
                .bind(now - millis(SESSION_IDLE));
            for row in query.fetch_all(pool).await? {
                views.push(SessionView {
                    id: row.try_get(0)?,
                    user_id: row.try_get(1)?,
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

    /// Ends an own session, or any session if `may_any`. The existence of other users' sessions is not revealed.
    ///
    /// # Errors
    /// There is no such open session that the caller may end.
    pub async fn end_session_if(
        &self,
        who: &Principal,
        session: &str,
        may_any: bool,
    ) -> Result<(), IdentityError> {
        let known = self
            .sessions()
            .await?
            .into_iter()
            .find(|known| known.id == session);
        if may_any || known.is_some_and(|known| known.user_id == who.id()) {
            return self.end_session(who, session).await;
        }
        Err(IdentityError::NotFound {
            what: "session",
            name: session.to_owned(),
        })
    }

    /// Ends a session: sign-out for an own one, revocation for another's.
    ///
    /// # Errors
    /// There is no such open session.
    pub async fn end_session(&self, who: &Principal, session: &str) -> Result<(), IdentityError> {
        let missing = || IdentityError::NotFound {
            what: "session",
            name: session.to_owned(),
        };
        if !is_storable(session) {
            return Err(missing());
        }
        let is_own = who.session.as_ref().is_some_and(|current| current.id == session);
        let action = if is_own {
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
            return Err(missing());
        }
        // So that other replicas close its streams.
        principal_cache::touch(&mut tx).await?;
        self.record(tx, who, action, Some(json!({"session": session})), None)
            .await
    }
}
