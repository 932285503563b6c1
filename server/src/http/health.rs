//! `/healthz`: the process answers. `/readyz`: every backend was tried once, so that the view is not empty by haste.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use domain::backend::BackendStatus;
use serde::Serialize;
use utoipa::ToSchema;

use super::state::AppState;

#[derive(Serialize, ToSchema)]
pub struct Health {
    status: &'static str,
    /// Backends that were not tried to the end yet.
    waiting: Vec<String>,
}

/// The process answers.
#[utoipa::path(get, path = "/healthz", tag = "health", responses((status = 200, body = Health)))]
pub(super) async fn alive() -> Json<Health> {
    Json(Health {
        status: "ok",
        waiting: Vec::new(),
    })
}

/// Every backend was observed, or has failed, at least once.
#[utoipa::path(
    get, path = "/readyz", tag = "health",
    responses((status = 200, body = Health), (status = 503, body = Health))
)]
pub(super) async fn ready(State(state): State<AppState>) -> (StatusCode, Json<Health>) {
    let waiting: Vec<String> = state
        .inventory
        .backends(state.clock.now())
        .into_iter()
        .filter(|view| view.status == BackendStatus::Starting)
        .map(|view| view.name.to_string())
        .collect();
    if waiting.is_empty() {
        (
            StatusCode::OK,
            Json(Health {
                status: "ok",
                waiting,
            }),
        )
    } else {
        (
            StatusCode::SERVICE_UNAVAILABLE,
            Json(Health {
                status: "starting",
                waiting,
            }),
        )
    }
}
