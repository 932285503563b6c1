//! The audit log over HTTP: `GET /v1/audit` and its export, limited to entries that the caller may read. The pages are in
//! `pages/audit`.

pub(in crate::http) mod api;
pub(in crate::http) mod export;

use domain::audit::{AuditQuery, Readable};
use domain::query::QueryError;

use crate::http::problem::Problem;
use crate::identity::Principal;

pub(super) type Pairs = Vec<(String, String)>;

pub(super) fn pairs(query: Option<&str>) -> Pairs {
    url::form_urlencoded::parse(query.unwrap_or_default().as_bytes())
        .into_owned()
        .collect()
}

/// The requested filter, limited to what the principal may read.
pub(super) fn parse(pairs: &Pairs, who: &Principal) -> Result<AuditQuery, QueryError> {
    let fields = pairs.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    Ok(AuditQuery {
        readable: Readable::to(&who.grants),
        ..AuditQuery::from_pairs(fields)?
    })
}

pub(super) fn unreadable(error: &sqlx::Error) -> Problem {
    tracing::warn!("the audit log cannot be read: {error}");
    Problem::store_unavailable()
}
