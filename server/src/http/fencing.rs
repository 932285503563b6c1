//! `POST /v1/fencing/check` for resources that ask, `POST /v1/fencing/rejections` for resources that compare tokens
//! themselves and report.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::StatusCode;
use chrono::DateTime;
use domain::lease::limits::TOKEN_MAX;
use domain::lease::{StoreTime, ValidationError, names};
use domain::names::{OwnerId, Resource};
use domain::token::FencingToken;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::json_body::{self, BodyError, FieldErrors};
use crate::http::lease::context::Context;
use crate::http::lease::dto::HolderDto;
use crate::http::problem::Problem;
use lease::{FencingCheck, LeaseService, RejectionReport};

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(title = "FencingCheck", example = json!({"resource": "billing:close:2026-04", "fencingToken": 7, "source": "ledger-db"}))]
pub struct CheckDto {
    resource: String,
    #[schema(minimum = 0, maximum = 9_007_199_254_740_991_i64)]
    fencing_token: i64,
    owner_id: Option<String>,
    /// The resource that checks; recorded with a rejection.
    source: Option<String>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "FencingAnswer")]
pub struct CheckedDto {
    /// Only for the last token granted.
    accepted: bool,
    /// `stale` (a newer token was granted) or `never_issued`.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
    fencing_token: u64,
    highest_token: u64,
    /// `held`, `expired`, `released`, `revoked` or `none`, so that a resource may be stricter.
    lease_state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    holder: Option<HolderDto>,
}

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(title = "FencingRejection", example = json!({
    "resource": "billing:close:2026-04", "fencingToken": 7, "highestToken": 8, "source": "ledger-db",
    "at": "2026-04-30T23:59:01Z"
}))]
pub struct RejectionDto {
    resource: String,
    #[schema(minimum = 0, maximum = 9_007_199_254_740_991_i64)]
    fencing_token: i64,
    #[schema(minimum = 0, maximum = 9_007_199_254_740_991_i64)]
    highest_token: Option<i64>,
    owner_id: Option<String>,
    source: String,
    /// RFC 3339; absent: now.
    #[schema(format = DateTime)]
    at: Option<String>,
}

/// Whether a write under this token should be accepted. A rejection is recorded.
#[utoipa::path(
    post, path = "/v1/fencing/check", tag = "fencing",
    request_body = CheckDto,
    responses(
        (status = 200, body = CheckedDto),
        (status = 400, body = Problem, content_type = "application/problem+json"),
        (status = 403, body = Problem, content_type = "application/problem+json", description = "`out_of_scope`"),
        (status = 503, body = Problem, content_type = "application/problem+json", description = "Do not accept the write")
    )
)]
pub(in crate::http) async fn check(
    State(service): State<Arc<LeaseService>>,
    context: Context,
    body: Body,
) -> Result<Json<CheckedDto>, Problem> {
    let question = Question::parse(&context, body)
        .await
        .map_err(|error| context.problem(error))?;
    let Question {
        resource,
        token,
        owner,
        source,
    } = question;
    let checked = service
        .check(&context.caller, &resource, token, owner, source)
        .await;
    checked
        .map(|it| Json(CheckedDto::from(it)))
        .map_err(|error| context.problem(error))
}

/// Records a write that a resource rejected by itself.
#[utoipa::path(
    post, path = "/v1/fencing/rejections", tag = "fencing",
    request_body = RejectionDto,
    responses(
        (status = 202, description = "Recorded"),
        (status = 400, body = Problem, content_type = "application/problem+json"),
        (status = 403, body = Problem, content_type = "application/problem+json", description = "`out_of_scope`"),
        (status = 503, body = Problem, content_type = "application/problem+json")
    )
)]
pub(in crate::http) async fn report(
    State(service): State<Arc<LeaseService>>,
    context: Context,
    body: Body,
) -> Result<StatusCode, Problem> {
    let report = parse(&context, body)
        .await
        .map_err(|error| context.problem(error))?;
    let reported = service.report(&context.caller, report).await;
    reported
        .map(|()| StatusCode::ACCEPTED)
        .map_err(|error| context.problem(error))
}

struct Question {
    resource: Resource,
    token: FencingToken,
    owner: Option<OwnerId>,
    source: Option<String>,
}

impl Question {
    async fn parse(context: &Context, body: Body) -> Result<Self, BodyError> {
        let body: CheckDto = json_body::read(&context.headers, body).await?;
        let mut errors = FieldErrors::default();
        let resource = errors.check(names::resource(&body.resource));
        let token = errors.check(token("fencingToken", body.fencing_token));
        let owner = errors.check(owner(body.owner_id));
        let source = errors.check(body.source.map(source).transpose());
        let (Some(resource), Some(token), Some(owner), Some(source)) = (resource, token, owner, source)
        else {
            return Err(errors.into());
        };
        Ok(Self {
            resource,
            token,
            owner,
            source,
        })
    }
}

async fn parse(context: &Context, body: Body) -> Result<RejectionReport, BodyError> {
    let body: RejectionDto = json_body::read(&context.headers, body).await?;
    let mut errors = FieldErrors::default();
    let resource = errors.check(names::resource(&body.resource));
    let presented = errors.check(token("fencingToken", body.fencing_token));
    let highest = body.highest_token.map(|number| token("highestToken", number));
    let highest = errors.check(highest.transpose());
    let owner = errors.check(owner(body.owner_id));
    let source = errors.check(source(body.source));
    let at = errors.check(body.at.as_deref().map(moment).transpose());
    let (Some(resource), Some(token), Some(highest), Some(owner), Some(source), Some(at)) =
        (resource, presented, highest, owner, source, at)
    else {
        return Err(errors.into());
    };
    Ok(RejectionReport {
        resource,
        token,
        highest,
        owner,
        source,
        at,
    })
}

fn token(field: &str, number: i64) -> Result<FencingToken, ValidationError> {
    let fits = u64::try_from(number).ok().filter(|number| *number <= TOKEN_MAX);
    fits.map(FencingToken::new)
        .ok_or_else(|| ValidationError::new(field, format!("must be 0 to {TOKEN_MAX}, but is {number}")))
}

fn owner(text: Option<String>) -> Result<Option<OwnerId>, ValidationError> {
    text.map(|text| names::owner(&text)).transpose()
}

fn source(text: String) -> Result<String, ValidationError> {
    names::source(&text)?;
    Ok(text)
}

fn moment(text: &str) -> Result<StoreTime, ValidationError> {
    DateTime::parse_from_rfc3339(text)
        .map(|at| StoreTime::from_ms(at.timestamp_millis()))
        .map_err(|_| ValidationError::new("at", "must be a time like 2026-04-30T23:59:01Z"))
}

impl From<FencingCheck> for CheckedDto {
    fn from(checked: FencingCheck) -> Self {
        Self {
            accepted: checked.accepted(),
            reason: checked.answer.verdict.reason(),
            fencing_token: checked.answer.presented.number(),
            highest_token: checked.answer.highest.number(),
            lease_state: checked.answer.lease_state,
            holder: checked.now.holder.as_ref().map(HolderDto::new),
        }
    }
}
