//! The fault proxy: each kind of link has its effect on a real connection.

use std::{num::NonZeroU32, time::Duration};

use testkit::{Redis, RedisOptions, Throwaway, eventually, hangs};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::support::proxy::{Link, Proxy};

/// Long enough for an answer that is not held, even on busy cores.
const PATIENCE: Duration = Duration::from_millis(200);

struct Client(TcpStream);

impl Client {
    async fn connect(port: u16) -> Self {
        Self(TcpStream::connect(("127.0.0.1", port)).await.unwrap())
    }

    async fn send(&mut self, command: &str) {
        self.0
            .write_all(format!("{command}\r\n").as_bytes())
            .await
            .unwrap();
    }

    async fn answer(&mut self) -> std::io::Result<String> {
        let mut bytes = [0; 256];
        let len = self.0.read(&mut bytes).await?;
        Ok(String::from_utf8_lossy(&bytes[..len]).trim().to_owned())
    }

    async fn command(&mut self, command: &str) -> String {
        self.send(command).await;
        self.answer().await.unwrap()
    }
}

async fn redis_behind_proxy() -> (Redis, Proxy) {
    let redis = Throwaway::redis(RedisOptions::default()).await.unwrap();
    let proxy = Proxy::start(redis.port()).await;
    (redis, proxy)
}

#[tokio::test]
async fn an_open_link_forwards_both_directions_and_counts() {
    // Also the orderly end of a connection.
    let (redis, proxy) = redis_behind_proxy().await;
    let mut client = Client::connect(proxy.port()).await;
    assert_eq!(client.command("PING").await, "+PONG");
    assert_eq!(client.command("QUIT").await, "+OK");
    assert_eq!(client.answer().await.unwrap(), "");
    assert_eq!(
        proxy.traffic().bytes(),
        ("PING\r\nQUIT\r\n".len() as u64, "+PONG\r\n+OK\r\n".len() as u64)
    );
    assert_eq!((proxy.traffic().accepted(), proxy.traffic().reset()), (1, 0));
    drop(redis);
}

#[tokio::test]
async fn a_cut_resets_open_and_refuses_new_connections() {
    // After the cut, the same address accepts new connections.
    let (_redis, proxy) = redis_behind_proxy().await;
    let mut client = Client::connect(proxy.port()).await;
    client.command("PING").await;
    proxy.set(Link::Cut).await;
    assert_eq!(
        client.answer().await.unwrap_err().kind(),
        std::io::ErrorKind::ConnectionReset
    );
    let refused = TcpStream::connect(proxy.address()).await.unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
    assert_eq!(proxy.traffic().reset(), 1);
    proxy.set(Link::Pass).await;
    assert_eq!(Client::connect(proxy.port()).await.command("PING").await, "+PONG");
}

#[tokio::test]
async fn a_blackhole_delays_all_bytes_and_loses_none() {
    // Old and new connections hang; when the link heals, both get their answers.
    let (redis, proxy) = redis_behind_proxy().await;
    let mut old = Client::connect(proxy.port()).await;
    old.command("PING").await;
    proxy.set(Link::Blackhole).await;
    old.send("INCR n").await;
    let mut new = Client::connect(proxy.port()).await;
    new.send("INCR n").await;
    assert!(hangs(PATIENCE, old.answer()).await);
    assert!(hangs(PATIENCE, new.answer()).await);
    assert_eq!(
        Client::connect(redis.port()).await.command("EXISTS n").await,
        ":0"
    );
    proxy.set(Link::Pass).await;
    let mut answers = [old.answer().await.unwrap(), new.answer().await.unwrap()];
    answers.sort();
    assert_eq!(answers, [":1", ":2"]);
}

#[tokio::test]
async fn a_link_without_responses_loses_the_reply_after_the_commit() {
    // The server has executed the command, and the client gets no reply.
    let (redis, proxy) = redis_behind_proxy().await;
    let mut client = Client::connect(proxy.port()).await;
    proxy.set(Link::OnlyToServer).await;
    client.send("INCR n").await;
    assert!(hangs(PATIENCE, client.answer()).await);
    let mut direct = Client::connect(redis.port()).await;
    assert_eq!(direct.command("EXISTS n").await, ":1");
    proxy.set(Link::Cut).await;
    assert!(client.answer().await.is_err());
}

