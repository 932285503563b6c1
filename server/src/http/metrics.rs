//! `GET /metrics`: the metrics as Prometheus reads them, for principals that may see every lock: labels hold templates of names.

use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse as _, Response};
use domain::access::Visible;

use crate::http::current_user::ApiUser;
use crate::http::problem::Problem;
use runtime::telemetry;

const TEXT: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");

/// Every metric, as text for Prometheus. Needs the permission to view every lock of every backend.
#[utoipa::path(
    get, path = "/metrics", tag = "health",
    responses(
        (status = 200, body = String, content_type = "text/plain"),
        (status = 403, body = Problem, content_type = "application/problem+json", description = "The permission `view` does not cover every lock")
    )
)]
pub(in crate::http) async fn scrape(user: ApiUser) -> Result<Response, Problem> {
    let sees_all = Visible::to(&user.who.grants).is_everything();
    if !sees_all {
        return Err(user.problem(Problem::forbidden(
            "Metrics cover every lock: the reader needs the permission `view` on all of them".to_owned(),
        )));
    }
    // Callbacks ask the inventory for its counts.
    let text = tokio::task::spawn_blocking(telemetry::scrape).await;
    match text {
        Ok(Ok(text)) => Ok(([(header::CONTENT_TYPE, TEXT)], text).into_response()),
        _ => Err(user.problem(Problem::store_unavailable())),
    }
}
