//! Clients that are slow or greedy on purpose: their connections are closed, and other clients are served.

use crate::support::aside;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ::config::ServerTls;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::routing::{get, post};
use futures::stream;
use leasehold::serve::listener::Listener;
use leasehold::serve::listener::limits::Limits;
use leasehold::serve::listener::tls::Certificate;
use runtime::clock::Clock;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use testkit::Certs;
use testkit::eventually;

const QUICK: Limits = Limits {
    connections_max: 4,
    connections_per_source_max: 4,
    first_request_max: Duration::from_millis(400),
    silence_max: Duration::from_millis(900),
    body_max: Duration::from_millis(400),
};
/// More than any of these limits, plus tolerance for a slow machine.
const PATIENCE: Duration = Duration::from_secs(10);
const REQUEST: &[u8] = b"GET /quick HTTP/1.1\r\nhost: x\r\n\r\n";

struct Open {
    address: SocketAddr,
    stop: CancellationToken,
    ended: JoinHandle<()>,
    /// Whether the server has dropped the endless response.
    is_dropped: Arc<AtomicBool>,
}

struct DropFlag(Arc<AtomicBool>);

impl Drop for DropFlag {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

async fn open(certs: Option<&Certs>) -> Open {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let is_dropped = Arc::new(AtomicBool::new(false));
    let dropped = is_dropped.clone();
    let endless = move || async move {
        let dropped = DropFlag(dropped);
        let parts = stream::repeat_with(move || {
            let _kept = &dropped;
            Ok::<_, std::io::Error>(Bytes::from_static(&[b'x'; 65_536]))
        });
        Body::from_stream(parts)
    };
    let slowly = || async {
        // Longer than the timeout of an idle connection.
        tokio::time::sleep(QUICK.silence_max * 2).await;
        "at last"
    };
    let router = Router::new()
        .route("/quick", get(|| async { "quick" }))
        .route("/slowly", get(slowly))
        .route("/endless", get(endless))
        .route("/echo", post(|body: Bytes| async move { body }));
    let tls = certs.map(|certs| {
        let files = ServerTls {
            cert_file: certs.server().cert,
            key_file: certs.server().key,
        };
        Certificate::load(&files).unwrap().acceptor().unwrap()
    });
    let served = Listener {
        listener,
        tls,
        limits: QUICK,
        exempt: Vec::new(),
        proxies: Vec::new(),
        is_secure: false,
        clock: Clock::start(),
    };
    let stop = CancellationToken::new();
    Open {
        address,
        ended: aside(served.serve(router, stop.clone())),
        stop,
        is_dropped,
    }
}

async fn connect(open: &Open) -> TcpStream {
    TcpStream::connect(open.address).await.unwrap()
}

/// All further bytes until the other side closes.
async fn rest(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let read = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut bytes));
    let _reset = read.await.expect("the connection stays open");
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Sends a byte at a time, until the other side closes the connection.
async fn drip(stream: &mut TcpStream, text: &[u8]) {
    for byte in text.iter().cycle() {
        if stream.write_all(&[*byte]).await.is_err() {
            return;
        }
        // The pace of a slow client.
        tokio::time::sleep(Duration::from_millis(30)).await;
    }
}

#[tokio::test]
async fn idle_connections_without_a_request_are_closed() {
    // No bytes; headers sent byte by byte without end; a TLS handshake that never starts.
    let (plain, certs) = (open(None).await, Certs::make());
    let tls = open(Some(&certs)).await;
    assert_eq!(rest(&mut connect(&plain).await).await, "");
    assert_eq!(rest(&mut connect(&tls).await).await, "");
    let mut stream = connect(&plain).await;
    stream.write_all(b"GET /quick HTTP/1.1\r\n").await.unwrap();
    let dripped = tokio::time::timeout(PATIENCE, drip(&mut stream, b"x-a: b\r\n"));
    assert!(dripped.await.is_ok(), "slow headers are not limited");
}

#[tokio::test]
async fn slow_and_idle_keep_alive_connections_are_closed() {
    // The next request's headers come a byte at a time; or never.
    let open = open(None).await;
    let mut idle = connect(&open).await;
    idle.write_all(REQUEST).await.unwrap();
    assert!(rest(&mut idle).await.ends_with("quick"));
    let mut stream = connect(&open).await;
    stream.write_all(REQUEST).await.unwrap();
    let dripped = tokio::time::timeout(
        PATIENCE,
        drip(&mut stream, b"GET /quick HTTP/1.1\r\nx-a: b\r\nx-b"),
    );
    assert!(dripped.await.is_ok(), "slow headers are not limited");
}

#[tokio::test]
async fn a_slow_body_is_refused() {
    // It never pauses for long and never ends.
    let open = open(None).await;
    let mut stream = connect(&open).await;
    let head = b"POST /echo HTTP/1.1\r\nhost: x\r\ncontent-length: 100000\r\n\r\n";
    stream.write_all(head).await.unwrap();
    let dripped = tokio::time::timeout(PATIENCE, drip(&mut stream, b"x"));
    assert!(dripped.await.is_ok(), "a slow body is not limited");
}

#[tokio::test]
async fn an_unread_response_is_aborted() {
    // Endless output to a client that does not read: the server stops producing it.
    let open = open(None).await;
    let mut stream = connect(&open).await;
    stream
        .write_all(b"GET /endless HTTP/1.1\r\nhost: x\r\n\r\n")
        .await
        .unwrap();
    eventually("the answer is given up", || async {
        open.is_dropped.load(Ordering::Relaxed)
    })
    .await;
    drop(stream);
}

#[tokio::test]
async fn a_long_request_completes_during_shutdown() {
    // Twice as long as silence is allowed, and the stop comes meanwhile: it is answered, then the listener ends.
    let open = open(None).await;
    let mut stream = connect(&open).await;
    stream
        .write_all(b"GET /slowly HTTP/1.1\r\nhost: x\r\n\r\n")
        .await
        .unwrap();
    // The request takes longer than the timeout of an idle connection.
    tokio::time::sleep(QUICK.silence_max).await;
    open.stop.cancel();
    assert!(rest(&mut stream).await.ends_with("at last"));
    tokio::time::timeout(PATIENCE, open.ended).await.unwrap().unwrap();
    assert!(TcpStream::connect(open.address).await.is_err());
}

#[tokio::test]
async fn header_size_is_limited() {
    // 200 kB in one header: refused, and the connection is closed.
    let open = open(None).await;
    let mut stream = connect(&open).await;
    let head = format!(
        "GET /quick HTTP/1.1\r\nhost: x\r\nx-a: {}\r\n\r\n",
        "a".repeat(200_000)
    );
    let _cut = stream.write_all(head.as_bytes()).await;
    let answer = rest(&mut stream).await;
    assert!(
        answer.is_empty() || answer.starts_with("HTTP/1.1 431"),
        "{answer}"
    );
}
