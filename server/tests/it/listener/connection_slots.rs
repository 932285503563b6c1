//! Connections of several sources to a listener with few places, over real sockets: each 127.0.0.x is a source.

use crate::support::aside;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use leasehold::serve::listener::Listener;
use leasehold::serve::listener::limits::Limits;
use runtime::clock::Clock;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio_util::sync::{CancellationToken, DropGuard};

const LIMITS: Limits = Limits {
    connections_max: 6,
    connections_per_source_max: 4,
    first_request_max: Duration::from_secs(60),
    silence_max: Duration::from_secs(60),
    body_max: Duration::from_secs(60),
};
const PATIENCE: Duration = Duration::from_secs(20);

struct Open {
    address: SocketAddr,
    _stop: DropGuard,
}

async fn open() -> Open {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = Router::new()
        .route("/quick", get(|| async { "quick" }))
        .route("/never", get(std::future::pending::<&'static str>));
    let served = Listener {
        listener,
        tls: None,
        limits: LIMITS,
        exempt: Vec::new(),
        proxies: Vec::new(),
        is_secure: false,
        clock: Clock::start(),
    };
    let stop = CancellationToken::new();
    aside(served.serve(router, stop.clone()));
    Open {
        address,
        _stop: stop.drop_guard(),
    }
}

impl Open {
    async fn connect(&self, from: u8) -> TcpStream {
        let socket = TcpSocket::new_v4().unwrap();
        let address = Ipv4Addr::new(127, 0, 0, from);
        socket.bind(SocketAddr::from((address, 0))).unwrap();
        socket.connect(self.address).await.unwrap()
    }

    /// A connection that has had an answer and is idle since.
    async fn idle(&self, from: u8) -> TcpStream {
        let mut stream = self.connect(from).await;
        assert!(is_answered(&mut stream).await, "127.0.0.{from} gets no answer");
        // The next one is idle for less long, by the clock of the listener.
        tokio::time::sleep(Duration::from_millis(5)).await;
        stream
    }

    /// A connection with a request in progress.
    async fn busy(&self, from: u8) -> TcpStream {
        let mut stream = self.idle(from).await;
        stream
            .write_all(b"GET /never HTTP/1.1\r\nhost: x\r\n\r\n")
            .await
            .unwrap();
        stream
    }
}

/// Whether a request on this connection is answered; otherwise it is closed.
async fn is_answered(stream: &mut TcpStream) -> bool {
    let sent = stream.write_all(b"GET /quick HTTP/1.1\r\nhost: x\r\n\r\n").await;
    let mut bytes = [0; 1_024];
    let read = tokio::time::timeout(PATIENCE, stream.read(&mut bytes));
    let read = read.await.expect("neither answered nor closed");
    sent.is_ok() && matches!(read, Ok(1..))
}

async fn is_closed(stream: &mut TcpStream) -> bool {
    let mut bytes = [0; 16];
    let read = tokio::time::timeout(PATIENCE, stream.read(&mut bytes));
    matches!(read.await.expect("stays open"), Ok(0) | Err(_))
}

#[tokio::test]
async fn one_source_cannot_take_all_connections() {
    // Ten idle connections of one address leave places for others, and its own oldest make room for its newest.
    let open = open().await;
    let mut attacker = Vec::new();
    for _ in 0..10 {
        attacker.push(open.idle(9).await);
    }
    let mut others = Vec::new();
    for from in [2, 3] {
        others.push(open.idle(from).await);
    }
    for stream in &mut attacker[..6] {
        assert!(is_closed(stream).await);
    }
    for stream in attacker[6..].iter_mut().chain(&mut others) {
        assert!(is_answered(stream).await);
    }
}

#[tokio::test]
async fn at_the_connection_limit_the_largest_source_is_cut() {
    // Four of one address and two of others; the new one gets the place that was idle longest among the four.
    let open = open().await;
    let mut many = Vec::new();
    for _ in 0..4 {
        many.push(open.idle(9).await);
    }
    let mut few = [open.idle(2).await, open.idle(3).await];
    let mut new = open.idle(4).await;
    assert!(is_closed(&mut many[0]).await);
    for stream in many[1..].iter_mut().chain(&mut few).chain([&mut new]) {
        assert!(is_answered(stream).await);
    }
}

#[tokio::test]
async fn busy_connections_of_one_source_do_not_block_others() {
    // Every place has a request that never ends, most of them of one address: another address still gets in, and the one
    // with the most is refused.
    let open = open().await;
    let mut busy = Vec::new();
    for from in [9, 9, 9, 9, 2, 3] {
        busy.push(open.busy(from).await);
    }
    // Their requests have arrived before the next one comes.
    tokio::time::sleep(Duration::from_millis(200)).await;
    let mut refused = open.connect(9).await;
    assert!(is_closed(&mut refused).await);
    let mut new = open.idle(4).await;
    assert!(is_answered(&mut new).await);
    assert!(is_closed(&mut busy[0]).await);
}
