//! `/healthz`: the process answers. `/readyz`: every backend was tried once, so that the view is not empty after a start, and
//! the process is not about to end.
//!
//! Public: the status, and the error of an overdue evaluation of alert rules. Only principals that may view every lock also get
//! the tasks that panicked and the backends that are not scanned yet; the message of a panic is on the Backends page.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use chrono::{DateTime, Utc};
use domain::access::Permission;
use domain::alerts::OVERDUE;
use domain::backend::BackendStatus;
use serde::Serialize;
use utoipa::ToSchema;

use crate::http::current_user::ApiUser;
use crate::http::state::AppState;
use crate::identity::Principal;
use runtime::tasks;

/// `status` and `errors` are public; only principals that may view every lock get the other members.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Health {
    /// `ok`; from `/readyz` also `degraded`, `starting`, `stopping` or `failed`.
    status: &'static str,
    /// Only from `/readyz`: faults that do not stop the server from serving leases and pages.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    errors: Vec<String>,
    /// Only from `/readyz`: seconds since any server evaluated the alert rules; before the first evaluation, since this server
    /// started.
    #[serde(skip_serializing_if = "Option::is_none")]
    alerts_evaluated_seconds_ago: Option<i64>,
    /// Backends whose first scan has not ended yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    waiting: Option<Vec<String>>,
    /// Tasks that run in this process: connections, streams and background tasks.
    #[serde(skip_serializing_if = "Option::is_none")]
    tasks_alive: Option<usize>,
    /// Background tasks that have panicked since the process started. They are restarted after a delay that grows.
    #[serde(skip_serializing_if = "Option::is_none")]
    tasks: Option<Vec<TaskHealth>>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TaskHealth {
    name: String,
    /// Number of restarts.
    restarts: u64,
    panicked_at: DateTime<Utc>,
    /// Time of its last restart; null while it waits for its next one.
    running_since: Option<DateTime<Utc>>,
}

impl Health {
    fn new(status: &'static str, who: &Principal, waiting: Vec<String>) -> Self {
        let is_reader = who.grants.may_everywhere(Permission::View);
        Self {
            status,
            errors: Vec::new(),
            alerts_evaluated_seconds_ago: None,
            waiting: is_reader.then_some(waiting),
            tasks_alive: is_reader.then(|| tokio::runtime::Handle::current().metrics().num_alive_tasks()),
            tasks: is_reader.then(|| {
                tasks::panicked_tasks()
                    .into_iter()
                    .map(TaskHealth::from)
                    .collect()
            }),
        }
    }
}

impl From<tasks::PanickedTask> for TaskHealth {
    fn from(task: tasks::PanickedTask) -> Self {
        Self {
            name: task.name.to_string(),
            restarts: task.restarts,
            panicked_at: task.at,
            running_since: task.running_since,
        }
    }
}

/// The process answers.
#[utoipa::path(get, path = "/healthz", tag = "health", responses((status = 200, body = Health)))]
pub(in crate::http) async fn alive(user: ApiUser) -> Json<Health> {
    Json(Health::new("ok", &user.who, Vec::new()))
}

/// Every backend was observed, or has failed, at least once, and the process is not about to end.
#[utoipa::path(
    get, path = "/readyz", tag = "health",
    responses((status = 200, body = Health), (status = 503, body = Health))
)]
pub(in crate::http) async fn ready(
    State(state): State<AppState>,
    user: ApiUser,
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
    } else if state.auth.evaluation.is_overdue() {
        "degraded"
    } else {
        "ok"
    };
    // Leases work without alert evaluation: a load balancer must not remove every server for it.
    let code = if matches!(status, "ok" | "degraded") {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    let is_overdue = state.auth.evaluation.is_overdue();
    let health = Health::new(status, &user.who, waiting);
    let health = Health {
        errors: is_overdue.then(|| OVERDUE.to_owned()).into_iter().collect(),
        // For readers of everything, like the other details.
        alerts_evaluated_seconds_ago: health
            .waiting
            .is_some()
            .then(|| state.auth.evaluation.age_ms() / 1_000),
        ..health
    };
    (code, Json(health))
}
