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
mod receiver_pages;
mod receivers;
pub mod sessions;
pub mod settings;
pub mod sign_in;
pub mod state;
mod tiers;
pub mod tokens;
pub mod unlock;
mod unlock_pages;
pub mod wire;

use std::sync::Arc;

use axum::Router;
use axum::http::{HeaderName, HeaderValue, Request, header};
use domain::hex;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::request_id::{MakeRequestId, PropagateRequestIdLayer, RequestId, SetRequestIdLayer};
use tower_http::set_header::SetResponseHeaderLayer;
use tower_http::trace::{DefaultOnFailure, TraceLayer};
use utoipa::OpenApi as _;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::lease::LeaseService;
use crate::telemetry;

pub use audit::Desk;
pub use settings::Settings;
pub use state::{AppState, ConsoleFor};

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// A request that brought no id of its own gets 16 random bytes as hex.
#[derive(Clone, Copy)]
struct RandomId;

impl MakeRequestId for RandomId {
    fn make_request_id<B>(&mut self, _: &Request<B>) -> Option<RequestId> {
        let id = hex::text(&rand::random::<[u8; 16]>());
        HeaderValue::try_from(id).ok().map(RequestId::new)
    }
}

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
        .layer(SetResponseHeaderLayer::if_not_present(
            header::CACHE_CONTROL,
            HeaderValue::from_static("no-store"),
        ))
}

/// Everything behind one guard, with the pages of signing in, of forced unlocks, of the record and of the settings.
pub fn guarded(router: Router, desk: Arc<Desk>) -> Router {
    let (settings, unlocks) = (desk.settings.clone(), desk.unlocks.clone());
    let gate = settings.gate.clone();
    let router = router
        .merge(sign_in::router(gate.clone()))
        .merge(unlock_pages::router(unlocks.clone(), settings.clone()))
        .merge(settings::tiers::router(unlocks, settings.clone()))
        .merge(receiver_pages::router(desk.clone()))
        .merge(alerts_pages::router(desk.alerts.clone(), settings.clone()))
        .merge(audit::pages(desk))
        .merge(settings::router(settings))
        .layer(axum::middleware::from_fn_with_state(
            Arc::new(gate),
            access::guard,
        ));
    with_layers(router)
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
/// of five: a router puts each of its layers into a box of its own for each request.
pub fn with_layers(router: Router) -> Router {
    router.layer((
        SetRequestIdLayer::new(REQUEST_ID, RandomId),
        // What fails says why where it fails; a refusal while the server ends is no failure.
        TraceLayer::new_for_http()
            .make_span_with(span)
            .on_failure(DefaultOnFailure::new().level(tracing::Level::DEBUG)),
        PropagateRequestIdLayer::new(REQUEST_ID),
        SetResponseHeaderLayer::if_not_present(
            header::X_CONTENT_TYPE_OPTIONS,
            HeaderValue::from_static("nosniff"),
        ),
        CatchPanicLayer::custom(problem::from_panic),
    ))
}
