//! The lease API: `/v1/locks`, `/v1/resources`, `/v1/fencing`. Handlers parse, call the service, answer.
//!
//! The authentication layer puts a [`SessionGuard`](crate::http::auth::SessionGuard) into the extensions. Without that layer
//! a [`LeaseCaller`](lease::LeaseCaller) may be there; without either everything is open.

pub(in crate::http) mod acquire;
pub(in crate::http) mod batch;
pub(super) mod context;
pub mod direct;
pub mod dto;
pub mod events;
pub(in crate::http) mod read;
pub(in crate::http) mod release;
pub(in crate::http) mod renew;

use std::sync::Arc;

use axum::Router;
use tower::layer::util::Identity;
use utoipa::OpenApi as _;
use utoipa_axum::router::OpenApiRouter;

use super::routes;
use lease::LeaseService;

/// The lease API alone, without authentication: for tests of the lease service.
pub fn standalone(service: Arc<LeaseService>) -> Router {
    let api = OpenApiRouter::with_openapi(crate::http::openapi::Description::openapi());
    let (router, description) = routes::mount_lease(api).with_state(service).split_for_parts();
    let description = Arc::new(description);
    let described = axum::routing::get(move || {
        let description = description.clone();
        async move { axum::Json((*description).clone()) }
    });
    let router = router
        .route("/v1/openapi.json", described)
        .fallback(crate::http::problem::no_such_route)
        .method_not_allowed_fallback(crate::http::problem::no_such_method);
    super::with_layers(router, Identity::new())
}
