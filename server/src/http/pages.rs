//! Mounts the pages: server rendering, the pages' own server functions, the static site, and their headers.
//!
//! The pages get their ports and the facts of the layout through Leptos' context and nothing else. Deliberately knows no
//! data.

pub mod accept;
pub(in crate::http) mod alerts;
pub(in crate::http) mod audit;
mod caller_data;
pub(in crate::http) mod docs;
pub(in crate::http) mod form_request;
pub mod page_source;
pub(in crate::http) mod reauthenticate;
pub(in crate::http) mod receivers;
pub(super) mod response;
pub(in crate::http) mod settings;
pub(in crate::http) mod sign_in;
pub mod site;
pub(in crate::http) mod tour;
pub(in crate::http) mod unlock;

use app::api::error::SetStatus;
use app::app::{App, PagePath, shell};
use app::session::FirstRender;
use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::{Next, from_fn, map_response};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use futures::FutureExt as _;
use leptos::nonce::use_nonce;
use leptos::prelude::{AnyView, IntoAny as _, LeptosOptions, provide_context, use_context};
use leptos_axum::{LeptosRoutes, ResponseOptions, generate_route_list, render_app_async_with_context};
use runtime::tasks;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;
use tower_http::CompressionLevel;
use tower_http::compression::CompressionLayer;
use tracing::Instrument as _;

use self::page_source::PageSource;
use crate::http::auth::route_permissions::is_normalized;
use crate::http::security_headers;
use crate::http::state::AppState;
use crate::identity::Principal;

/// All pages, ready to be merged with the API.
pub fn router<S: PageSource>(source: S) -> Router {
    let options = options();
    let (context, page) = (context(source.clone()), page());
    let with_facts = from_fn(move |request, next| add_facts(source.clone(), request, next));
    Router::new()
        .route("/pkg/{*file}", get(site::serve))
        .route("/fonts/{*file}", get(site::serve))
        .route("/favicon.svg", get(site::serve))
        .leptos_routes_with_context(&options, generate_route_list(App), context.clone(), page)
        .fallback(render_app_async_with_context(context, page))
        .layer(with_facts)
        .layer(CompressionLayer::new().quality(CompressionLevel::Fastest))
        .layer(map_response(security_headers::add_all))
        .with_state(options)
}

fn options() -> LeptosOptions {
    LeptosOptions::builder()
        .output_name("leasehold")
        .site_pkg_dir(format!("pkg/{}", site::version()))
        .build()
}

fn page() -> impl Fn() -> AnyView + Copy + Send + Sync + 'static {
    || shell(options()).into_any()
}

/// Context of pages and server functions.
fn context<S: PageSource>(source: S) -> impl Fn() + Clone + Send + Sync + 'static {
    move || {
        // No request exists while the list of routes is built.
        if let Some(parts) = use_context::<Parts>() {
            provide_context(source.console(&parts.extensions));
            if let Some(data) = source.page_data(&parts.extensions) {
                provide_context(data);
            }
            if let Some(first) = parts.extensions.get::<FirstRender>() {
                provide_context(first.clone());
            }
            let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
            provide_context(PagePath(path.to_owned()));
        }
        provide_context(SetStatus(Arc::new(set_status)));
        set_policy();
    }
}

/// The facts of the layout, before the page reads its data: what changes in between is announced by the first event.
async fn add_facts<S: PageSource>(source: S, mut request: Request, next: Next) -> Response {
    let path = request.uri().path();
    let is_page = !["/api/", "/pkg/", "/fonts/"]
        .iter()
        .any(|start| path.starts_with(start));
    if !is_page {
        return next.run(request).await;
    }
    if request.extensions().get::<FirstRender>().is_none() {
        let session = source.session(request.extensions()).await;
        request.extensions_mut().insert(FirstRender {
            session,
            ..FirstRender::default()
        });
    }
    to_its_end(next.run(request)).await
}

/// Rendering continues if the browser disconnects: parts of a page are rendered by tasks of their own, which would panic when the
/// page's state is dropped. Requests for data end with their client, and so do their searches and previews.
async fn to_its_end(page: impl Future<Output = Response> + Send + 'static) -> Response {
    let (done, rendered) = tokio::sync::oneshot::channel();
    let page = AssertUnwindSafe(page.in_current_span()).catch_unwind();
    tasks::spawn("page", CancellationToken::new(), async move {
        // Without a browser that waits, the task reports the panic.
        if let Err(Err(panic)) = done.send(page.await) {
            resume_unwind(panic);
        }
    });
    match rendered.await {
        Ok(Ok(response)) => response,
        Ok(Err(panic)) => resume_unwind(panic),
        // The runtime ends.
        Err(_) => StatusCode::SERVICE_UNAVAILABLE.into_response(),
    }
}

/// Renders the page at `path`, given to its user in answer to a form or in place of a page.
pub(in crate::http) async fn render(
    state: &AppState,
    who: &Principal,
    path: &str,
    status: StatusCode,
    first: FirstRender,
) -> Response {
    let session = state.session_of(who).await;
    let mut request = Request::new(Body::empty());
    // A path may contain a decoded id.
    let without_query = path.split('?').next().unwrap_or_default();
    let path = if is_normalized(without_query) { path } else { "/" };
    *request.uri_mut() = path.parse().unwrap_or_default();
    request.extensions_mut().insert(who.clone());
    request.extensions_mut().insert(FirstRender { session, ..first });
    let page = render_app_async_with_context(context(state.clone()), page());
    let mut response = to_its_end(page(request)).await;
    if response.status() == StatusCode::OK {
        *response.status_mut() = status;
    }
    security_headers::add_all(response).await
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
