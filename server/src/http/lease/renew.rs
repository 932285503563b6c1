//! `POST /v1/locks/{leaseId}/renew`

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use domain::lease::Ttl;

use super::context::Context;
use super::dto::{RenewDto, RenewedDto, moment};
use super::read::lease_id;
use crate::http::json_body::{self, BodyError};
use crate::http::problem::Problem;
use lease::{LeaseService, Renewed};

/// Renews a live lease. A lost one is 410, with `code` for how it was lost.
#[utoipa::path(
    post, path = "/v1/locks/{leaseId}/renew", tag = "leases",
    params(("leaseId" = String, Path)),
    request_body(content = Option<RenewDto>),
    responses(
        (status = 200, body = RenewedDto),
        (status = 400, body = Problem, content_type = "application/problem+json"),
        (status = 404, body = Problem, content_type = "application/problem+json", description = "Unknown id, a lease of another principal, or one past its retention"),
        (status = 409, body = Problem, content_type = "application/problem+json", description = "`lifetime_reached`: its maximum lifetime is reached"),
        (status = 410, body = Problem, content_type = "application/problem+json", description = "`expired`, `revoked` (with `by`, `reason`, `auditId`) or `released`"),
        (status = 503, body = Problem, content_type = "application/problem+json")
    )
)]
pub(in crate::http) async fn renew(
    State(service): State<Arc<LeaseService>>,
    context: Context,
    path: Result<Path<String>, PathRejection>,
    body: Body,
) -> Result<Json<RenewedDto>, Problem> {
    let lease = lease_id(path).map_err(|error| context.problem(error))?;
    let ttl = parse(&service, &context, body)
        .await
        .map_err(|error| context.problem(error))?;
    let renewed = service.renew(&context.caller, lease, ttl).await;
    let renewed = renewed.map_err(|error| context.problem(error))?;
    Ok(Json(RenewedDto::from(renewed)))
}

impl From<Renewed> for RenewedDto {
    fn from(renewed: Renewed) -> Self {
        Self {
            renewed: true,
            lease_id: renewed.lease.id,
            fencing_token: renewed.lease.token.number(),
            expires_at: moment(renewed.lease.expires_at),
            ttl_seconds: renewed.lease.ttl.seconds(),
            remaining_ms: renewed.remaining_ms,
        }
    }
}

async fn parse(service: &LeaseService, context: &Context, body: Body) -> Result<Option<Ttl>, BodyError> {
    let body: Option<RenewDto> = json_body::read_optional(&context.headers, body).await?;
    let seconds = body.and_then(|body| body.ttl_seconds);
    let ttl = seconds.map(|seconds| Ttl::parse(seconds, service.ttl_seconds_max()));
    Ok(ttl.transpose()?)
}
