//! The direct path of acquire, renew and release, which lease clients call most. It bypasses the router and its layers, which box
//! each request a dozen times.
//!
//! **Invariant:** only a request that the router would admit takes the direct path, where it gets the same response. The router
//! serves every other request.

use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::task::{Context as TaskContext, Poll};

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderValue, Method};
use axum::response::{IntoResponse as _, Response};
use axum::routing::future::RouteFuture;
use futures::FutureExt as _;
use futures::future::{BoxFuture, Either};
use tower::Service;
use tracing::level_filters::LevelFilter;

use super::context::Context;
use super::{acquire, release, renew};
use crate::http::auth::SessionGuard;
use crate::http::auth::route_permissions::{self, Route};
use crate::http::request_id::{self, REQUEST_ID};
use crate::http::state::AppState;
use crate::http::{problem, security_headers};
use domain::lease::LeaseId;
use runtime::clock::Stopwatch;
use runtime::telemetry::instruments;

/// A router with the direct path before it.
#[derive(Clone)]
pub struct WithDirectLeases {
    state: AppState,
    router: Router,
}

impl WithDirectLeases {
    pub const fn new(state: AppState, router: Router) -> Self {
        Self { state, router }
    }

    fn admit(&self, request: &mut Request) -> Option<AdmittedCall> {
        // The router makes the spans, and its layers log each request.
        if LevelFilter::current() >= LevelFilter::DEBUG {
            return None;
        }
        let call = LeaseCall::parse(request.method(), request.uri().path())?;
        let watch = Stopwatch::start();
        let request_id = request_id::ensure(request.headers_mut());
        let route = call.table_row();
        let guard = self.state.auth.admit_token(request, route)?;
        Some(AdmittedCall {
            state: self.state.clone(),
            call,
            route,
            guard,
            request_id,
            watch,
        })
    }
}

impl Service<Request> for WithDirectLeases {
    type Response = Response;
    type Error = Infallible;
    type Future = Either<BoxFuture<'static, Result<Response, Infallible>>, RouteFuture<Infallible>>;

    fn poll_ready(&mut self, _: &mut TaskContext<'_>) -> Poll<Result<(), Infallible>> {
        // A router is always ready.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request) -> Self::Future {
        match self.admit(&mut request) {
            Some(call) => Either::Left(Box::pin(async move { Ok(call.answer(request).await) })),
            None => Either::Right(self.router.call(request)),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum LeaseCall {
    Acquire,
    Renew(String),
    Release(String),
}

impl LeaseCall {
    /// `None` for another request, or an invalid lease id.
    fn parse(method: &Method, path: &str) -> Option<Self> {
        let rest = path.strip_prefix("/v1/locks/")?;
        if *method == Method::POST && rest == "acquire" {
            return Some(Self::Acquire);
        }
        let (id, make): (_, fn(String) -> Self) = match *method {
            Method::POST => (rest.strip_suffix("/renew")?, Self::Renew),
            Method::DELETE => (rest, Self::Release),
            _ => return None,
        };
        LeaseId::parse(id).map(|_| make(id.to_owned()))
    }

    fn table_row(&self) -> Route {
        let (method, pattern) = match self {
            Self::Acquire => (&Method::POST, "/v1/locks/acquire"),
            Self::Renew(_) => (&Method::POST, "/v1/locks/{leaseId}/renew"),
            Self::Release(_) => (&Method::DELETE, "/v1/locks/{leaseId}"),
        };
        route_permissions::find(method, Some(pattern))
    }

    async fn run(self, state: &AppState, context: Context, body: Body) -> Response {
        let service = State(state.leases.clone());
        match self {
            Self::Acquire => acquire::acquire(service, context, body).await.into_response(),
            Self::Renew(id) => renew::renew(service, context, Ok(Path(id)), body)
                .await
                .into_response(),
            Self::Release(id) => release::release(service, context, Ok(Path(id)))
                .await
                .into_response(),
        }
    }
}

/// A call with a token that allows it.
struct AdmittedCall {
    state: AppState,
    call: LeaseCall,
    route: Route,
    guard: SessionGuard,
    request_id: HeaderValue,
    watch: Stopwatch,
}

impl AdmittedCall {
    async fn answer(self, request: Request) -> Response {
        let (parts, body) = request.into_parts();
        let context = Context {
            caller: self.guard.caller(),
            guard: Some(self.guard),
            headers: parts.headers,
        };
        let answer = AssertUnwindSafe(self.call.run(&self.state, context, body)).catch_unwind();
        let mut response = match answer.await {
            Ok(response) => {
                let (method, pattern) = (route_permissions::method_of(&parts.method), self.route.pattern);
                let status = response.status().as_u16();
                instruments().request(method, pattern, status, self.watch.seconds());
                security_headers::add(response)
            }
            Err(panic) => problem::from_panic(panic),
        };
        response
            .headers_mut()
            .entry(REQUEST_ID)
            .or_insert(self.request_id);
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_acquire_renew_and_release_go_directly() {
        // Fails if an escape, another segment or another method bypasses the router.
        let id = LeaseId::from_parts(1_700_000_000_000, [7; 10]).to_string();
        let call = |method, path: &str| LeaseCall::parse(&method, path);
        assert_eq!(call(Method::POST, "/v1/locks/acquire"), Some(LeaseCall::Acquire));
        assert_eq!(
            call(Method::POST, &format!("/v1/locks/{id}/renew")),
            Some(LeaseCall::Renew(id.clone()))
        );
        assert_eq!(
            call(Method::DELETE, &format!("/v1/locks/{id}")),
            Some(LeaseCall::Release(id.clone()))
        );
        for (method, path) in [
            (Method::GET, format!("/v1/locks/{id}")),
            (Method::PUT, format!("/v1/locks/{id}/renew")),
            (Method::DELETE, "/v1/locks/acquire".to_owned()),
            (Method::DELETE, format!("/v1/locks/{id}/")),
            (Method::DELETE, format!("/v1/locks/%30{}", &id[1..])),
            (Method::POST, "/v1/locks/acquire/".to_owned()),
            (Method::POST, "/v1/locks/batch".to_owned()),
            (Method::POST, format!("/v1/locks//{id}/renew")),
            (Method::POST, format!("/v2/locks/{id}/renew")),
        ] {
            assert_eq!(call(method.clone(), &path), None, "{method} {path}");
        }
    }

    #[test]
    fn each_call_has_its_row_in_the_table() {
        // Fails if the permission of a renamed route is not found: no request would go directly.
        let id = String::new;
        for call in [
            LeaseCall::Acquire,
            LeaseCall::Renew(id()),
            LeaseCall::Release(id()),
        ] {
            let route = call.table_row();
            assert!(route.is_known && route.access.is_some(), "{call:?}");
        }
    }
}
