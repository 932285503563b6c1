//! The listener: accepts connections, terminates TLS if configured, and limits the cost of each connection.
//!
//! Owns connections from accept to close. Knows no route; requests are authorized behind it.
//!
//! **Invariants:** a connection that sends no request, stalls in its headers, sends its body too slowly or does not
//! read its response is closed; the number of connections is limited; accepting never waits for a slot, so no source
//! blocks another: `connection_slots` decides which connection is closed.

mod body_timeout;
mod connection;
mod connection_slots;
mod idle_timeout;
pub mod limits;
pub mod tls;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::extract::Request;
use axum::response::Response;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinError, JoinSet};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tower::Service;

use self::connection::Shared;
use self::connection_slots::Places;
use self::idle_timeout::IdleTracker;
use self::limits::Limits;
use config::Network;
use runtime::clock::Clock;
use runtime::tasks::PANICS;

/// Pause after a failed accept, for example with too many open files.
const BREATH: Duration = Duration::from_secs(1);

/// The listening socket with its limits.
pub struct Listener {
    pub listener: TcpListener,
    /// `None`: plain HTTP.
    pub tls: Option<TlsAcceptor>,
    pub limits: Limits,
    /// Networks whose sources may hold any number of connections.
    pub exempt: Vec<Network>,
    /// Declared proxies: exempt too, and the last to lose connections.
    pub proxies: Vec<Network>,
    /// The public URL is HTTPS: responses carry HSTS.
    pub is_secure: bool,
    pub clock: Clock,
}

/// The service behind a listener: a router, or a service in front of one.
pub trait HttpService:
    Service<Request, Response = Response, Error = Infallible, Future: Send + 'static>
    + Clone
    + Send
    + Sync
    + 'static
{
}

impl<S> HttpService for S where
    S: Service<Request, Response = Response, Error = Infallible, Future: Send + 'static>
        + Clone
        + Send
        + Sync
        + 'static
{
}

impl Listener {
    /// Serves until `stop`, then until open connections have ended; drop to end earlier.
    pub async fn serve(self, service: impl HttpService, stop: CancellationToken) {
        let places = Places::new(self.limits, self.exempt, self.proxies);
        let mut open = JoinSet::new();
        let shared = Arc::new(Shared {
            service,
            tls: self.tls,
            limits: self.limits,
            is_secure: self.is_secure,
            clock: self.clock,
            stop: stop.clone(),
        });
        loop {
            let accepted = tokio::select! {
                () = stop.cancelled() => break,
                Some(ended) = open.join_next() => {
                    log_end(ended);
                    continue;
                }
                accepted = accept(&self.listener) => accepted,
            };
            let Some((stream, peer)) = accepted else {
                continue;
            };
            let idle = IdleTracker::new(shared.clock.clone());
            let Some(place) = places.admit(peer.ip(), &idle) else {
                tracing::debug!(
                    "a connection was refused: its source address has reached its connection limit"
                );
                continue;
            };
            let shared = shared.clone();
            open.spawn(async move {
                connection::serve_connection(stream, peer, idle, shared).await;
                drop(place);
            });
        }
        // Stops accepting.
        drop(self.listener);
        while let Some(ended) = open.join_next().await {
            log_end(ended);
        }
    }
}

async fn accept(listener: &TcpListener) -> Option<(TcpStream, SocketAddr)> {
    match listener.accept().await {
        Ok(accepted) => Some(accepted),
        Err(error) => {
            use std::io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
            let is_theirs = matches!(
                error.kind(),
                ConnectionAborted | ConnectionRefused | ConnectionReset
            );
            if !is_theirs {
                tracing::error!("cannot accept connections: {error}");
                tokio::time::sleep(BREATH).await;
            }
            None
        }
    }
}

fn log_end(ended: Result<(), JoinError>) {
    if let Err(error) = ended
        && error.is_panic()
    {
        PANICS.fetch_add(1, Ordering::Relaxed);
        tracing::error!("a connection panicked: {error}");
    }
}