#[tokio::test]
async fn a_link_that_turns_silent_delivers_the_last_request() {
    // The first request is answered; the second is executed, and its answer is lost.
    let (redis, proxy) = redis_behind_proxy().await;
    let mut client = Client::connect(proxy.port()).await;
    proxy.set(Link::SilentAfter(NonZeroU32::new(2).unwrap())).await;
    assert_eq!(client.command("INCR n").await, ":1");
    client.send("INCR n").await;
    assert!(hangs(PATIENCE, client.answer()).await);
    let mut direct = Client::connect(redis.port()).await;
    assert_eq!(direct.command("GET n").await, "$1\r\n2");
}

#[tokio::test]
async fn a_link_without_requests_delivers_server_messages() {
    // A subscriber still hears messages while its own requests are lost.
    let (redis, proxy) = redis_behind_proxy().await;
    let mut client = Client::connect(proxy.port()).await;
    client.command("SUBSCRIBE news").await;
    proxy.set(Link::OnlyToClient).await;
    client.send("SUBSCRIBE more").await;
    let mut direct = Client::connect(redis.port()).await;
    assert_eq!(direct.command("PUBLISH more x").await, ":0");
    assert_eq!(direct.command("PUBLISH news x").await, ":1");
    assert!(client.answer().await.unwrap().contains("message"));
}

#[tokio::test]
async fn a_slow_link_delays_both_directions() {
    // 200 ms in each direction: no answer within 300 ms.
    let (_redis, proxy) = redis_behind_proxy().await;
    let mut client = Client::connect(proxy.port()).await;
    proxy.set(Link::Slow(Duration::from_millis(200))).await;
    client.send("PING").await;
    assert!(hangs(Duration::from_millis(300), client.answer()).await);
    assert_eq!(client.answer().await.unwrap(), "+PONG");
}

#[tokio::test]
async fn connections_beyond_the_limit_are_refused() {
    // A new connection is accepted after another one has ended.
    let (redis, _) = redis_behind_proxy().await;
    let proxy = Proxy::start_with(redis.port(), 1).await;
    let mut first = Client::connect(proxy.port()).await;
    first.command("PING").await;
    let mut second = Client::connect(proxy.port()).await;
    assert!(second.answer().await.is_ok_and(|answer| answer.is_empty()));
    assert_eq!(proxy.traffic().turned_away(), 1);
    first.command("QUIT").await;
    drop(first);
    eventually("a place is free", || async {
        let mut next = Client::connect(proxy.port()).await;
        let _ = next.0.write_all(b"PING\r\n").await;
        next.answer().await.is_ok_and(|answer| answer == "+PONG")
    })
    .await;
}

#[tokio::test]
async fn a_server_that_is_down_looks_down_through_the_proxy() {
    // The proxy accepts and then resets, as it cannot know before it dials.
    let (redis, proxy) = redis_behind_proxy().await;
    let mut client = Client::connect(proxy.port()).await;
    client.command("PING").await;
    redis.kill().await.unwrap();
    assert!(client.answer().await.is_ok_and(|answer| answer.is_empty()) || proxy.traffic().reset() == 1);
    assert!(Client::connect(proxy.port()).await.answer().await.is_err());
    redis.restart().await.unwrap();
    assert_eq!(Client::connect(proxy.port()).await.command("PING").await, "+PONG");
}

#[tokio::test]
async fn a_dropped_proxy_ends_its_connections_and_its_port() {
    // No task outlives the proxy.
    let (_redis, proxy) = redis_behind_proxy().await;
    let mut client = Client::connect(proxy.port()).await;
    client.command("PING").await;
    let address = proxy.address();
    drop(proxy);
    assert!(client.answer().await.is_ok_and(|answer| answer.is_empty()));
    eventually("nobody listens", || async {
        TcpStream::connect(address).await.is_err()
    })
    .await;
}
