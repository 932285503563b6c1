//! The listener: takes connections, speaks TLS where a certificate is configured, and bounds what each may cost.
//!
//! Owns connections from accept to close. Knows no route: what a request may do is decided behind it.
//!
//! **Invariants:** a connection that sends no request, stalls in its headers, drips its body or does not read its answer
//! is cut; there are never more connections than places; accepting never waits for a place, so no source keeps another out:
//! `places` decides whose connection makes room.

mod body;
mod connection;
pub mod limits;
mod places;
mod pulse;
pub mod tls;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::Router;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinError, JoinSet};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use self::connection::Shared;
use self::limits::Limits;
use self::places::Places;
use self::pulse::Pulse;
use crate::clock::Clock;
use crate::config::Network;
use crate::tasks::PANICS;

/// After an accept that failed for a reason of our own, such as too many open files.
const BREATH: Duration = Duration::from_secs(1);

/// Where people come in.
pub struct Doors {
    pub listener: TcpListener,
    /// Absent: plain HTTP.
    pub tls: Option<TlsAcceptor>,
    pub limits: Limits,
    /// Networks of which a source may hold any number of connections.
    pub exempt: Vec<Network>,
    /// Declared proxies: the same, and the last whose connections are closed for others.
    pub proxies: Vec<Network>,
    /// People come by HTTPS: browsers are told to stay with it.
    pub is_secure: bool,
    pub clock: Clock,
}

impl Doors {
    /// Serves until `stop`, then until what is open has ended; whoever waits no longer drops this.
    pub async fn serve(self, router: Router, stop: CancellationToken) {
        let places = Places::new(self.limits, self.exempt, self.proxies);
        let mut open = JoinSet::new();
        let shared = Arc::new(Shared {
            router,
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
                    note(ended);
                    continue;
                }
                accepted = accept(&self.listener) => accepted,
            };
            let Some((stream, peer)) = accepted else {
                continue;
            };
            let pulse = Pulse::new(shared.clock.clone());
            let Some(place) = places.admit(peer.ip(), &pulse) else {
                tracing::debug!("a connection of a source without a free place is refused");
                continue;
            };
            let shared = shared.clone();
            open.spawn(async move {
                connection::hold(stream, peer, pulse, shared).await;
                drop(place);
            });
        }
        // Nobody is accepted any more.
        drop(self.listener);
        while let Some(ended) = open.join_next().await {
            note(ended);
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
                tracing::error!("cannot take connections: {error}");
                tokio::time::sleep(BREATH).await;
            }
            None
        }
    }
}

fn note(ended: Result<(), JoinError>) {
    if let Err(error) = ended
        && error.is_panic()
    {
        PANICS.fetch_add(1, Ordering::Relaxed);
        tracing::error!("a connection panicked: {error}");
    }
}
