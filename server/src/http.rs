//! Every route, in one file. Handlers parse, call the console, answer; nothing here knows a backend.

pub mod access;
mod alerts;
mod alerts_pages;
pub mod api;
pub mod audit;
pub mod contention;
mod docs;
pub mod events;
pub mod fencing;
pub mod fencing_page;
mod form_page;
pub mod health;
pub mod inventory;
pub mod lease;
mod metrics;
pub mod pages;
pub mod people;
pub mod problem;
mod prove;
mod receiver_pages;
mod receivers;
mod request_id;
pub mod sessions;
pub mod settings;
pub mod sign_in;
pub mod state;
mod tiers;
pub mod tokens;
pub mod unlock;
mod unlock_pages;
pub mod wire;

use std::convert::Infallible;
use std::sync::Arc;

use axum::http::{HeaderValue, Request, header};
use axum::response::Response;
use axum::routing::Route;
use axum::{Router, extract};
use tower::util::{MapRequestLayer, MapResponseLayer};
use tower::{Layer, Service};
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::request_id::{PropagateRequestIdLayer, SetRequestIdLayer};
use tower_http::trace::{DefaultOnFailure, TraceLayer};
use utoipa::OpenApi as _;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use self::access::Guard;
use self::request_id::{REQUEST_ID, RandomId};
use crate::lease::LeaseService;
use crate::telemetry;

pub use audit::Desk;
pub use settings::Settings;
pub use state::{AppState, ConsoleFor};

/// The JSON API with its own description at `/v1/openapi.json`, and the health checks.
pub fn api(state: AppState, leases: Arc<LeaseService>, desk: Arc<Desk>) -> Router {
    let (settings, notifier) = (desk.settings.clone(), desk.notifier.clone());
    let (router, description) = OpenApiRouter::with_openapi(api::Description::openapi())
        .merge(lease::router(leases))
        .merge(unlock::router(desk.unlocks.clone()))
        .merge(tiers::router(desk.unlocks.clone()))
        .merge(alerts::router(&desk))
        .merge(audit::api(desk))
        .merge(people::router(settings.clone()))
        .merge(tokens::router(settings.clone()))
        .merge(sessions::router(settings))
        .merge(receivers::router(notifier))
        .routes(routes!(inventory::list))
        .routes(routes!(inventory::detail))
        .routes(routes!(inventory::prefixes))
        .routes(routes!(inventory::backends))
        .merge(contention::api())
        .routes(routes!(events::stream))
        .routes(routes!(health::alive))
        .routes(routes!(health::ready))
        .routes(routes!(metrics::scrape))
        .split_for_parts();
    let docs = docs::router(&description);
    let description = Arc::new(description);
    router
        .merge(docs)
        .route(
            "/v1/openapi.json",
            axum::routing::get(move || {
                let description = description.clone();
                async move { axum::Json((*description).clone()) }
            }),
        )
        .route("/v1/{*rest}", axum::routing::any(problem::no_such_route))
        // The wildcard wants something after the slash.
        .route("/v1/", axum::routing::any(problem::no_such_route))
        .route("/v1", axum::routing::any(problem::no_such_route))
        .method_not_allowed_fallback(problem::no_such_method)
        .with_state(state)
}

/// Everything behind one guard, with the pages of signing in, of forced unlocks, of the record and of the settings.
pub fn guarded(router: Router, desk: Arc<Desk>) -> Router {
    let (settings, unlocks) = (desk.settings.clone(), desk.unlocks.clone());
    let gate = settings.gate.clone();
    let guard = Guard(Arc::new(gate.clone()));
    let router = router
        .merge(sign_in::router(gate))
        .merge(unlock_pages::router(unlocks.clone(), settings.clone()))
        .merge(settings::tiers::router(unlocks, settings.clone()))
        .merge(receiver_pages::router(desk.clone()))
        .merge(alerts_pages::router(desk.alerts.clone(), settings.clone()))
        .merge(audit::pages(desk))
        .merge(settings::router(settings));
    with_layers(router, guard)
}

/// What holds for every answer that does not say otherwise.
fn settled(mut answer: Response) -> Response {
    let headers = answer.headers_mut();
    let sure = [
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::CACHE_CONTROL, "no-store"),
    ];
    for (name, value) in sure {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
    answer
}

/// Without the query: one-time links and the codes of identity providers stand there.
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

/// What every answer goes through, pages included; the first sees the request first and the answer last. One layer made
/// of all: a router puts each of its layers into a box of its own for each request.
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
        // What fails says why where it fails; a refusal while the server ends is no failure.
        TraceLayer::new_for_http()
            .make_span_with(span)
            .on_failure(DefaultOnFailure::new().level(tracing::Level::DEBUG)),
        PropagateRequestIdLayer::new(REQUEST_ID),
        CatchPanicLayer::custom(problem::from_panic),
        MapResponseLayer::new(settled),
        inner,
    ))
}
