//! The start of a session: sign-in by password, and the row of any new session.

use domain::audit::Action;
use secrecy::SecretString;
use serde_json::json;
use sqlx::AssertSqlSafe;

use super::error::IdentityError;
use super::hashing_queue::Share;
use super::lineage::Lineage;
use super::secret::Secret;
use super::sessions::SignedIn;
use super::{Identity, User, password};
use crate::audit::{ANONYMOUS, Actor, Entry, Origin};
use runtime::db::{Tx, on_either};
use runtime::random;

const PREFIX: &str = "lhs_";

/// Only for a user who is enabled now, and, after a password, whose stored password is still the verified one.
const INSERT: &str =
    "INSERT INTO sessions (id, secret_hash, user_id, method, created_at, last_seen_at, authenticated_at,
    ip, user_agent, link_created_by_id, root_user_id)
    SELECT $1, $2, $3, $4, $5, $5, $6, $7, $8, $9, $10 FROM users
    WHERE id = $3 AND disabled_at IS NULL AND ($11 IS NULL OR password_hash = $11)";
/// Concurrent changes of the user wait for the commit, and then end the session. SQLite has a single writer.
const POSTGRES_LOCK: &str = " FOR SHARE";

/// How a user proved to be the user of a new session.
#[derive(Clone, Copy)]
pub(super) enum Proof<'a> {
    /// The stored hash that was verified.
    Password(&'a str),
    /// Creator of the link, if recorded.
    Link(Option<&'a Lineage>),
    /// Time of the authentication, if known; without it the session is never fresh.
    Provider(Option<i64>),
}

/// A session whose transaction is still open.
pub(super) struct InsertedSession {
    id: String,
    secret: Secret,
    way: &'static str,
}

impl<'a> Proof<'a> {
    const fn method(self) -> &'static str {
        match self {
            Self::Password(_) => "password",
            Self::Link(_) => "link",
            Self::Provider(_) => "oidc",
        }
    }

    const fn authenticated_at(self, now: i64) -> Option<i64> {
        match self {
            Self::Password(_) | Self::Link(_) => Some(now),
            Self::Provider(at) => at,
        }
    }

    const fn password_hash(self) -> Option<&'a str> {
        match self {
            Self::Password(hash) => Some(hash),
            Self::Link(_) | Self::Provider(_) => None,
        }
    }

    const fn link_by(self) -> Option<&'a Lineage> {
        match self {
            Self::Link(by) => by,
            Self::Password(_) | Self::Provider(_) => None,
        }
    }
}

impl Identity {
    /// Same answer and duration for an unknown name, a wrong password and a disabled user. A password that was changed
    /// while it was evaluated is a wrong one.
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
        let (user, stored) = match self.user_with_password(name).await {
            Ok(found) => found.unzip(),
            Err(error) => {
                attempt.cancel();
                return Err(error);
            }
        };
        let is_match = self.evaluate(attempt, password, stored.clone()).await?;
        if let Some((user, stored)) = user.zip(stored).filter(|_| is_match) {
            let proof = Proof::Password(&stored);
            if let Some(signed_in) = self.begin_session(user, proof, origin).await? {
                return Ok(signed_in);
            }
        }
        let actor = Actor {
            id: ANONYMOUS.to_owned(),
            name: name.replace('\0', "\\u{0}").chars().take(64).collect(),
            role: None,
        };
        let entry = Entry::new(Action::Login, "wrong_password", actor, origin.clone());
        self.audit.append_anonymous(entry, "").await;
        Err(IdentityError::WrongPassword)
    }

    /// `None`: since the proof, the user was disabled or the password changed.
    pub(super) async fn begin_session(
        &self,
        user: User,
        proof: Proof<'_>,
        origin: &Origin,
    ) -> Result<Option<SignedIn>, IdentityError> {
        let mut tx = self.db.begin().await?;
        match self.insert_session(&mut tx, &user, proof, origin).await? {
            Some(session) => Ok(Some(self.commit_session(tx, user, session, origin).await?)),
            None => Ok(None),
        }
    }

    /// As [`begin_session`](Self::begin_session), in the caller's transaction.
    pub(super) async fn insert_session(
        &self,
        tx: &mut Tx,
        user: &User,
        proof: Proof<'_>,
        origin: &Origin,
    ) -> Result<Option<InsertedSession>, IdentityError> {
        let (id, secret) = (random::prefixed_id("s_"), Secret::new(PREFIX)?);
        let (now, way, link_by) = (self.now_ms(), proof.method(), proof.link_by());
        let lock = match &*tx {
            Tx::Sqlite(_) => "",
            Tx::Postgres(_) => POSTGRES_LOCK,
        };
        let insert = AssertSqlSafe(format!("{INSERT}{lock}"));
        let inserted = on_either!(tx, Tx, |tx| {
            let query = sqlx::query(insert)
                .bind(&id)
                .bind(secret.hash())
                .bind(&user.id)
                .bind(way);
            let query = query
                .bind(now)
                .bind(proof.authenticated_at(now).unwrap_or(0))
                .bind(origin.ip.map(|ip| ip.to_string()))
                .bind(origin.user_agent.as_deref())
                .bind(link_by.map(|by| by.id.as_str()))
                .bind(link_by.and_then(|by| by.root.as_deref()))
                .bind(proof.password_hash());
            query.execute(&mut **tx).await?.rows_affected()
        });
        Ok((inserted > 0).then_some(InsertedSession { id, secret, way }))
    }

    /// Commits an inserted session together with its audit entry.
    pub(super) async fn commit_session(
        &self,
        mut tx: Tx,
        user: User,
        session: InsertedSession,
        origin: &Origin,
    ) -> Result<SignedIn, IdentityError> {
        let actor = Actor {
            id: user.id.clone(),
            name: user.name.clone(),
            role: None,
        };
        let entry = Entry {
            after: Some(json!({"session": session.id, "way": session.way})),
            ..Entry::new(Action::Login, "ok", actor, origin.clone())
        };
        let appended = self.audit.append_in(&mut tx, entry).await?;
        tx.commit().await?;
        self.throttle.remember(origin.network(), &user.name);
        self.audit.export(&appended).await;
        let secret = session.secret;
        Ok(SignedIn { secret, user })
    }
}
