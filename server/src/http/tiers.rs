//! `/v1/tiers`: how careful forced unlocks must be, by prefix. Handlers parse, ask the unlocks, answer.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use domain::lease::Invalid;
use domain::limits::QUERY_BYTES_MAX;
use domain::names::BackendName;
use domain::unlock::Tier;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::lease::body::{BodyError, Fields};
use super::people::{Asker, Id};
use super::problem::Problem;
use crate::unlock::{TierRule, Unlocks};

pub(super) fn router<S: Clone + Send + Sync + 'static>(unlocks: Arc<Unlocks>) -> OpenApiRouter<S> {
    OpenApiRouter::new()
        .routes(routes!(list, set))
        .routes(routes!(remove))
        .with_state(unlocks)
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(title = "Tiers")]
struct TiersWire {
    tiers: Vec<TierWire>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(title = "Tier")]
struct TierWire {
    id: String,
    /// Null: on every backend.
    backend: Option<String>,
    /// On whole segments; empty: every name.
    prefix: String,
    /// `standard` or `protected`.
    tier: &'static str,
}

#[derive(ToSchema)]
#[schema(title = "TierSet", example = json!({"prefix": "billing:", "tier": "protected"}))]
#[expect(dead_code, reason = "describes the body for the API's description")]
struct TierSetWire {
    /// Absent: on every backend.
    backend: Option<String>,
    /// On whole segments; empty: every name.
    prefix: String,
    /// `standard` or `protected`.
    tier: String,
}

impl From<TierRule> for TierWire {
    fn from(rule: TierRule) -> Self {
        Self {
            id: rule.id,
            backend: rule.backend.as_str().map(str::to_owned),
            prefix: rule.prefix,
            tier: rule.tier.wire(),
        }
    }
}

/// What is wrong with a prefix.
pub(super) fn bad_prefix(prefix: &str) -> Option<String> {
    if prefix.len() > QUERY_BYTES_MAX {
        return Some(format!("has at most {QUERY_BYTES_MAX} bytes"));
    }
    prefix
        .chars()
        .any(char::is_control)
        .then(|| "has no control characters".to_owned())
}

pub(super) fn bad_tier() -> String {
    format!("is {} or {}", Tier::Standard.wire(), Tier::Protected.wire())
}

/// Every rule, by prefix. The longest prefix that covers a name counts.
#[utoipa::path(get, path = "/v1/tiers", tag = "unlocks", responses((status = 200, body = TiersWire)))]
async fn list(State(unlocks): State<Arc<Unlocks>>, asker: Asker) -> Result<Json<TiersWire>, Problem> {
    let rules = unlocks.tiers().await.map_err(|error| asker.problem(error))?;
    let tiers = rules.into_iter().map(TierWire::from).collect();
    Ok(Json(TiersWire { tiers }))
}

/// Sets the tier of a prefix, in place of what was said of it before.
#[utoipa::path(
    put, path = "/v1/tiers", tag = "unlocks", request_body = TierSetWire,
    responses(
        (status = 204),
        (status = 400, body = Problem, content_type = "application/problem+json"),
        (status = 503, body = Problem, content_type = "application/problem+json", description = "`audit_unavailable`")
    )
)]
async fn set(State(unlocks): State<Arc<Unlocks>>, asker: Asker, body: Body) -> Result<StatusCode, Problem> {
    let rule = read(&asker.headers, body).await;
    let (backend, prefix, tier) = rule.map_err(|error| asker.problem(error))?;
    let set = unlocks
        .set_tier(&asker.who, backend.as_ref(), &prefix, tier)
        .await;
    set.map(|()| StatusCode::NO_CONTENT)
        .map_err(|error| asker.problem(error))
}

async fn read(headers: &HeaderMap, body: Body) -> Result<(Option<BackendName>, String, Tier), BodyError> {
    let mut fields = Fields::read(headers, body).await?;
    let backend = fields.optional_text("backend")?;
    let backend = backend.map(|name| BackendName::parse(&name)).transpose();
    let backend = backend.map_err(|_| Invalid::new("backend", "is no name of a backend"))?;
    let prefix = fields.text("prefix")?;
    if let Some(why) = bad_prefix(&prefix) {
        return Err(Invalid::new("prefix", why).into());
    }
    let tier = Tier::parse(&fields.text("tier")?).ok_or_else(|| Invalid::new("tier", bad_tier()))?;
    fields.end()?;
    Ok((backend, prefix, tier))
}

/// Takes a rule away; a second time it changes nothing.
#[utoipa::path(
    delete, path = "/v1/tiers/{id}", tag = "unlocks", params(("id" = String, Path)),
    responses((status = 204), (status = 503, body = Problem, content_type = "application/problem+json"))
)]
async fn remove(
    State(unlocks): State<Arc<Unlocks>>,
    Id(id): Id,
    asker: Asker,
) -> Result<StatusCode, Problem> {
    let removed = unlocks.remove_tier(&asker.who, &id).await;
    removed
        .map(|()| StatusCode::NO_CONTENT)
        .map_err(|error| asker.problem(error))
}
