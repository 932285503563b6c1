//! Several leases in one call of the Rust client.

use std::time::Duration;

use leasehold_client::{AcquireError, Request};

use super::client_and_server::{ClientAndServer, aside};
use crate::support::proxy::Link;
use testkit::eventually;

const TTL: Duration = Duration::from_secs(30);

fn requests(count: usize) -> Vec<Request> {
    let request = |number| Request::new(format!("r-{number}"), TTL).owner("w1");
    (0..count).map(request).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn more_locks_than_one_call_takes_are_acquired_and_released() {
    // One of them is held by another owner, and one request is invalid: its call fails as a whole, the other does not.
    let server = ClientAndServer::start().await;
    let other = server
        .client()
        .acquire(Request::new("r-7", TTL).owner("w2"))
        .await
        .unwrap();
    let mut requests = requests(513);
    requests[512] = Request::new("", TTL);
    let results = server.client().acquire_many(&requests).await;
    assert_eq!(results.len(), 513);
    let mut leases = Vec::new();
    for (number, result) in results.into_iter().enumerate() {
        match (number, result) {
            (7, Err(AcquireError::Held { held_by, .. })) => assert_eq!(held_by.unwrap().owner, "w2"),
            (512, Err(AcquireError::Refused { status, .. })) => assert_eq!(status, 400),
            (_, Ok(lease)) => {
                assert_eq!(lease.resource(), format!("r-{number}"));
                leases.push(lease);
            }
            (_, Err(error)) => panic!("{number}: {error}"),
        }
    }
    assert_eq!(leases.len(), 511);
    server.held_by("r-511", "w1").await;
    let states: Vec<_> = leases.iter().map(leasehold_client::Lease::state).collect();
    server.client().release_many(leases).await;
    assert!(states.iter().all(leasehold_client::LeaseState::is_lost));
    for number in [0, 100, 511] {
        assert!(server.is_free(&format!("r-{number}")).await, "{number}");
    }
    assert!(!other.is_lost());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_with_much_metadata_are_split_into_calls() {
    // 100 requests of 4 KB: more than the body of one call may have.
    let server = ClientAndServer::start().await;
    let note = "n".repeat(4_000);
    let requests = requests(100).into_iter();
    let requests: Vec<_> = requests.map(|request| request.metadata("note", &note)).collect();
    let results = server.client().acquire_many(&requests).await;
    assert_eq!(results.len(), 100);
    for (number, result) in results.into_iter().enumerate() {
        assert_eq!(result.unwrap().resource(), format!("r-{number}"));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_answer_to_a_batch_loses_no_lock() {
    // Trap 22: the server grants every lock, and its answer is lost; the repeated call gets the same leases.
    let server = ClientAndServer::start().await;
    server.link.set(Link::OnlyToServer).await;
    let client = server.client();
    let acquiring = aside(async move { client.acquire_many(&requests(20)).await });
    eventually("the locks are granted", async || !server.is_free("r-19").await).await;
    server.link.set(Link::Cut).await;
    server.link.set(Link::Pass).await;
    let results = acquiring.await.unwrap();
    assert!(results.iter().all(Result::is_ok), "{results:?}");
    for number in 0..20 {
        let resource = server.resource(&format!("r-{number}")).await;
        assert_eq!(resource["lastFencingToken"], 1, "{resource}");
    }
}
