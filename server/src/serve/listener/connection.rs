//! One connection, from accept to close.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::body::{Body, HttpBody as _};
use axum::extract::ConnectInfo;
use axum::http::{HeaderValue, Request, Response, header};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use super::HttpService;
use super::body_timeout::{EventStreamBody, Timed, Unread};
use super::idle_timeout::{IdleTracker, TrackedIo};
use super::limits::{HEADER_BYTES_MAX, Limits, STREAMS_MAX};
use crate::http::auth::{OverTls, is_event_stream};
use runtime::clock::Clock;

/// HSTS for two years, as browsers recommend. Without subdomains, which may not be ours.
const STAY_WITH_HTTPS: HeaderValue = HeaderValue::from_static("max-age=63072000");

/// Shared by all connections.
pub(super) struct Shared<A> {
    pub(super) service: A,
    pub(super) tls: Option<TlsAcceptor>,
    pub(super) limits: Limits,
    pub(super) is_secure: bool,
    pub(super) clock: Clock,
    pub(super) stop: CancellationToken,
}

pub(super) async fn serve_connection<A: HttpService>(
    stream: TcpStream,
    peer: SocketAddr,
    idle: Arc<IdleTracker>,
    shared: Arc<Shared<A>>,
) {
    // Events are small and must not be delayed. A failure only delays them.
    let _set = stream.set_nodelay(true);
    let limits = shared.limits;
    let stream = TrackedIo {
        inner: stream,
        idle: idle.clone(),
    };
    let exchange = async {
        match &shared.tls {
            None => serve_http(stream, peer, &shared, &idle, false).await,
            Some(acceptor) => match acceptor.accept(stream).await {
                Ok(stream) => serve_http(stream, peer, &shared, &idle, true).await,
                Err(error) => tracing::debug!("a TLS handshake failed: {error}"),
            },
        }
    };
    tokio::select! {
        () = exchange => {}
        () = idle.silent(&limits) => tracing::debug!("an inactive connection was closed"),
        () = idle.closed() => tracing::debug!("an idle connection was closed to admit another"),
    }
}

async fn serve_http<S, A>(
    stream: S,
    peer: SocketAddr,
    shared: &Shared<A>,
    idle: &Arc<IdleTracker>,
    is_tls: bool,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    A: HttpService,
{
    let (limits, is_secure) = (shared.limits, shared.is_secure);
    let service = service_fn(|request: Request<Incoming>| {
        let busy = idle.request();
        // A client with `Expect: 100-continue` does not send the body after a refusal.
        let mut unread = None;
        let is_sent = !request.headers().contains_key(header::EXPECT);
        let mut request = request.map(|body| match body.is_end_stream() {
            true => Body::empty(),
            false => {
                let slot = Arc::<Unread>::default();
                unread = Some(slot.clone()).filter(|_| is_sent);
                Body::new(Timed::new(body, limits.body_max, slot))
            }
        });
        request.extensions_mut().insert(ConnectInfo(peer));
        if is_tls {
            request.extensions_mut().insert(OverTls);
        }
        let answer = shared.service.clone().call(request);
        async move {
            let mut answer: Response<Body> = answer.await?;
            if let Some(unread) = unread {
                unread.drain().await;
            }
            if is_event_stream(&answer) {
                answer = answer.map(|body| Body::new(EventStreamBody::new(body, busy.stream())));
            }
            drop(busy);
            if is_secure {
                let headers = answer.headers_mut();
                headers.insert(header::STRICT_TRANSPORT_SECURITY, STAY_WITH_HTTPS);
            }
            Ok::<_, Infallible>(answer)
        }
    });
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().max_buf_size(HEADER_BYTES_MAX as usize);
    builder
        .http2()
        .max_header_list_size(HEADER_BYTES_MAX)
        .max_concurrent_streams(STREAMS_MAX);
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = shared.stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        // Usually a client that disconnected.
        tracing::debug!("a connection ended: {error}");
    }
}
