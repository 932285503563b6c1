//! Our own TCP fault proxy: sits between a client and a server and injects link faults while both run.
//!
//! A link that is held loses nothing: as on a real network, what was sent arrives when the link heals (TCP sends it
//! again), unless one side has given up by then. So "the answer is lost after the commit" is
//! [`Link::OnlyToServer`] until the client has given up.
//!
//! Bounded: a maximum number of connections, 16 KiB in each direction of each. Stops with its value; no task outlives it.

mod connection;
mod link;
mod traffic;

pub(crate) use link::Link;
pub(crate) use traffic::Traffic;

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use ::testkit::free_port;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{mpsc, oneshot, watch},
    task::{JoinHandle, JoinSet},
};

const CONNECTIONS_MAX: usize = 512;
const PORT_ATTEMPTS: u32 = 5;
const AGAIN_ATTEMPTS: u32 = 100;
const AGAIN_PAUSE: Duration = Duration::from_millis(20);

/// A running proxy on 127.0.0.1. It owns its port for its whole lifetime, also while the link is cut.
#[derive(Debug)]
pub(crate) struct Proxy {
    address: SocketAddr,
    orders: mpsc::Sender<Order>,
    traffic: Arc<Traffic>,
    acceptor: JoinHandle<()>,
}

type Order = (Link, oneshot::Sender<io::Result<()>>);

impl Proxy {
    /// In front of a server on this machine's loopback.
    pub(crate) async fn start(target_port: u16) -> Self {
        Self::start_with(target_port, CONNECTIONS_MAX).await
    }

    /// As [`start`](Self::start), with another bound on open connections.
    pub(crate) async fn start_with(target_port: u16, connections_max: usize) -> Self {
        let listener = listen().await.unwrap();
        let address = listener.local_addr().unwrap();
        let (orders, inbox) = mpsc::channel(1);
        let traffic = Arc::new(Traffic::default());
        let acceptor = Acceptor {
            address,
            target: (Ipv4Addr::LOCALHOST, target_port).into(),
            connections_max,
            link: watch::Sender::new(Link::Pass),
            traffic: Arc::clone(&traffic),
            connections: JoinSet::new(),
        };
        #[expect(
            clippy::disallowed_methods,
            reason = "a test's own task, aborted when the proxy is dropped"
        )]
        let acceptor = tokio::spawn(acceptor.run(Some(listener), inbox));
        Self {
            address,
            orders,
            traffic,
            acceptor,
        }
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn traffic(&self) -> &Traffic {
        &self.traffic
    }

    /// Changes the link. In force when this returns; after [`Link::Cut`] no connection is open any more.
    pub(crate) async fn set(&self, link: Link) {
        let (done, answer) = oneshot::channel();
        self.orders
            .send((link, done))
            .await
            .expect("the proxy's acceptor has ended");
        answer
            .await
            .expect("the proxy's acceptor has ended")
            .expect("listen again on the proxy's port");
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.acceptor.abort();
    }
}

async fn listen() -> io::Result<TcpListener> {
    let mut attempt = 1;
    loop {
        match TcpListener::bind((Ipv4Addr::LOCALHOST, free_port()?)).await {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && attempt < PORT_ATTEMPTS => attempt += 1,
            other => return other,
        }
    }
}

/// While the link was cut the port was free: another test that searches for a free one may be probing it right now.
async fn listen_again(address: SocketAddr) -> io::Result<TcpListener> {
    let mut attempt = 1;
    loop {
        match TcpListener::bind(address).await {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && attempt < AGAIN_ATTEMPTS => {
                attempt += 1;
                // Pause before another attempt to listen.
                tokio::time::sleep(AGAIN_PAUSE).await;
            }
            other => return other,
        }
    }
}

/// Owns the listener and every connection's task.
struct Acceptor {
    address: SocketAddr,
    target: SocketAddr,
    connections_max: usize,
    link: watch::Sender<Link>,
    traffic: Arc<Traffic>,
    connections: JoinSet<()>,
}

impl Acceptor {
    async fn run(mut self, mut listener: Option<TcpListener>, mut orders: mpsc::Receiver<Order>) {
        loop {
            tokio::select! {
                order = orders.recv() => {
                    let Some((link, done)) = order else { return };
                    let _ = done.send(self.apply(link, &mut listener).await);
                }
                client = accept(listener.as_ref()) => self.admit(client),
                Some(_) = self.connections.join_next() => {}
            }
        }
    }

    async fn apply(&mut self, link: Link, listener: &mut Option<TcpListener>) -> io::Result<()> {
        if link == Link::Cut {
            listener.take();
            self.link.send_replace(link);
            while self.connections.join_next().await.is_some() {}
        } else {
            if listener.is_none() {
                *listener = Some(listen_again(self.address).await?);
            }
            self.link.send_replace(link);
        }
        Ok(())
    }

    fn admit(&mut self, client: TcpStream) {
        if self.connections.len() >= self.connections_max {
            self.traffic.turned_away.fetch_add(1, Ordering::Relaxed);
            return;
        }
        self.traffic.accepted.fetch_add(1, Ordering::Relaxed);
        self.connections.spawn(connection::carry(
            client,
            self.target,
            self.link.clone(),
            Arc::clone(&self.traffic),
        ));
    }
}

async fn accept(listener: Option<&TcpListener>) -> TcpStream {
    loop {
        match listener {
            None => std::future::pending().await,
            // An error here is about one connection (or a lack of descriptors, which passes): go on.
            Some(listener) => match listener.accept().await {
                Ok((client, _)) => return client,
                Err(_) => tokio::task::yield_now().await,
            },
        }
    }
}
