//! How many durable acquire and release pairs go through over HTTP: 64 clients on the same cores. Prints, asserts little:
//! run it alone, with `--release`.

use std::time::{Duration, Instant};

use leasehold::throwaway::PostgresOptions;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::stage::{Home, Kind, aside, stopwatch};

const CLIENTS: usize = 64;
const FOR: Duration = Duration::from_secs(8);

/// One request on a connection that stays open; the answer's body.
async fn call(stream: &mut TcpStream, buffer: &mut Vec<u8>, request: &str) -> String {
    stream.write_all(request.as_bytes()).await.unwrap();
    buffer.clear();
    loop {
        let mut chunk = [0; 4_096];
        let read = stream.read(&mut chunk).await.unwrap();
        assert!(read > 0, "the server closed the connection");
        buffer.extend_from_slice(&chunk[..read]);
        let text = std::str::from_utf8(buffer).unwrap();
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "))
            .unwrap();
        if body.len() >= length.parse().unwrap() {
            assert!(head.starts_with("HTTP/1.1 200"), "{text}");
            return body.to_owned();
        }
    }
}

async fn client(address: String, number: usize, until: Instant) -> Vec<Duration> {
    let mut stream = TcpStream::connect(&address).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let (mut buffer, mut took, mut round) = (Vec::new(), Vec::new(), 0);
    while stopwatch() < until {
        round += 1;
        let body = format!(
            r#"{{"resource":"bench:{number}:{}","ownerId":"worker-{number}","ttlSeconds":30}}"#,
            round % 16
        );
        let acquire = format!(
            "POST /v1/locks/acquire HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        let began = stopwatch();
        let answer = call(&mut stream, &mut buffer, &acquire).await;
        took.push(began.elapsed());
        let at = answer.find("\"leaseId\":\"").unwrap() + 11;
        let release = format!(
            "DELETE /v1/locks/{} HTTP/1.1\r\nhost: x\r\n\r\n",
            &answer[at..at + 36]
        );
        let began = stopwatch();
        call(&mut stream, &mut buffer, &release).await;
        took.push(began.elapsed());
    }
    took
}

async fn measure(what: &str, home: &Home) {
    let stage = home.serve().await;
    let address = stage.base.trim_start_matches("http://").to_owned();
    let began = stopwatch();
    let clients = (0..CLIENTS).map(|number| aside(client(address.clone(), number, began + FOR)));
    let mut took: Vec<Duration> = Vec::new();
    for one in futures::future::join_all(clients).await {
        took.extend(one.unwrap());
    }
    let pairs = took.len() as f64 / 2.0 / began.elapsed().as_secs_f64();
    took.sort_unstable();
    let at = |percent: usize| took[took.len() * percent / 100];
    let metrics = stage.service.metrics();
    println!(
        "{what}: {pairs:.0} pairs/s, p50 {:?}, p99 {:?}, {:.1} operations a batch",
        at(50),
        at(99),
        metrics.operations.read() as f64 / metrics.batches.read() as f64
    );
    assert_eq!(metrics.granted.read(), metrics.releases.read());
    stage.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a measurement: run it alone, in release"]
async fn the_pace_of_sqlite() {
    // 8 s of load; the figure is printed.
    measure("SQLite", &Home::new(Kind::Sqlite).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a measurement: run it alone, in release"]
async fn the_pace_of_postgres() {
    // With fsync on.
    let home = Home::postgres(tempfile::tempdir().unwrap(), PostgresOptions::default()).await;
    measure("Postgres", &home).await;
}
