//! `/healthz`: the process answers. `/readyz`: every backend was tried once, so that the view is not empty by haste, and
//! the process is not about to end.
//!
//! Open to everybody, who read the status alone. Readers of everything also read which tasks panicked and which backends
//! are awaited; what a panic said is on the Backends page.

use axum::extract::State;
use axum::http::StatusCode;
use axum::{Extension, Json};
use chrono::{DateTime, Utc};
use domain::access::Right;
use domain::alerts::OVERDUE;
use domain::backend::BackendStatus;
use serde::Serialize;
use utoipa::ToSchema;

use super::state::AppState;
use crate::identity::Who;
use crate::tasks;

/// All but the status is for readers of everything, and absent for all others.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Health {
    /// `ok`; from `/readyz` also `degraded`, `starting`, `stopping` or `failed`.
    status: &'static str,
    /// Of `/readyz`: what is broken on a server that serves leases and pages all the same, with status `degraded`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    errors: Vec<String>,
    /// Of `/readyz`: how long ago any server evaluated the alert rules; since the start of this one, before the first time.
    #[serde(skip_serializing_if = "Option::is_none")]
    alerts_evaluated_seconds_ago: Option<i64>,
    /// Backends that were not tried to the end yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    waiting: Option<Vec<String>>,
    /// Tasks that live in this process now: connections, streams and background tasks.
    #[serde(skip_serializing_if = "Option::is_none")]
    tasks_alive: Option<usize>,
    /// Background tasks that have panicked since the process started. They are started again, ever more slowly.
    #[serde(skip_serializing_if = "Option::is_none")]
    tasks: Option<Vec<TaskHealth>>,
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
    fn new(status: &'static str, who: Option<&Who>, waiting: Vec<String>) -> Self {
        let is_reader = who.is_some_and(|who| who.grants.may_everywhere(Right::View));
        Self {
            status,
            errors: Vec::new(),
            alerts_evaluated_seconds_ago: None,
            waiting: is_reader.then_some(waiting),
            tasks_alive: is_reader.then(|| tokio::runtime::Handle::current().metrics().num_alive_tasks()),
            tasks: is_reader.then(|| tasks::fallen().into_iter().map(TaskHealth::from).collect()),
        }
    }
}

impl From<tasks::Fallen> for TaskHealth {
    fn from(fallen: tasks::Fallen) -> Self {
        Self {
            name: fallen.name.to_string(),
            restarts: fallen.restarts,
            panicked_at: fallen.at,
            running_since: fallen.again_since,
        }
    }
}

/// The process answers.
#[utoipa::path(get, path = "/healthz", tag = "health", responses((status = 200, body = Health)))]
pub(super) async fn alive(who: Option<Extension<Who>>) -> Json<Health> {
    Json(Health::new("ok", who.as_deref(), Vec::new()))
}

/// Every backend was observed, or has failed, at least once, and the process is not about to end.
#[utoipa::path(
    get, path = "/readyz", tag = "health",
    responses((status = 200, body = Health), (status = 503, body = Health))
)]
pub(super) async fn ready(
    State(state): State<AppState>,
    who: Option<Extension<Who>>,
) -> (StatusCode, Json<Health>) {
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
    } else if state.evaluation.is_overdue() {
        "degraded"
    } else {
        "ok"
    };
    // Leases go on without alerts: a balancer must not take every server out because nobody evaluates.
    let code = if matches!(status, "ok" | "degraded") {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    let is_overdue = state.evaluation.is_overdue();
    let health = Health::new(status, who.as_deref(), waiting);
    let health = Health {
        errors: is_overdue.then(|| OVERDUE.to_owned()).into_iter().collect(),
        // For readers of everything, like the other details.
        alerts_evaluated_seconds_ago: health
            .waiting
            .is_some()
            .then(|| state.evaluation.age_ms() / 1_000),
        ..health
    };
    (code, Json(health))
}
