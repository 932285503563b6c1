//! The lease API: `/v1/locks`, `/v1/resources`, `/v1/fencing`. Handlers parse, call the service, answer.
//!
//! The guard puts a [`Standing`](super::access::Standing) into the request's extensions. Where there is no guard, whoever
//! serves may put a [`Caller`](crate::lease::Caller) there; without one everything is open.

mod acquire;
pub(super) mod body;
pub(super) mod context;
pub mod events;
mod read;
mod release;
mod renew;
pub mod wire;

use std::sync::Arc;

use axum::Router;
use tower::layer::util::Identity;
use utoipa::OpenApi as _;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::lease::LeaseService;

/// All nine calls, with their description, for any outer state.
pub fn router<S: Clone + Send + Sync + 'static>(service: Arc<LeaseService>) -> OpenApiRouter<S> {
    OpenApiRouter::new()
        .routes(routes!(acquire::acquire))
        .routes(routes!(renew::renew))
        .routes(routes!(read::lease, release::release))
        .routes(routes!(read::list))
        .routes(routes!(read::resource))
        .routes(routes!(events::events))
        .routes(routes!(super::fencing::check))
        .routes(routes!(super::fencing::report))
        .with_state(service)
}

/// The lease API alone, with its description and everything that answers go through.
pub fn standalone(service: Arc<LeaseService>) -> Router {
    let api = OpenApiRouter::with_openapi(super::api::Description::openapi()).merge(router(service));
    let (router, description) = api.split_for_parts();
    let description = Arc::new(description);
    let described = axum::routing::get(move || {
        let description = description.clone();
        async move { axum::Json((*description).clone()) }
    });
    let router = router
        .route("/v1/openapi.json", described)
        .fallback(super::problem::no_such_route)
        .method_not_allowed_fallback(super::problem::no_such_method);
    super::with_layers(router, Identity::new())
}
