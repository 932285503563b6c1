//! API tokens: created, shown once, listed, revoked, looked up on every request.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use domain::access::Grant;
use domain::audit::Action;
use domain::duration::millis;
use serde_json::json;
use sqlx::Row as _;

use super::access_change::{leases_inherited, new_privileged_grants, roles_granted};
use super::created_credentials::{Creator, EndedAccess, end_created, parent_id};
use super::error::IdentityError;
use super::limits::NAME_BYTES_MAX;
use super::names::{check_name, is_storable};
use super::principal::Principal;
use super::row_locks::{lock_creator, lock_session};
use super::secret::{self, Secret};
use super::users::{Holder, insert_grant};
use super::{Identity, Token, principal_cache};
use runtime::db::{Tx, on_either};
use runtime::random;

const PREFIX: &str = "lht_";

#[derive(Debug)]
pub struct NewToken {
    pub name: String,
    pub grants: Vec<Grant>,
    /// Lifetime; `None`: until revoked.
    pub expires_in: Option<Duration>,
}

/// A token in a list, without its secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenView {
    pub id: String,
    pub name: String,
    pub grants: Vec<Grant>,
    pub created_at: i64,
    pub created_by: String,
    /// Id of the creating user or token; `None` if unknown.
    pub created_by_id: Option<String>,
    /// Name of the user at the root of its lineage; `None` if unknown.
    pub root: Option<String>,
    pub expires_at: Option<i64>,
    /// Immediate on the server that saw it, on others within [`TOKEN_USED_EVERY`](super::limits::TOKEN_USED_EVERY).
    pub used_at: Option<i64>,
    pub revoked_at: Option<i64>,
    /// Name of the token whose leases it inherits.
    pub successor_of: Option<String>,
}

impl Identity {
    /// # Errors
    /// The name is taken or invalid, or there is no grant.
    pub async fn create_token(&self, who: &Principal, new: NewToken) -> Result<Secret, IdentityError> {
        self.insert_token(who, new, None).await
    }

    /// Creates a token that inherits the leases of another one, given by id or name, even if expired or revoked. The
    /// leases are limited to the new token's scope. Every receiver is notified: it can end these leases without a forced
    /// unlock.
    ///
    /// # Errors
    /// As [`create_token`](Self::create_token); no token has this id or name.
    pub async fn create_successor(
        &self,
        who: &Principal,
        new: NewToken,
        predecessor: &str,
    ) -> Result<Secret, IdentityError> {
        self.insert_token(who, new, Some(predecessor)).await
    }

