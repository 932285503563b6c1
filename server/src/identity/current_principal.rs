//! Current permissions of a principal, read in a transaction: for decisions that must not use the in-memory
//! directory, which may be one second behind.

use domain::access::Grants;
use sqlx::Row as _;

use super::principal_cache::read_grant;
use runtime::db::{Tx, on_either};

/// The grants of a user or token; `None` when unknown, disabled, revoked or expired.
///
/// # Errors
/// The store does not answer.
pub async fn grants(tx: &mut Tx, id: &str, now: i64) -> Result<Option<Grants>, sqlx::Error> {
    let active = "SELECT count(*) FROM (SELECT id FROM users WHERE id = $1 AND disabled_at IS NULL
        UNION ALL SELECT id FROM api_tokens WHERE id = $1 AND revoked_at IS NULL
            AND (expires_at IS NULL OR expires_at > $2)) AS active";
    let select =
        "SELECT role, backend, prefix FROM role_grants WHERE user_id = $1 OR token_id = $1 ORDER BY id";
    let mut grants = Vec::new();
    on_either!(tx, Tx, |tx| {
        let query = sqlx::query(active).bind(id).bind(now);
        let count: i64 = query.fetch_one(&mut **tx).await?.try_get(0)?;
        if count == 0 {
            return Ok(None);
        }
        for row in sqlx::query(select).bind(id).fetch_all(&mut **tx).await? {
            grants.extend(read_grant(row.try_get(0)?, row.try_get(1)?, row.try_get(2)?));
        }
    });
    Ok(Some(Grants::new(grants)))
}

/// # Errors
/// The store does not answer.
pub async fn is_read_only(tx: &mut Tx) -> Result<bool, sqlx::Error> {
    let select = "SELECT value FROM settings WHERE key = 'read_only'";
    let value: String = on_either!(tx, Tx, |tx| {
        sqlx::query_scalar(select).fetch_one(&mut **tx).await?
    });
    Ok(value == "yes")
}

/// Whether a session is still open: neither signed out nor revoked.
///
/// # Errors
/// The store does not answer.
pub async fn is_session_open(tx: &mut Tx, session: &str) -> Result<bool, sqlx::Error> {
    let select = "SELECT count(*) FROM sessions WHERE id = $1 AND ended_at IS NULL";
    let count: i64 = on_either!(tx, Tx, |tx| {
        let query = sqlx::query(select).bind(session);
        query.fetch_one(&mut **tx).await?.try_get(0)?
    });
    Ok(count > 0)
}
