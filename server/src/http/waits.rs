//! `GET /v1/waits`: who waits for whom over all backends, and the deadlocks, as far as the caller may see.

mod dto;

use axum::Json;
use axum::extract::State;

use self::dto::WaitsDto;
use super::current_user::ApiUser;
use super::state::ConsoleFor;
use crate::http::problem::Problem;

/// Deadlocks inside of a backend and across backends, with the reasons why each wait is believed, and all other waits.
///
/// Owners of different backends are joined by the configured identity rules only. A wait for a lock out of the caller's scope is
/// null in a cycle.
#[utoipa::path(
    get, path = "/v1/waits", tag = "inventory",
    responses(
        (status = 200, body = WaitsDto),
        (status = 503, body = Problem, content_type = "application/problem+json")
    )
)]
pub(in crate::http) async fn list(
    State(console): State<ConsoleFor>,
    user: ApiUser,
) -> Result<Json<WaitsDto>, Problem> {
    let page = console.principal(&user.who).waits().await;
    page.map(|page| Json(WaitsDto::from(page)))
        .map_err(|error| user.problem(error))
}
