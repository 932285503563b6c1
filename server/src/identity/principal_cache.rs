//! In-memory directory of users, tokens and grants: a few thousand at most, read on every request.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use domain::access::{Grant, Grants, Permission, Role};
use domain::names::BackendName;
use sqlx::Row as _;

use super::limits::PREDECESSORS_MAX;
use runtime::db::{Db, Tx, on_either};

#[derive(Debug, Clone, Default)]
pub struct Directory {
    pub version: i64,
    pub users: HashMap<String, User>,
    /// By hash of the secret.
    pub(super) tokens: HashMap<String, Arc<Token>>,
    pub read_only: bool,
}

#[derive(Debug, Clone)]
pub struct User {
    pub id: String,
    pub name: String,
    pub created_at: i64,
    pub disabled_at: Option<i64>,
    /// Never for users of an identity provider.
    pub has_password: bool,
    /// The identity provider that manages the user; `None` for local users.
    pub issuer: Option<String>,
    pub grants: Arc<Grants>,
}

/// A token that is not revoked.
#[derive(Debug)]
pub struct Token {
    pub id: Arc<str>,
    pub name: Arc<str>,
    pub expires_at: Option<i64>,
    pub grants: Arc<Grants>,
    /// Ids of its predecessors, the latest first; it owns their leases.
    pub predecessors: Arc<[Arc<str>]>,
    /// Id of the user at the root of its lineage; `None` if unknown.
    pub root_user_id: Option<String>,
    /// Last use not yet stored, in milliseconds since 1970; 0 for none.
    pub(super) used_at: AtomicI64,
}

impl Directory {
    pub fn user_named(&self, name: &str) -> Option<&User> {
        self.users.values().find(|user| user.name == name)
    }

    /// Takes over unstored uses of the previous directory.
    pub(super) fn take_over_uses(&self, before: &Self) {
        for (secret, token) in &before.tokens {
            if let Some(same) = self.tokens.get(secret) {
                let used_at = token.used_at.load(Ordering::Relaxed);
                same.used_at.fetch_max(used_at, Ordering::Relaxed);
            }
        }
    }

    /// Users who can restore permissions.
    pub fn admins(&self) -> impl Iterator<Item = &User> {
        self.users
            .values()
            .filter(|user| user.disabled_at.is_none() && user.grants.may_everywhere(Permission::Administer))
    }
}

pub(super) async fn version(db: &Db) -> Result<i64, sqlx::Error> {
    let text: String = on_either!(db, Db, |pool| {
        sqlx::query_scalar("SELECT value FROM settings WHERE key = 'principals_revision'")
            .fetch_one(pool)
            .await?
    });
    Ok(text.parse().unwrap_or(-1))
}

/// Raises the directory version in the transaction of a change.
pub(super) async fn touch(tx: &mut Tx) -> Result<(), sqlx::Error> {
    let raise = "UPDATE settings SET value = CAST(CAST(value AS BIGINT) + 1 AS TEXT) WHERE key = 'principals_revision'";
    on_either!(tx, Tx, |tx| sqlx::query(raise)
        .execute(&mut **tx)
        .await?
        .rows_affected());
    Ok(())
}

/// Id, name, time of creation, of disabling, whether it has a password, issuer.
type UserRow = (String, String, i64, Option<i64>, bool, Option<String>);
/// Id, name, hash of the secret, expiry, id of the root user.
type TokenRow = (String, String, String, Option<i64>, Option<String>);

pub(super) async fn load(db: &Db) -> Result<Directory, sqlx::Error> {
    // The version first: changes during the read cause another read.
    let version = version(db).await?;
    let users =
        "SELECT id, name, created_at, disabled_at, password_hash IS NOT NULL AND issuer IS NULL, issuer
        FROM users";
    let links = "SELECT id, successor_of FROM api_tokens WHERE successor_of IS NOT NULL";
    let tokens =
        "SELECT id, name, secret_hash, expires_at, root_user_id FROM api_tokens WHERE revoked_at IS NULL";
    let read_only = "SELECT value FROM settings WHERE key = 'read_only'";
    let (users, tokens, links, read_only) = on_either!(db, Db, |pool| {
        let users: Vec<UserRow> = sqlx::query_as(users).fetch_all(pool).await?;
        let tokens: Vec<TokenRow> = sqlx::query_as(tokens).fetch_all(pool).await?;
        let links: Vec<(String, String)> = sqlx::query_as(links).fetch_all(pool).await?;
        let read_only: String = sqlx::query_scalar(read_only).fetch_one(pool).await?;
        (users, tokens, links, read_only)
    });
    let links: HashMap<String, String> = links.into_iter().collect();
    // The grants last: a token or user that was created during the read has its grants.
    let mut grants = load_grants(db).await?;
    let mut grants_of = |id: &str| Arc::new(Grants::new(grants.remove(id).unwrap_or_default()));
    let users = users.into_iter().map(|row| {
        let (id, name, created_at, disabled_at, has_password, issuer) = row;
        let user = User {
            grants: grants_of(&id),
            id: id.clone(),
            name,
            created_at,
            disabled_at,
            has_password,
            issuer,
        };
        (id, user)
    });
    let users = users.collect();
    let tokens = tokens.into_iter().map(|row| {
        let (id, name, secret_hash, expires_at, root_user_id) = row;
        let token = Token {
            grants: grants_of(&id),
            predecessors: predecessors(&links, &id),
            id: id.into(),
            name: name.into(),
            expires_at,
            root_user_id,
            used_at: AtomicI64::new(0),
        };
        (secret_hash, Arc::new(token))
    });
    Ok(Directory {
        version,
        users,
        tokens: tokens.collect(),
        read_only: read_only == "yes",
    })
}

/// Predecessors of a token, the latest first, including revoked and expired ones.
fn predecessors(links: &HashMap<String, String>, id: &str) -> Arc<[Arc<str>]> {
    let next = |id: &&String| links.get(*id);
    let chain = std::iter::successors(links.get(id), next);
    chain
        .take(PREDECESSORS_MAX)
        .map(|id| id.as_str().into())
        .collect()
}

/// By id of the user or token. Grants unknown to this version are ignored.
pub(super) async fn load_grants(db: &Db) -> Result<HashMap<String, Vec<Grant>>, sqlx::Error> {
    let mut grants: HashMap<String, Vec<Grant>> = HashMap::new();
    let select = "SELECT coalesce(user_id, token_id), role, backend, prefix FROM role_grants ORDER BY id";
    on_either!(db, Db, |pool| {
        for row in sqlx::query(select).fetch_all(pool).await? {
            let holder: String = row.try_get(0)?;
            let grant = read_grant(row.try_get(1)?, row.try_get(2)?, row.try_get(3)?);
            match grant {
                Some(grant) => grants.entry(holder).or_default().push(grant),
                None => tracing::warn!("this version cannot read a grant of {holder} and ignores it"),
            }
        }
    });
    Ok(grants)
}

pub(super) fn read_grant(role: String, backend: Option<String>, prefix: Option<String>) -> Option<Grant> {
    Some(Grant {
        role: Role::parse(&role)?,
        backend: backend.map(|name| BackendName::parse(&name)).transpose().ok()?,
        prefix,
    })
}
