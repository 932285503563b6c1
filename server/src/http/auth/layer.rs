//! The authentication layer. It is not made by `axum::middleware::from_fn`, which would box the service behind it twice for each
//! request.

use std::convert::Infallible;
use std::task::{Context, Poll};

use axum::extract::Request;
use axum::response::Response;
use futures::future::BoxFuture;
use tower::util::ServiceExt as _;
use tower::{Layer, Service};

use crate::http::state::AppState;

/// The service behind the authentication layer.
pub(super) trait Next: Send {
    fn answer(self, request: Request) -> impl Future<Output = Response> + Send;
}

impl<S> Next for S
where
    S: Service<Request, Response = Response, Error = Infallible> + Send,
    S::Future: Send,
{
    async fn answer(self, request: Request) -> Response {
        match self.oneshot(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        }
    }
}

/// Puts the authentication layer before every route of a router.
#[derive(Clone)]
pub struct AuthLayer(pub AppState);

impl<S> Layer<S> for AuthLayer {
    type Service = Guarded<S>;

    fn layer(&self, inner: S) -> Guarded<S> {
        Guarded {
            state: self.0.clone(),
            inner,
        }
    }
}

#[derive(Clone)]
pub struct Guarded<S> {
    state: AppState,
    inner: S,
}

impl<S> Service<Request> for Guarded<S>
where
    S: Service<Request, Response = Response, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
{
    type Response = Response;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        // The inner service is polled once the request is admitted.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let (state, next) = (self.state.clone(), self.inner.clone());
        Box::pin(async move { Ok(super::guarded(state, request, next).await) })
    }
}
