//! `POST /v1/fencing/check` and `POST /v1/fencing/rejections`: for resources that ask, and for those that compare
//! themselves and report.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::StatusCode;
use chrono::{DateTime, Utc};
use domain::lease::{Invalid, StoreTime, names};
use domain::names::{OwnerId, Resource};
use domain::token::FencingToken;
use serde::Serialize;
use utoipa::ToSchema;

use super::lease::body::{BodyError, Fields};
use super::lease::context::Context;
use super::lease::wire::HolderWire;
use super::problem::Problem;
use crate::lease::{Checked, LeaseService, Report};

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "FencingCheck", example = json!({"resource": "billing:close:2026-04", "fencingToken": 7, "source": "ledger-db"}))]
pub struct CheckWire {
    resource: String,
    fencing_token: u64,
    owner_id: Option<String>,
    /// Who asks; enters the ledger with a refusal.
    source: Option<String>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "FencingAnswer")]
pub struct CheckedWire {
    /// Only for the last token granted.
    accepted: bool,
    /// `stale` (a newer one was granted) or `never_issued`.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
    fencing_token: u64,
    highest_token: u64,
    /// `held`, `expired`, `released`, `revoked` or `none`, so that a resource may be stricter.
    lease_state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    holder: Option<HolderWire>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "FencingRejection", example = json!({
    "resource": "billing:close:2026-04", "fencingToken": 7, "highestToken": 8, "source": "ledger-db",
    "at": "2026-04-30T23:59:01Z"
}))]
pub struct RejectionWire {
    resource: String,
    fencing_token: u64,
    highest_token: Option<u64>,
    owner_id: Option<String>,
    source: String,
    at: Option<DateTime<Utc>>,
}

/// Whether a write under this token should be accepted. A refusal enters the ledger.
#[utoipa::path(
    post, path = "/v1/fencing/check", tag = "fencing",
    request_body = CheckWire,
    responses(
        (status = 200, body = CheckedWire),
        (status = 400, body = Problem, content_type = "application/problem+json"),
        (status = 403, body = Problem, content_type = "application/problem+json", description = "`out_of_scope`"),
        (status = 503, body = Problem, content_type = "application/problem+json", description = "Do not accept the write")
    )
)]
pub(super) async fn check(
    State(service): State<Arc<LeaseService>>,
    context: Context,
    body: Body,
) -> Result<Json<CheckedWire>, Problem> {
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
        .map(|it| Json(CheckedWire::from(it)))
        .map_err(|error| context.problem(error))
}

/// Enters what a resource refused by itself into the ledger.
#[utoipa::path(
    post, path = "/v1/fencing/rejections", tag = "fencing",
    request_body = RejectionWire,
    responses(
        (status = 202, description = "Recorded"),
        (status = 400, body = Problem, content_type = "application/problem+json"),
        (status = 403, body = Problem, content_type = "application/problem+json", description = "`out_of_scope`"),
        (status = 503, body = Problem, content_type = "application/problem+json")
    )
)]
pub(super) async fn report(
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
        let mut fields = Fields::read(&context.headers, body).await?;
        let question = Self {
            resource: names::resource(&fields.text("resource")?)?,
            token: fields.token("fencingToken")?,
            owner: owner(&mut fields)?,
            source: source(&mut fields)?,
        };
        fields.end()?;
        Ok(question)
    }
}

async fn parse(context: &Context, body: Body) -> Result<Report, BodyError> {
    let mut fields = Fields::read(&context.headers, body).await?;
    let report = Report {
        resource: names::resource(&fields.text("resource")?)?,
        token: fields.token("fencingToken")?,
        highest: fields.optional_token("highestToken")?,
        owner: owner(&mut fields)?,
        source: source(&mut fields)?.ok_or_else(|| Invalid::new("source", "is required"))?,
        at: moment(&mut fields)?,
    };
    fields.end()?;
    Ok(report)
}

fn owner(fields: &mut Fields) -> Result<Option<OwnerId>, Invalid> {
    fields
        .optional_text("ownerId")?
        .map(|text| names::owner(&text))
        .transpose()
}

fn source(fields: &mut Fields) -> Result<Option<String>, Invalid> {
    let text = fields.optional_text("source")?;
    text.map(|text| names::source(&text).map(str::to_owned))
        .transpose()
}

fn moment(fields: &mut Fields) -> Result<Option<StoreTime>, Invalid> {
    let text = fields.optional_text("at")?;
    let read = |text: String| {
        DateTime::parse_from_rfc3339(&text)
            .map(|at| StoreTime::from_ms(at.timestamp_millis()))
            .map_err(|_| Invalid::new("at", "must be a time like 2026-04-30T23:59:01Z"))
    };
    text.map(read).transpose()
}

impl From<Checked> for CheckedWire {
    fn from(checked: Checked) -> Self {
        Self {
            accepted: checked.accepted(),
            reason: checked.answer.verdict.reason(),
            fencing_token: checked.answer.presented.number(),
            highest_token: checked.answer.highest.number(),
            lease_state: checked.answer.lease_state,
            holder: checked.now.holder.as_ref().map(HolderWire::new),
        }
    }
}
