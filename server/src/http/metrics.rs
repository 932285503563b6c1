//! `GET /metrics`: the metrics as Prometheus reads them, for whoever may see every lock: templates of names are in them.

use axum::Extension;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse as _, Response};
use domain::access::Visible;

use super::problem::Problem;
use crate::identity::Who;
use crate::telemetry;

const TEXT: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");

/// Every metric, as text for Prometheus. Needs the right to look at every lock of every backend.
#[utoipa::path(
    get, path = "/metrics", tag = "health",
    responses(
        (status = 200, body = String, content_type = "text/plain"),
        (status = 403, body = Problem, content_type = "application/problem+json", description = "Some locks may not be seen")
    )
)]
pub(super) async fn scrape(headers: HeaderMap, who: Option<Extension<Who>>) -> Result<Response, Problem> {
    let sees_all = who.is_some_and(|Extension(who)| Visible::to(&who.grants).is_everything());
    if !sees_all {
        return Err(Problem::forbidden(
            "Metrics tell of every lock: their reader needs the right to look at all of them".to_owned(),
        )
        .with_request_id(&headers));
    }
    // Callbacks ask the inventory for its counts.
    let text = tokio::task::spawn_blocking(telemetry::scrape).await;
    match text {
        Ok(Ok(text)) => Ok(([(header::CONTENT_TYPE, TEXT)], text).into_response()),
        _ => Err(Problem::store_unavailable().with_request_id(&headers)),
    }
}
