//! Requests that are refused by their headers, from clients that send headers and body apart.

use crate::support::TestServer;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

const BODY: &[u8] = br#"{"resource":"r","ownerId":"w","ttlSeconds":30}"#;

/// Headers of an acquire whose `Idempotency-Key` is not valid.
fn head(console: &TestServer, more: &str) -> String {
    format!(
        "POST /v1/locks/acquire HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\n\
         content-type: application/json\r\nidempotency-key: not valid\r\n{more}\r\n",
        console.operator_token()
    )
}

async fn connect(console: &TestServer) -> TcpStream {
    TcpStream::connect(console.serving.address).await.unwrap()
}

/// Reads until these words have come.
async fn until(stream: &mut TcpStream, words: &str) -> String {
    let mut text = String::new();
    while !text.contains(words) {
        let mut bytes = [0; 4_096];
        let count = stream.read(&mut bytes).await.unwrap();
        assert!(count > 0, "closed after {text:?}");
        text.push_str(&String::from_utf8_lossy(&bytes[..count]));
    }
    text
}

#[tokio::test]
async fn an_early_refusal_reaches_a_client_that_still_sends() {
    // The body follows the headers late and in two parts; then the next request on the same connection.
    let console = TestServer::builder().operator().start().await;
    let mut stream = connect(&console).await;
    let head = head(&console, &format!("content-length: {}\r\n", BODY.len()));
    stream.write_all(head.as_bytes()).await.unwrap();
    for part in [&BODY[..10], &BODY[10..]] {
        // A pause in which a server that does not read the body answers and closes.
        tokio::time::sleep(Duration::from_millis(200)).await;
        stream.write_all(part).await.unwrap();
    }
    let answer = until(&mut stream, "requestId").await;
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    assert!(answer.contains("\"field\":\"Idempotency-Key\""), "{answer}");
    stream
        .write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n")
        .await
        .unwrap();
    until(&mut stream, "HTTP/1.1 200").await;
}

#[tokio::test]
async fn expect_continue_is_refused_without_the_body() {
    // `Expect: 100-continue`: the refusal comes at once, and no 100 before it.
    let console = TestServer::builder().operator().start().await;
    let mut stream = connect(&console).await;
    let head = head(&console, "content-length: 46\r\nexpect: 100-continue\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    let answer = until(&mut stream, "requestId").await;
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
}
