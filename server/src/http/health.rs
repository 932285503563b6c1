//! `/healthz`: the process answers. `/readyz`: every backend was tried once, so that the view is not empty by haste, and
//! the process is not about to end.
//!
//! Open to everybody: what a task's panic said is not here but on the Backends page.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use chrono::{DateTime, Utc};
use domain::backend::BackendStatus;
use serde::Serialize;
use utoipa::ToSchema;

use super::state::AppState;
use crate::tasks;

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Health {
    /// `ok`; from `/readyz` also `starting`, `stopping` or `failed`.
    status: &'static str,
    /// Backends that were not tried to the end yet.
    waiting: Vec<String>,
    /// Tasks that live in this process now: connections, streams and background tasks.
    tasks_alive: usize,
    /// Background tasks that have panicked since the process started. They are started again, ever more slowly.
    tasks: Vec<TaskHealth>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TaskHealth {
    name: String,
    /// How often it was started again.
    restarts: u64,
    panicked_at: DateTime<Utc>,
    /// Since when it runs again; null while it rests before its next start.
    running_since: Option<DateTime<Utc>>,
}

impl Health {
    fn of(status: &'static str, waiting: Vec<String>) -> Self {
        let tasks = tasks::fallen().into_iter().map(|fallen| TaskHealth {
            name: fallen.name.to_string(),
            restarts: fallen.restarts,
            panicked_at: fallen.at,
            running_since: fallen.again_since,
        });
        Self {
            status,
            waiting,
            tasks_alive: tokio::runtime::Handle::current().metrics().num_alive_tasks(),
            tasks: tasks.collect(),
        }
    }
}

/// The process answers.
#[utoipa::path(get, path = "/healthz", tag = "health", responses((status = 200, body = Health)))]
pub(super) async fn alive() -> Json<Health> {
    Json(Health::of("ok", Vec::new()))
}

/// Every backend was observed, or has failed, at least once, and the process is not about to end.
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
    let status = if state.readiness.failure().is_some() {
        "failed"
    } else if state.readiness.is_leaving() || state.stop.is_cancelled() {
        "stopping"
    } else if !waiting.is_empty() {
        "starting"
    } else {
        "ok"
    };
    let code = if status == "ok" {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    (code, Json(Health::of(status, waiting)))
}
