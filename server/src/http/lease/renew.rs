//! `POST /v1/locks/{leaseId}/renew`

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use domain::lease::Ttl;

use super::body::{BodyError, Fields};
use super::context::Context;
use super::read::lease_id;
use super::wire::{RenewWire, RenewedWire, moment};
use crate::http::problem::Problem;
use crate::lease::LeaseService;

/// Prolongs a living lease. A lost one is 410 with how it was lost.
#[utoipa::path(
    post, path = "/v1/locks/{leaseId}/renew", tag = "leases",
    params(("leaseId" = String, Path)),
    request_body(content = Option<RenewWire>),
    responses(
        (status = 200, body = RenewedWire),
        (status = 400, body = Problem, content_type = "application/problem+json"),
        (status = 404, body = Problem, content_type = "application/problem+json", description = "Never known"),
        (status = 409, body = Problem, content_type = "application/problem+json", description = "`lifetime_reached`: it cannot live longer"),
        (status = 410, body = Problem, content_type = "application/problem+json", description = "`expired`, `revoked` (with `by`, `reason`, `auditId`) or `released`"),
        (status = 503, body = Problem, content_type = "application/problem+json")
    )
)]
pub(super) async fn renew(
    State(service): State<Arc<LeaseService>>,
    context: Context,
    path: Result<Path<String>, PathRejection>,
    body: Body,
) -> Result<Json<RenewedWire>, Problem> {
    let lease = lease_id(path).map_err(|error| context.problem(error))?;
    let ttl = parse(&service, &context, body)
        .await
        .map_err(|error| context.problem(error))?;
    let renewed = service.renew(&context.caller, lease, ttl).await;
    let renewed = renewed.map_err(|error| context.problem(error))?;
    Ok(Json(RenewedWire {
        renewed: true,
        lease_id: renewed.lease.id,
        fencing_token: renewed.lease.token.number(),
        expires_at: moment(renewed.lease.expires_at),
        ttl_seconds: renewed.lease.ttl.seconds(),
        remaining_ms: renewed.remaining_ms,
    }))
}

async fn parse(service: &LeaseService, context: &Context, body: Body) -> Result<Option<Ttl>, BodyError> {
    let Some(mut fields) = Fields::read_or_empty(&context.headers, body).await? else {
        return Ok(None);
    };
    let seconds = fields.optional_whole("ttlSeconds")?;
    let ttl = seconds
        .map(|seconds| Ttl::parse(seconds, service.ttl_seconds_max()))
        .transpose()?;
    fields.end()?;
    Ok(ttl)
}
