//! HTTP: the table of routes is in `routes.rs`. Handlers authenticate, parse, call a service and answer; no module here knows
//! a backend.

mod alerts;
pub mod audit;
pub mod auth;
pub mod contention;
mod current_user;
mod demo_console;
pub mod dto;
pub mod events;
pub mod fencing;
mod form_body;
pub mod health;
pub mod inventory;
mod json_body;
pub mod lease;
mod metrics;
pub mod openapi;
pub mod pages;
mod path_id;
pub mod problem;
mod protected_prefixes;
mod receivers;
mod request_id;
pub mod routes;
mod security_headers;
pub mod sessions;
pub mod state;
pub mod tokens;
pub mod unlock;
pub mod users;
pub mod waits;

use std::convert::Infallible;

use axum::http::Request;
use axum::response::Response;
use axum::routing::{Route, any};
use axum::{Router, extract};
use tower::util::{MapRequestLayer, MapResponseLayer};
use tower::{Layer, Service};
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::request_id::{PropagateRequestIdLayer, SetRequestIdLayer};
use tower_http::trace::{DefaultOnFailure, TraceLayer};

use self::auth::AuthLayer;
use self::request_id::{REQUEST_ID, RandomId};
use runtime::telemetry;

pub use demo_console::DemoConsole;
pub use state::{AppState, ConsoleFor, Services};

/// The API and the pages, behind the authentication layer.
pub fn router(state: AppState) -> Router {
    let guard = AuthLayer(state.clone());
    let pages = pages::router(state.clone());
    let router = routes::router()
        .route("/v1/{*rest}", any(problem::no_such_route))
        // The wildcard does not match an empty rest.
        .route("/v1/", any(problem::no_such_route))
        .route("/v1", any(problem::no_such_route))
        .method_not_allowed_fallback(problem::no_such_method)
        .with_state(state)
        .merge(pages);
    with_layers(router, guard)
}

/// Without the query, which may contain one-time links and codes of identity providers.
fn span<B>(request: &Request<B>) -> tracing::Span {
    let span = tracing::debug_span!(
        "request",
        otel.kind = "server",
        otel.name = %format_args!("{} {}", request.method(), route(request)),
        method = %request.method(),
        path = request.uri().path()
    );
    telemetry::trace::adopt(&span, request.headers());
    span
}

fn route<B>(request: &Request<B>) -> &str {
    let matched = request.extensions().get::<axum::extract::MatchedPath>();
    matched.map_or("no route", axum::extract::MatchedPath::as_str)
}

/// Adds the layers of every response, pages included; the first one sees the request first and the response last. They
/// are combined into one layer, because a router boxes each of its layers for each request.
pub fn with_layers<L>(router: Router, inner: L) -> Router
where
    L: Layer<Route> + Clone + Send + Sync + 'static,
    L::Service:
        Service<extract::Request, Response = Response, Error = Infallible> + Clone + Send + Sync + 'static,
    <L::Service as Service<extract::Request>>::Future: Send + 'static,
{
    router.layer((
        MapRequestLayer::new(request_id::remove_invalid),
        SetRequestIdLayer::new(REQUEST_ID, RandomId),
        // Failures are logged where they occur; a refusal during shutdown is not a failure.
        TraceLayer::new_for_http()
            .make_span_with(span)
            .on_failure(DefaultOnFailure::new().level(tracing::Level::DEBUG)),
        PropagateRequestIdLayer::new(REQUEST_ID),
        CatchPanicLayer::custom(problem::from_panic),
        MapResponseLayer::new(security_headers::add),
        inner,
    ))
}
