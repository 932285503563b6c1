//! Every route, in one file. Handlers parse, call the console, answer; nothing here knows a backend.

pub mod access;
pub mod api;
pub mod events;
pub mod fencing;
mod form_page;
pub mod health;
pub mod inventory;
pub mod lease;
pub mod pages;
pub mod people;
pub mod problem;
pub mod sessions;
pub mod settings;
pub mod sign_in;
pub mod state;
pub mod tokens;
pub mod unlock;
pub mod wire;

use std::sync::Arc;

use axum::Router;
use axum::http::{HeaderName, HeaderValue, Request, header};
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::request_id::{MakeRequestId, PropagateRequestIdLayer, RequestId, SetRequestIdLayer};
use tower_http::set_header::SetResponseHeaderLayer;
use tower_http::trace::{DefaultOnFailure, TraceLayer};
use utoipa::OpenApi as _;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::lease::LeaseService;
use crate::unlock::Unlocks;

pub use settings::Settings;
pub use state::{AppState, ConsoleFor};

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// A request that brought no id of its own gets 16 random bytes as hex.
#[derive(Clone, Copy)]
struct RandomId;

impl MakeRequestId for RandomId {
    fn make_request_id<B>(&mut self, _: &Request<B>) -> Option<RequestId> {
        let id = format!("{:032x}", rand::random::<u128>());
        HeaderValue::try_from(id).ok().map(RequestId::new)
    }
}

/// The JSON API with its own description at `/v1/openapi.json`, and the health checks.
pub fn api(
    state: AppState,
    leases: Arc<LeaseService>,
    unlocks: Arc<Unlocks>,
    settings: Arc<Settings>,
) -> Router {
    let (router, description) = OpenApiRouter::with_openapi(api::Description::openapi())
        .merge(lease::router(leases))
        .merge(unlock::router(unlocks))
        .merge(people::router(settings.clone()))
        .merge(tokens::router(settings.clone()))
        .merge(sessions::router(settings))
        .routes(routes!(inventory::list))
        .routes(routes!(inventory::detail))
        .routes(routes!(inventory::prefixes))
        .routes(routes!(inventory::backends))
        .routes(routes!(events::stream))
        .routes(routes!(health::alive))
        .routes(routes!(health::ready))
        .split_for_parts();
    let description = Arc::new(description);
    router
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

/// Everything behind one guard, with the pages of signing in and of the settings.
pub fn guarded(router: Router, settings: Arc<Settings>) -> Router {
    let gate = settings.gate.clone();
    let router = router
        .merge(sign_in::router(gate.clone()))
        .merge(settings::router(settings))
        .layer(axum::middleware::from_fn_with_state(gate, access::guard));
    with_layers(router)
}

/// What every answer goes through, pages included; the first sees the request first and the answer last. One layer made
/// of five: a router puts each of its layers into a box of its own for each request.
pub fn with_layers(router: Router) -> Router {
    router.layer((
        SetRequestIdLayer::new(REQUEST_ID, RandomId),
        // What fails says why where it fails; a refusal while the server ends is no failure.
        TraceLayer::new_for_http().on_failure(DefaultOnFailure::new().level(tracing::Level::DEBUG)),
        PropagateRequestIdLayer::new(REQUEST_ID),
        SetResponseHeaderLayer::if_not_present(
            header::X_CONTENT_TYPE_OPTIONS,
            HeaderValue::from_static("nosniff"),
        ),
        CatchPanicLayer::custom(problem::from_panic),
    ))
}
