//! Several forced unlocks in one request: explicit ones, at most 50, each with its own answer.
//!
//! Nothing here takes a prefix or a query: what is unlocked is what the caller names, one by one.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use domain::lease::Invalid;
use serde::Serialize;
use utoipa::ToSchema;

use super::asked;
use super::{Caller, UnlockWire};
use crate::http::lease::body::{BodyError, Fields};
use crate::http::problem::Problem;
use crate::unlock::limits::BULK_MAX;
use crate::unlock::{Confirmation, UnlockError, Unlocks};

/// One item's answer: the unlock, or the problem that it would have been alone.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ItemWire {
    status: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    unlock: Option<UnlockWire>,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<Problem>,
}

/// In the order of the request.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ResultsWire {
    results: Vec<ItemWire>,
}

#[derive(ToSchema)]
#[schema(example = json!({
    "items": [{"backend": "$BACKEND", "resource": "$RESOURCE", "generation": "$GENERATION"}],
    "reason": "The worker's host is gone, see incident 4711"
}))]
#[expect(dead_code, reason = "describes the body for the API's description")]
pub(super) struct BulkAskedWire {
    /// 1 to 50.
    items: Vec<BulkItemWire>,
    /// Of all of them.
    reason: String,
}

#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "describes the body for the API's description")]
pub(super) struct BulkItemWire {
    backend: String,
    source: Option<String>,
    resource: String,
    generation: String,
}

#[derive(ToSchema)]
#[schema(rename_all = "camelCase", example = json!({"items": [{"unlockId": "$UNLOCK_ID", "resource": "$RESOURCE"}]}))]
#[expect(dead_code, reason = "describes the body for the API's description")]
pub(super) struct BulkConfirmationWire {
    /// 1 to 50.
    items: Vec<BulkTypedWire>,
}

#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "describes the body for the API's description")]
pub(super) struct BulkTypedWire {
    unlock_id: String,
    /// The name of its own resource.
    resource: String,
    break_glass_reason: Option<String>,
}

/// Records several intents.
#[utoipa::path(
    post, path = "/v1/unlocks/bulk", tag = "unlocks",
    request_body = BulkAskedWire,
    responses(
        (status = 200, body = ResultsWire),
        (status = 400, body = Problem, content_type = "application/problem+json",
            description = "A field is invalid, or there are more than 50 items: none was begun")
    )
)]
pub(super) async fn begin(
    State(unlocks): State<Arc<Unlocks>>,
    caller: Caller,
    body: Body,
) -> Result<Json<ResultsWire>, Problem> {
    let asked = async {
        let mut fields = Fields::read(&caller.headers, body).await?;
        let reason = fields.text("reason")?;
        let items = items(&mut fields)?;
        fields.end()?;
        let parsed = items.into_iter().map(|item| asked::parse(item, Some(&reason)));
        Ok::<_, BodyError>(parsed.collect::<Result<Vec<_>, Invalid>>()?)
    };
    let asked = asked.await.map_err(|error| caller.problem(error))?;
    let mut results = Vec::with_capacity(asked.len());
    for one in asked {
        results.push(item(&caller, 201, unlocks.begin(&caller.who, one).await));
    }
    Ok(Json(ResultsWire { results }))
}

/// Confirms several intents, one after the other, each with the name of its own resource.
#[utoipa::path(
    post, path = "/v1/unlocks/bulk/confirm", tag = "unlocks",
    request_body = BulkConfirmationWire,
    responses(
        (status = 200, body = ResultsWire),
        (status = 400, body = Problem, content_type = "application/problem+json",
            description = "A field is invalid, or there are more than 50 items: none was confirmed")
    )
)]
pub(super) async fn confirm(
    State(unlocks): State<Arc<Unlocks>>,
    caller: Caller,
    body: Body,
) -> Result<Json<ResultsWire>, Problem> {
    let typed = async {
        let mut fields = Fields::read(&caller.headers, body).await?;
        let items = items(&mut fields)?;
        fields.end()?;
        let parsed = items.into_iter().map(|mut item| {
            let id = item.text("unlockId")?;
            Ok((id, asked::confirmation(item)?))
        });
        Ok::<_, BodyError>(parsed.collect::<Result<Vec<(String, Confirmation)>, Invalid>>()?)
    };
    let typed = typed.await.map_err(|error| caller.problem(error))?;
    let mut results = Vec::with_capacity(typed.len());
    for (id, confirmation) in typed {
        let confirmed = unlocks.confirm(&caller.who, &id, confirmation).await;
        results.push(item(&caller, 200, confirmed));
    }
    Ok(Json(ResultsWire { results }))
}

fn items(fields: &mut Fields) -> Result<Vec<Fields>, Invalid> {
    let items = fields.objects("items")?;
    if (1..=BULK_MAX).contains(&items.len()) {
        return Ok(items);
    }
    Err(Invalid::new(
        "items",
        format!("must be 1 to {BULK_MAX}, but are {}", items.len()),
    ))
}

fn item(caller: &Caller, good: u16, unlock: Result<domain::unlock::Unlock, UnlockError>) -> ItemWire {
    match unlock {
        Ok(unlock) => ItemWire {
            status: good,
            unlock: Some(caller.shown(unlock)),
            problem: None,
        },
        Err(error) => {
            let problem = caller.problem(error);
            ItemWire {
                status: problem.status(),
                unlock: None,
                problem: Some(problem),
            }
        }
    }
}
