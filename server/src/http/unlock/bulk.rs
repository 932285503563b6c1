//! Several forced unlocks in one request: explicit ones, at most 50, each with its own answer.
//!
//! No request takes a prefix or a query: the caller names each lock.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use domain::lease::ValidationError;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{UnlockDto, redacted};
use crate::http::current_user::ApiUser;
use crate::http::json_body::{BodyError, objects};
use crate::http::problem::Problem;
use crate::unlock::limits::BULK_MAX;
use crate::unlock::{Confirmation, UnlockError, UnlockRequest, Unlocks};

/// The result of one item: the unlock, or the problem of the same request for this lock alone.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::http) struct ItemDto {
    status: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    unlock: Option<UnlockDto>,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<Problem>,
}

/// In the order of the request.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct ResultsDto {
    results: Vec<ItemDto>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({
    "items": [{"backend": "$BACKEND", "resource": "$RESOURCE", "generation": "$GENERATION"}],
    "reason": "The worker's host is gone, see incident 4711"
}))]
pub(in crate::http) struct BulkUnlockRequestDto {
    /// 1 to 50.
    #[serde(deserialize_with = "objects")]
    items: Vec<BulkItemDto>,
    /// The reason for all of them.
    reason: String,
}

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(in crate::http) struct BulkItemDto {
    pub(super) backend: String,
    pub(super) source: Option<String>,
    pub(super) resource: String,
    pub(super) generation: String,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"items": [{"unlockId": "$UNLOCK_ID", "resource": "$RESOURCE"}]}))]
pub(in crate::http) struct BulkConfirmationDto {
    /// 1 to 50.
    #[serde(deserialize_with = "objects")]
    items: Vec<BulkConfirmationItemDto>,
}

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(in crate::http) struct BulkConfirmationItemDto {
    unlock_id: String,
    /// The name of its own resource.
    resource: String,
    break_glass_reason: Option<String>,
}

/// Records several intents.
#[utoipa::path(
    post, path = "/v1/unlocks/bulk", tag = "unlocks",
    request_body = BulkUnlockRequestDto,
    responses(
        (status = 200, body = ResultsDto),
        (status = 400, body = Problem, content_type = "application/problem+json",
            description = "A field is invalid, or there are more than 50 items: no intent was created")
    )
)]
pub(in crate::http) async fn begin(
    State(unlocks): State<Arc<Unlocks>>,
    user: ApiUser,
    body: Body,
) -> Result<Json<ResultsDto>, Problem> {
    let body: BulkUnlockRequestDto = user.read(body).await?;
    let requests = parse(body).map_err(|error| user.problem(error))?;
    let mut results = Vec::with_capacity(requests.len());
    for request in requests {
        results.push(item(&user, 201, unlocks.begin(&user.who, request).await));
    }
    Ok(Json(ResultsDto { results }))
}

/// Confirms several intents, one after the other, each with the name of its own resource.
#[utoipa::path(
    post, path = "/v1/unlocks/bulk/confirm", tag = "unlocks",
    request_body = BulkConfirmationDto,
    responses(
        (status = 200, body = ResultsDto),
        (status = 400, body = Problem, content_type = "application/problem+json",
            description = "A field is invalid, or there are more than 50 items: none was released")
    )
)]
pub(in crate::http) async fn confirm(
    State(unlocks): State<Arc<Unlocks>>,
    user: ApiUser,
    body: Body,
) -> Result<Json<ResultsDto>, Problem> {
    let body: BulkConfirmationDto = user.read(body).await?;
    let confirmations = check_count(body.items).map_err(|error| user.problem(BodyError::from(error)))?;
    let mut results = Vec::with_capacity(confirmations.len());
    for BulkConfirmationItemDto {
        unlock_id,
        resource,
        break_glass_reason: break_glass,
    } in confirmations
    {
        let confirmation = Confirmation {
            resource,
            break_glass,
        };
        let confirmed = unlocks.confirm(&user.who, &unlock_id, confirmation).await;
        results.push(item(&user, 200, confirmed));
    }
    Ok(Json(ResultsDto { results }))
}

fn parse(body: BulkUnlockRequestDto) -> Result<Vec<UnlockRequest>, BodyError> {
    let items = check_count(body.items)?.into_iter().enumerate();
    let parsed = items.map(|(index, item)| item.parse(&format!("items[{index}]."), body.reason.clone()));
    parsed.collect()
}

fn check_count<T>(items: Vec<T>) -> Result<Vec<T>, ValidationError> {
    if (1..=BULK_MAX).contains(&items.len()) {
        return Ok(items);
    }
    Err(ValidationError::new(
        "items",
        format!("must be 1 to {BULK_MAX}, but are {}", items.len()),
    ))
}

fn item(user: &ApiUser, success_status: u16, unlock: Result<domain::unlock::Unlock, UnlockError>) -> ItemDto {
    match unlock {
        Ok(unlock) => ItemDto {
            status: success_status,
            unlock: Some(redacted(user, unlock)),
            problem: None,
        },
        Err(error) => {
            let problem = user.problem(error);
            ItemDto {
                status: problem.status(),
                unlock: None,
                problem: Some(problem),
            }
        }
    }
}
