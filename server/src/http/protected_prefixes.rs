//! `/v1/protected-prefixes`: the protection of names against forced unlocks, by prefix.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use domain::lease::ValidationError;
use domain::limits::QUERY_BYTES_MAX;
use domain::names::BackendName;
use domain::unlock::ProtectionLevel;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::json_body::{self, BodyError, FieldErrors};
use crate::http::current_user::ApiUser;
use crate::http::path_id::PathId;
use crate::http::problem::Problem;
use crate::unlock::{ProtectedPrefix, Unlocks};

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "Protected prefixes")]
pub(in crate::http) struct ProtectedPrefixesDto {
    protected_prefixes: Vec<ProtectedPrefixDto>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(title = "Protected prefix")]
pub(in crate::http) struct ProtectedPrefixDto {
    id: String,
    /// Null: on every backend.
    backend: Option<String>,
    /// On whole segments; empty: every name.
    prefix: String,
    /// `standard` or `protected`.
    protection: &'static str,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(title = "ProtectedPrefixSaved")]
pub(in crate::http) struct ProtectedPrefixSavedDto {
    /// `standard` rules that keep names below a protected prefix unprotected.
    exceptions: Vec<ProtectedPrefixDto>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(title = "ProtectedPrefixSet", example = json!({"prefix": "billing:", "protection": "protected"}))]
pub(in crate::http) struct ProtectedPrefixSetDto {
    /// Absent: on every backend.
    backend: Option<String>,
    /// On whole segments; empty: every name.
    prefix: String,
    /// `standard` or `protected`.
    protection: String,
}

impl From<ProtectedPrefix> for ProtectedPrefixDto {
    fn from(rule: ProtectedPrefix) -> Self {
        Self {
            id: rule.id,
            backend: rule.backend.as_str().map(str::to_owned),
            prefix: rule.prefix,
            protection: rule.protection.as_str(),
        }
    }
}

/// Why a prefix is not valid.
pub(super) fn bad_prefix(prefix: &str) -> Option<String> {
    if prefix.len() > QUERY_BYTES_MAX {
        return Some(format!("must have at most {QUERY_BYTES_MAX} bytes"));
    }
    prefix
        .chars()
        .any(char::is_control)
        .then(|| "must not contain control characters".to_owned())
}

pub(super) fn bad_protection() -> String {
    format!(
        "must be {} or {}",
        ProtectionLevel::Standard.as_str(),
        ProtectionLevel::Protected.as_str()
    )
}

/// Every rule, by prefix. The longest prefix that covers a name counts.
#[utoipa::path(get, path = "/v1/protected-prefixes", tag = "unlocks", responses((status = 200, body = ProtectedPrefixesDto)))]
pub(in crate::http) async fn list(
    State(unlocks): State<Arc<Unlocks>>,
    user: ApiUser,
) -> Result<Json<ProtectedPrefixesDto>, Problem> {
    let rules = unlocks
        .protected_prefixes()
        .await
        .map_err(|error| user.problem(error))?;
    let protected_prefixes = rules.into_iter().map(ProtectedPrefixDto::from).collect();
    Ok(Json(ProtectedPrefixesDto { protected_prefixes }))
}

/// Sets the protection of a prefix. Older `standard` rules below it stay and are named in the answer.
#[utoipa::path(
    put, path = "/v1/protected-prefixes", tag = "unlocks", request_body = ProtectedPrefixSetDto,
    responses(
        (status = 200, body = ProtectedPrefixSavedDto),
        (status = 400, body = Problem, content_type = "application/problem+json"),
        (status = 503, body = Problem, content_type = "application/problem+json", description = "`audit_unavailable`")
    )
)]
pub(in crate::http) async fn set(
    State(unlocks): State<Arc<Unlocks>>,
    user: ApiUser,
    body: Body,
) -> Result<Json<ProtectedPrefixSavedDto>, Problem> {
    let rule = read(&user.headers, body).await;
    let (backend, prefix, protection) = rule.map_err(|error| user.problem(error))?;
    let set = unlocks
        .set_protected_prefix(&user.who, backend.as_ref(), &prefix, protection)
        .await;
    let exceptions = set.map_err(|error| user.problem(error))?.into_iter();
    let exceptions = exceptions.map(ProtectedPrefixDto::from).collect();
    Ok(Json(ProtectedPrefixSavedDto { exceptions }))
}

async fn read(
    headers: &HeaderMap,
    body: Body,
) -> Result<(Option<BackendName>, String, ProtectionLevel), BodyError> {
    let body: ProtectedPrefixSetDto = json_body::read(headers, body).await?;
    let mut errors = FieldErrors::default();
    let backend = body.backend.map(|name| BackendName::parse(&name)).transpose();
    let backend = errors.check(backend.map_err(|_| ValidationError::new("backend", "is not a backend name")));
    let prefix = match bad_prefix(&body.prefix) {
        None => Ok(body.prefix),
        Some(why) => Err(ValidationError::new("prefix", why)),
    };
    let prefix = errors.check(prefix);
    let protection = ProtectionLevel::parse(&body.protection);
    let protection =
        errors.check(protection.ok_or_else(|| ValidationError::new("protection", bad_protection())));
    let (Some(backend), Some(prefix), Some(protection)) = (backend, prefix, protection) else {
        return Err(errors.into());
    };
    Ok((backend, prefix, protection))
}

/// Removes a rule. Idempotent.
#[utoipa::path(
    delete, path = "/v1/protected-prefixes/{id}", tag = "unlocks", params(("id" = String, Path)),
    responses((status = 204), (status = 503, body = Problem, content_type = "application/problem+json"))
)]
pub(in crate::http) async fn remove(
    State(unlocks): State<Arc<Unlocks>>,
    PathId(id): PathId,
    user: ApiUser,
) -> Result<StatusCode, Problem> {
    let removed = unlocks.remove_protected_prefix(&user.who, &id).await;
    removed
        .map(|()| StatusCode::NO_CONTENT)
        .map_err(|error| user.problem(error))
}
