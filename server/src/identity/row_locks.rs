//! Rows of users and tokens that are locked for a change, because the directory in memory may be a second behind the store.

use std::sync::Arc;

use domain::access::Grants;

use super::User;
use super::error::IdentityError;
use super::principal::{Principal, SYSTEM_ID, Subject};
use super::principal_cache::read_grant;
use runtime::db::{Tx, on_either};

/// The user as stored. Other changes of the same user wait until this transaction ends: two that both replace the grants would
/// otherwise leave the grants of both.
///
/// # Errors
/// The store does not answer.
pub(super) async fn lock_user(tx: &mut Tx, user: &User) -> Result<User, sqlx::Error> {
    // Changes nothing: it locks the row on either database.
    let lock = "UPDATE users SET disabled_at = disabled_at WHERE id = $1 RETURNING disabled_at";
    let select = "SELECT role, backend, prefix FROM role_grants WHERE user_id = $1 ORDER BY id";
    let disabled_at: Option<i64> = on_either!(tx, Tx, |tx| {
        let query = sqlx::query_scalar(lock).bind(&user.id);
        query.fetch_one(&mut **tx).await?
    });
    let rows: Vec<(String, Option<String>, Option<String>)> = on_either!(tx, Tx, |tx| {
        let query = sqlx::query_as(select).bind(&user.id);
        query.fetch_all(&mut **tx).await?
    });
    let grants = rows
        .into_iter()
        .filter_map(|(role, backend, prefix)| read_grant(role, backend, prefix));
    Ok(User {
        disabled_at,
        grants: Arc::new(Grants::new(grants.collect())),
        ..user.clone()
    })
}

/// Call before a user or a token creates something that disabling or revoking them ends or lists. Those changes wait until this
/// transaction ends, and then find it.
///
/// # Errors
/// `AccessEnded`: the user is disabled or the token is revoked. The store does not answer.
pub(super) async fn lock_creator(tx: &mut Tx, who: &Principal) -> Result<(), IdentityError> {
    let (lock, id) = match &who.subject {
        Subject::Token { id, .. } => (
            "UPDATE api_tokens SET revoked_at = revoked_at WHERE id = $1 AND revoked_at IS NULL",
            id,
        ),
        Subject::User { id, .. } if **id != *SYSTEM_ID => (
            "UPDATE users SET disabled_at = disabled_at WHERE id = $1 AND disabled_at IS NULL",
            id,
        ),
        Subject::User { .. } | Subject::Anonymous => return Ok(()),
    };
    let locked = on_either!(tx, Tx, |tx| {
        let query = sqlx::query(lock).bind(&**id);
        query.execute(&mut **tx).await?.rows_affected()
    });
    match locked {
        0 => Err(IdentityError::AccessEnded),
        _ => Ok(()),
    }
}

/// The same for the session of a principal. Call after locking the principal and links.
///
/// # Errors
/// `AccessEnded`: the session was ended. The store does not answer.
pub(super) async fn lock_session(tx: &mut Tx, who: &Principal) -> Result<(), IdentityError> {
    let Some(session) = &who.session else {
        return Ok(());
    };
    let lock = "UPDATE sessions SET ended_at = ended_at WHERE id = $1 AND ended_at IS NULL";
    let locked = on_either!(tx, Tx, |tx| {
        let query = sqlx::query(lock).bind(&session.id);
        query.execute(&mut **tx).await?.rows_affected()
    });
    match locked {
        0 => Err(IdentityError::AccessEnded),
        _ => Ok(()),
    }
}

/// As [`lock_session`], with the open sessions of a user, all in the order of their ids, as a change that ends some of the same
/// sessions: no deadlock. SQLite has one writer.
///
/// # Errors
/// As [`lock_session`].
pub(super) async fn lock_sessions(tx: &mut Tx, who: &Principal, user: &str) -> Result<(), IdentityError> {
    if let Tx::Postgres(tx) = tx {
        let lock = "SELECT id FROM sessions WHERE (user_id = $1 OR id = $2) AND ended_at IS NULL
            ORDER BY id COLLATE \"C\" FOR NO KEY UPDATE";
        let own = who.session.as_ref().map_or("", |session| session.id.as_str());
        let query = sqlx::query(lock).bind(user).bind(own);
        query.execute(&mut **tx).await?;
    }
    lock_session(tx, who).await
}
