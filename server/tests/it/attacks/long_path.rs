//! A path of many kilobytes, with the limit of what is recorded in the middle of a character.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::support::TestServer;

#[tokio::test]
async fn a_long_path_is_cut_in_the_audit_log() {
    let server = TestServer::start().await;
    let path = format!("/v1/locks/x{}", "\u{e9}".repeat(4_000));
    let mut stream = TcpStream::connect(server.serving.address).await.unwrap();
    let request = format!("DELETE {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    let answer = String::from_utf8_lossy(&answer);
    assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
    let entries = server.audit_entries().await;
    let recorded: Vec<String> = entries
        .iter()
        .filter_map(|entry| {
            let after: serde_json::Value = serde_json::from_str(entry.after.as_deref()?).unwrap();
            Some(after["path"].as_str()?.to_owned())
        })
        .collect();
    assert_eq!(recorded.len(), 1, "{entries:?}");
    assert_eq!((recorded[0].len(), path.starts_with(&recorded[0])), (511, true));
}
