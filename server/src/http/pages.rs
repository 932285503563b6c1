//! Mounts the pages: server rendering, the pages' own server functions, the static site, and their headers.
//!
//! The pages get the console through Leptos' context and nothing else. Deliberately knows no data.

pub mod accept;
pub mod site;

use app::api::error::SetStatus;
use app::app::{AlertsOverdue, App, MayAudit, WhoLooks, shell};
use axum::Router;
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::map_response;
use axum::response::Response;
use axum::routing::get;
use leptos::nonce::use_nonce;
use leptos::prelude::{LeptosOptions, provide_context, use_context};
use leptos_axum::{LeptosRoutes, ResponseOptions, generate_route_list, render_app_async_with_context};
use std::sync::Arc;
use tower_http::CompressionLevel;
use tower_http::compression::CompressionLayer;

use domain::access::Right;

use super::state::ConsoleFor;
use crate::identity::Who;

/// What holds for every answer of this router that does not say otherwise.
const HEADERS: [(HeaderName, &str); 6] = [
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "same-origin"),
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        "same-origin",
    ),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        "same-origin",
    ),
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; frame-ancestors 'none'",
    ),
    (header::CACHE_CONTROL, "no-store"),
];

/// All pages, ready to be merged with the API.
pub fn router(console: ConsoleFor) -> Router {
    let options = LeptosOptions::builder()
        .output_name("leasehold")
        .site_pkg_dir("pkg")
        .build();
    let context = move || {
        // Without a request, as when the list of routes is made, there is nobody to answer.
        if let Some(parts) = use_context::<Parts>() {
            provide_context(console.of(&parts.extensions));
            if let Some(who) = parts.extensions.get::<Who>() {
                provide_context(WhoLooks(who.name().to_owned()));
                if who.alerts_overdue {
                    provide_context(AlertsOverdue);
                }
                if who.may_anywhere(Right::AuditRead) {
                    provide_context(MayAudit);
                }
            }
        }
        provide_context(SetStatus(Arc::new(set_status)));
        set_policy();
    };
    let page = {
        let options = options.clone();
        move || shell(options.clone())
    };
    Router::new()
        .route("/pkg/{*file}", get(site::serve))
        .route("/fonts/{*file}", get(site::serve))
        .route("/favicon.svg", get(site::serve))
        .leptos_routes_with_context(&options, generate_route_list(App), context.clone(), page.clone())
        .fallback(render_app_async_with_context(context, page))
        .layer(CompressionLayer::new().quality(CompressionLevel::Fastest))
        .layer(map_response(set_headers))
        .with_state(options)
}

/// Status of the answer being made, as pages and server functions set it.
fn set_status(status: u16) {
    if let (Some(answer), Ok(status)) = (use_context::<ResponseOptions>(), StatusCode::from_u16(status)) {
        answer.set_status(status);
        if status == StatusCode::SERVICE_UNAVAILABLE {
            answer.insert_header(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
    }
}

/// Scripts run only with the nonce of this very answer.
fn set_policy() {
    let (Some(answer), Some(nonce)) = (use_context::<ResponseOptions>(), use_nonce()) else {
        return;
    };
    let policy = format!(
        "default-src 'none'; script-src 'self' 'nonce-{nonce}' 'wasm-unsafe-eval'; style-src 'self'; \
         img-src 'self'; font-src 'self'; connect-src 'self'; form-action 'self'; \
         frame-ancestors 'none'; object-src 'none'; base-uri 'none'"
    );
    if let Ok(policy) = HeaderValue::try_from(policy) {
        answer.insert_header(header::CONTENT_SECURITY_POLICY, policy);
    }
}

pub(super) async fn set_headers(mut response: Response) -> Response {
    for (name, value) in HEADERS {
        response
            .headers_mut()
            .entry(name)
            .or_insert(HeaderValue::from_static(value));
    }
    response
}

#[cfg(test)]
mod tests;