    async fn insert_token(
        &self,
        who: &Principal,
        new: NewToken,
        predecessor: Option<&str>,
    ) -> Result<Secret, IdentityError> {
        check_name(&new.name)?;
        if new.grants.is_empty() {
            return Err(IdentityError::invalid(
                "role",
                "is required: a token without a grant has no permission",
            ));
        }
        let (id, secret) = (random::prefixed_id("t_"), Secret::new(PREFIX)?);
        let now = self.now_ms();
        let expires_at = new.expires_in.map(|time| now.saturating_add(millis(time)));
        let root = self.lineage(who).root;
        let mut tx = self.db.begin().await?;
        lock_creator(&mut tx, who).await?;
        lock_session(&mut tx, who).await?;
        let predecessor = match predecessor {
            Some(token) => Some(find_id_and_name(&mut tx, token).await?),
            None => None,
        };
        let (successor_of, predecessor) = predecessor.unzip();
        let insert =
            "INSERT INTO api_tokens (id, name, secret_hash, created_at, created_by, expires_at, created_by_id,
                root_user_id, successor_of)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT (name) DO NOTHING";
        let inserted = on_either!(&mut tx, Tx, |tx| {
            let query = sqlx::query(insert)
                .bind(&id)
                .bind(&new.name)
                .bind(secret.hash())
                .bind(now);
            query
                .bind(who.name())
                .bind(expires_at)
                .bind(parent_id(who))
                .bind(root.as_deref())
                .bind(&successor_of)
                .execute(&mut **tx)
                .await?
                .rows_affected()
        });
        if inserted == 0 {
            return Err(IdentityError::Exists {
                what: "token",
                name: new.name,
            });
        }
        for (position, grant) in new.grants.iter().enumerate() {
            insert_grant(&mut tx, Holder::Token(&id), position, grant).await?;
        }
        principal_cache::touch(&mut tx).await?;
        let mut after = json!({"id": id, "name": new.name, "grants": new.grants, "expiresAt": expires_at});
        if let Some(predecessor) = successor_of {
            after["successorOf"] = json!(predecessor);
        }
        let gained = new_privileged_grants(std::iter::empty(), &new.grants);
        let change = match &predecessor {
            Some(predecessor) => Some(leases_inherited(who.name(), &new.name, predecessor, &gained)),
            None => roles_granted(who.name(), ("token", &new.name), &gained),
        };
        self.record_and_notify(tx, who, (Action::TokenCreate, None, Some(after)), change)
            .await?;
        Ok(secret)
    }

    /// Revokes a token, by id or name, with everything that came from it: tokens, its own successor included, links, the
    /// sessions that those opened, and what was created in these sessions. Effective here immediately, on other replicas
    /// within a second. Users that it created stay. Idempotent; returns what ended.
    ///
    /// # Errors
    /// There is no such token.
    pub async fn revoke_token(&self, who: &Principal, token: &str) -> Result<EndedAccess, IdentityError> {
        let missing = || IdentityError::NotFound {
            what: "token",
            name: token.to_owned(),
        };
        if !is_storable(token) {
            return Err(missing());
        }
        let mut tx = self.db.begin().await?;
        let ended = end_created(&mut tx, Creator::Token(token), self.now_ms()).await?;
        if ended.is_empty() {
            drop(tx);
            let known = self
                .tokens()
                .await?
                .into_iter()
                .any(|view| view.id == token || view.name == token);
            return known.then_some(ended).ok_or_else(missing);
        }
        principal_cache::touch(&mut tx).await?;
        let before = json!({"token": token, "revoked": ended.tokens});
        self.record(tx, who, Action::TokenRevoke, Some(before), None)
            .await?;
        Ok(ended)
    }

    /// All tokens, newest first, including revoked ones.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn tokens(&self) -> Result<Vec<TokenView>, IdentityError> {
        let mut grants = principal_cache::load_grants(&self.db).await?;
        let directory = self.directory();
        let used_at = directory.tokens.values().filter_map(|token| {
            let at = token.used_at.load(Ordering::Relaxed);
            (at > 0).then_some((&*token.id, at))
        });
        let used_at: HashMap<&str, i64> = used_at.collect();
        let select =
            "SELECT t.id, t.name, t.created_at, t.created_by, t.expires_at, t.last_used_at, t.revoked_at, p.name,
            coalesce(s.user_id, t.created_by_id), r.name FROM api_tokens t
            LEFT JOIN api_tokens p ON p.id = t.successor_of LEFT JOIN sessions s ON s.id = t.created_by_id
            LEFT JOIN users r ON r.id = t.root_user_id ORDER BY t.created_at DESC, t.id";
        let mut views = Vec::new();
        on_either!(&self.db, Db, |pool| {
            for row in sqlx::query(select).fetch_all(pool).await? {
                let id: String = row.try_get(0)?;
                views.push(TokenView {
                    grants: grants.remove(&id).unwrap_or_default(),
                    name: row.try_get(1)?,
                    created_at: row.try_get(2)?,
                    created_by: row.try_get(3)?,
                    expires_at: row.try_get(4)?,
                    used_at: row
                        .try_get::<Option<i64>, _>(5)?
                        .max(used_at.get(id.as_str()).copied()),
                    revoked_at: row.try_get(6)?,
                    successor_of: row.try_get(7)?,
                    created_by_id: row.try_get(8)?,
                    root: row.try_get(9)?,
                    id,
                });
            }
        });
        Ok(views)
    }

    /// The valid token of a secret. Looked up in memory, because every lease request needs it; a miss reloads the
    /// directory, because the token may just have been created by a command or another replica.
    ///
    /// # Errors
    /// The store does not answer; it is unknown whether the token exists.
    pub async fn token(&self, secret: &str) -> Result<Option<Arc<Token>>, IdentityError> {
        let hash = secret::hash(secret);
        let mut token = self.find_token(&hash);
        if token.is_none() && secret.starts_with(PREFIX) {
            Box::pin(self.refresh()).await?;
            token = self.find_token(&hash);
        }
        Ok(token.and_then(|token| self.use_token(token)))
    }

    /// The same as far as this server knows.
    pub fn known_token(&self, secret: &str) -> Option<Arc<Token>> {
        self.use_token(self.find_token(&secret::hash(secret))?)
    }

    fn find_token(&self, hash: &str) -> Option<Arc<Token>> {
        self.directory.borrow().tokens.get(hash).cloned()
    }

    fn use_token(&self, token: Arc<Token>) -> Option<Arc<Token>> {
        if self.has_expired(&token) {
            return None;
        }
        token.used_at.store(self.now_ms(), Ordering::Relaxed);
        Some(token)
    }

    pub(super) fn has_expired(&self, token: &Token) -> bool {
        token.expires_at.is_some_and(|at| at <= self.now_ms())
    }

    /// Stores which tokens were used since the last call, in one transaction; called periodically, never per
    /// request. Uses that could not be stored are kept for the next call.
    pub(super) async fn record_uses(&self) -> Result<(), sqlx::Error> {
        let directory = self.directory();
        let mut used: Vec<(&Token, i64)> = directory
            .tokens
            .values()
            .map(|token| (&**token, token.used_at.load(Ordering::Relaxed)))
            .filter(|(_, at)| *at > 0)
            .collect();
        // Replicas lock the rows in one order: no deadlock between two of them.
        used.sort_unstable_by(|(one, _), (other, _)| one.id.cmp(&other.id));
        if used.is_empty() {
            return Ok(());
        }
        let update =
            "UPDATE api_tokens SET last_used_at = $1 WHERE id = $2 AND coalesce(last_used_at, 0) < $1";
        let mut tx = self.db.begin().await?;
        for (token, at) in &used {
            on_either!(&mut tx, Tx, |tx| {
                let query = sqlx::query(update).bind(*at).bind(&*token.id);
                query.execute(&mut **tx).await?.rows_affected()
            });
        }
        tx.commit().await?;
        for (token, at) in used {
            // A use in the meantime is stored by the next call.
            let _ = token
                .used_at
                .compare_exchange(at, 0, Ordering::Relaxed, Ordering::Relaxed);
        }
        Ok(())
    }
}

/// Id and name of the token with this id or name, revoked or not.
async fn find_id_and_name(tx: &mut Tx, token: &str) -> Result<(String, String), IdentityError> {
    let select = "SELECT id, name FROM api_tokens WHERE id = $1 OR name = $1 ORDER BY id = $1 DESC LIMIT 1";
    let found: Option<(String, String)> = match is_storable(token) {
        false => None,
        true => on_either!(tx, Tx, |tx| {
            let query = sqlx::query_as(select).bind(token);
            query.fetch_optional(&mut **tx).await?
        }),
    };
    found.ok_or_else(|| {
        let requested: String = token.chars().take(NAME_BYTES_MAX).collect();
        let why = format!("must be the id or the name of a token; no token is named {requested:?}");
        IdentityError::invalid("successorOf", why)
    })
}
