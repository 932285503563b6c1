//! The Rust client over a link that is cut, hangs, is slow, or loses answers.

use std::time::Duration;

use ::lease::LeaseConfig;
use leasehold_client::{AcquireError, Request};

use super::client_and_server::{ClientAndServer, aside, no_later, now};
use crate::support::proxy::Link;

const TTL: Duration = Duration::from_secs(3);

async fn lost_in_time_over(link: Link) {
    let server = ClientAndServer::start().await;
    let lease = server
        .client()
        .acquire(Request::new("r", TTL).owner("w1"))
        .await
        .unwrap();
    // Long enough for a renewal.
    tokio::time::sleep(TTL / 2).await;
    server.link.set(link).await;
    let broken = now();
    let loss = lease.lost().await;
    let (at, deadline) = (now(), lease.state().deadline());
    assert_eq!(loss.code(), "deadline_passed", "{loss}");
    // The last good request was sent before the link broke, and a third of the TTL passes between two of them.
    assert!(deadline <= broken.plus(TTL));
    assert!(
        deadline.since(broken) >= TTL / 2,
        "it gave up early: {:?}",
        deadline.since(broken)
    );
    no_later(at, deadline, Duration::ZERO);
    assert!(loss.to_string().contains("in time: "), "{loss}");
    // The link heals too late: the lost lease stays lost.
    server.link.set(Link::Pass).await;
    tokio::time::sleep(TTL / 2).await;
    assert!(lease.is_lost());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_a_cut_link_a_lease_is_held_until_its_deadline() {
    // Trap 24: every connection is refused; the deadline counts from before the last good request (27).
    lost_in_time_over(Link::Cut).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_a_half_open_link_no_request_blocks_past_the_deadline() {
    // Trap 24: connections stay open and carry no data.
    lost_in_time_over(Link::Blackhole).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn renewals_without_a_response_extend_no_lease() {
    // Trap 27: the server receives each renewal and extends the lease; the answers are lost, so the client must treat
    // the lease as lost.
    lost_in_time_over(Link::OnlyToServer).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_short_outage_loses_no_lease() {
    // Trap 24: six times cut or silent for a third of the TTL, over a renewal each; the lease lives on.
    let server = ClientAndServer::start().await;
    let lease = server
        .client()
        .acquire(Request::new("r", TTL).owner("w1"))
        .await
        .unwrap();
    for link in [
        Link::Cut,
        Link::Blackhole,
        Link::OnlyToServer,
        Link::Cut,
        Link::Blackhole,
        Link::OnlyToClient,
    ] {
        server.link.set(link).await;
        // A fault that is shorter than the TTL.
        tokio::time::sleep(TTL / 3).await;
        server.link.set(Link::Pass).await;
        // Long enough for a renewal after the fault.
        tokio::time::sleep(TTL / 2).await;
        assert!(!lease.is_lost(), "{link:?}: {:?}", lease.loss());
    }
    assert_eq!(server.resource("r").await["holder"]["fencingToken"], 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_link_shortens_the_lease_and_never_lengthens_it() {
    // Trap 27: 200 ms of delay in each direction. The deadline counts from before the last successful request was
    // sent, at least 400 ms before its answer; counted from the answer it would be later.
    let delay = Duration::from_millis(200);
    let server = ClientAndServer::start().await;
    server.link.set(Link::Slow(delay)).await;
    let lease = server.client().acquire(Request::new("r", TTL)).await.unwrap();
    let answered = now();
    assert!(lease.state().deadline().plus(2 * delay) <= answered.plus(TTL));
    // And it can be held over such a link.
    tokio::time::sleep(TTL * 2).await;
    assert!(!lease.is_lost(), "{:?}", lease.loss());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_with_a_lost_response_is_recovered() {
    // The server grants, the answer never arrives, the connection breaks: the same lease, under the same token.
    let server = ClientAndServer::start().await;
    server.link.set(Link::OnlyToServer).await;
    let client = server.client();
    let acquiring = aside(async move {
        client
            .acquire(Request::new("r", Duration::from_secs(30)).owner("w1"))
            .await
    });
    server.held_by("r", "w1").await;
    server.link.set(Link::Cut).await;
    server.link.set(Link::Pass).await;
    let lease = acquiring.await.unwrap().unwrap();
    assert_eq!(lease.fencing_token(), 1);
    let seen = server.resource("r").await;
    assert_eq!(
        (&seen["lastFencingToken"], &seen["holder"]["fencingToken"]),
        (&1.into(), &1.into())
    );
    assert!(lease.checkpoint(Duration::from_secs(1)).is_ok());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn acquire_fails_after_its_timeout() {
    // The server does not answer: the client reports an unknown outcome within a bounded time.
    let server = ClientAndServer::start().await;
    server.link.set(Link::Blackhole).await;
    let patience = Duration::from_secs(1);
    let client = server.builder().patience(patience).build().unwrap();
    let began = now();
    let error = client.acquire(Request::new("r", TTL)).await.unwrap_err();
    assert!(matches!(error, AcquireError::Unknown { .. }), "{error}");
    no_later(now(), began, patience);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_restarts_within_the_ttl_costs_no_lease() {
    // Down for a third of the TTL, over a renewal; and an acquire that begins meanwhile gets its lease afterwards.
    let mut server = ClientAndServer::start().await;
    let lease = server
        .client()
        .acquire(Request::new("r", TTL).owner("w1"))
        .await
        .unwrap();
    server.stop_serving().await;
    let client = server.client();
    let acquiring = aside(async move { client.acquire(Request::new("s", TTL)).await });
    // The request waits on the broken link.
    tokio::time::sleep(TTL / 3).await;
    server.serve(LeaseConfig::default()).await;
    let other = acquiring.await.unwrap().unwrap();
    // A whole TTL on a real server, which only renewals survive.
    tokio::time::sleep(TTL).await;
    assert!(!lease.is_lost() && !other.is_lost(), "{:?}", lease.loss());
    assert_eq!(server.resource("r").await["holder"]["fencingToken"], 1);
}
