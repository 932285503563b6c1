//! `DELETE /v1/locks/{leaseId}`

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};

use super::context::Context;
use super::dto::ReleasedDto;
use super::read::lease_id;
use crate::http::problem::Problem;
use lease::{Ended, LeaseService};

/// Releases a lease. Idempotent; never releases the lease of the next owner.
#[utoipa::path(
    delete, path = "/v1/locks/{leaseId}", tag = "leases",
    params(("leaseId" = String, Path)),
    responses(
        (status = 200, body = ReleasedDto),
        (status = 404, body = Problem, content_type = "application/problem+json", description = "Unknown id, a lease of another principal, or one past its retention"),
        (status = 503, body = Problem, content_type = "application/problem+json")
    )
)]
pub(in crate::http) async fn release(
    State(service): State<Arc<LeaseService>>,
    context: Context,
    path: Result<Path<String>, PathRejection>,
) -> Result<Json<ReleasedDto>, Problem> {
    let lease = lease_id(path).map_err(|error| context.problem(error))?;
    let ended = service.release(&context.caller, lease).await;
    let ended = ended.map_err(|error| context.problem(error))?;
    Ok(Json(ReleasedDto::from(ended)))
}

impl From<Ended> for ReleasedDto {
    fn from(ended: Ended) -> Self {
        match ended {
            Ended::Now(_) => Self {
                released: true,
                state: None,
            },
            Ended::Before(how) => Self {
                released: false,
                state: Some(how.as_str()),
            },
        }
    }
}
