//! Mounts the pages: server rendering, the pages' own server functions, the static site, and their headers.
//!
//! The pages get the console through Leptos' context and nothing else. Deliberately knows no data.

pub mod accept;
pub(in crate::http) mod alerts;
pub(in crate::http) mod audit;
pub(in crate::http) mod contention;
pub(in crate::http) mod docs;
pub(in crate::http) mod fencing;
pub(in crate::http) mod reauthenticate;
pub(in crate::http) mod receivers;
pub(super) mod response;
pub(in crate::http) mod settings;
pub(in crate::http) mod sign_in;
pub mod site;
pub(in crate::http) mod unlock;

use app::api::error::SetStatus;
use app::app::{AlertsOverdue, App, MayAudit, WhoLooks, shell};
use axum::Router;
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::map_response;
use axum::routing::get;
use leptos::nonce::use_nonce;
use leptos::prelude::{LeptosOptions, provide_context, use_context};
use leptos_axum::{LeptosRoutes, ResponseOptions, generate_route_list, render_app_async_with_context};
use std::sync::Arc;
use tower_http::CompressionLevel;
use tower_http::compression::CompressionLayer;

use domain::access::Permission;

use crate::http::security_headers;
use crate::http::state::ConsoleFor;
use crate::identity::Principal;

/// All pages, ready to be merged with the API.
pub fn router(console: ConsoleFor) -> Router {
    let options = LeptosOptions::builder()
        .output_name("leasehold")
        .site_pkg_dir("pkg")
        .build();
    let context = move || {
        // No request exists while the list of routes is built.
        if let Some(parts) = use_context::<Parts>() {
            provide_context(console.from_extensions(&parts.extensions));
            if let Some(who) = parts.extensions.get::<Principal>() {
                provide_context(WhoLooks(who.name().to_owned()));
                if who.alerts_overdue {
                    provide_context(AlertsOverdue);
                }
                if who.may_anywhere(Permission::AuditRead) {
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
        .layer(map_response(security_headers::add_all))
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
    if let Some(policy) = security_headers::policy_with_nonce(&nonce) {
        answer.insert_header(header::CONTENT_SECURITY_POLICY, policy);
    }
}

#[cfg(test)]
mod tests;
