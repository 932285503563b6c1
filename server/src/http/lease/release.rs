//! `DELETE /v1/locks/{leaseId}`

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};

use super::context::Context;
use super::read::lease_id;
use super::wire::ReleasedWire;
use crate::http::problem::Problem;
use crate::lease::{Ended, LeaseService};

/// Gives a lease back. Idempotent; never touches the next owner's.
#[utoipa::path(
    delete, path = "/v1/locks/{leaseId}", tag = "leases",
    params(("leaseId" = String, Path)),
    responses(
        (status = 200, body = ReleasedWire),
        (status = 404, body = Problem, content_type = "application/problem+json", description = "Never known"),
        (status = 503, body = Problem, content_type = "application/problem+json")
    )
)]
pub(super) async fn release(
    State(service): State<Arc<LeaseService>>,
    context: Context,
    path: Result<Path<String>, PathRejection>,
) -> Result<Json<ReleasedWire>, Problem> {
    let lease = lease_id(path).map_err(|error| context.problem(error))?;
    let ended = service.release(&context.caller, lease).await;
    let ended = ended.map_err(|error| context.problem(error))?;
    Ok(Json(match ended {
        Ended::Now(_) => ReleasedWire {
            released: true,
            state: None,
        },
        Ended::Before(how) => ReleasedWire {
            released: false,
            state: Some(how.wire()),
        },
    }))
}
