//! A lease of the Rust client from its grant to its end.

use std::time::Duration;

use ::lease::LeaseConfig;
use leasehold_client::{AcquireError, CheckpointError, Loss, Request};
use serde_json::json;

use super::client_and_server::{ClientAndServer, aside, no_later, now};
use testkit::eventually;

const TTL: Duration = Duration::from_secs(2);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_is_renewed_until_its_release() {
    // A lease is held over three TTLs under one token, then released: the lock is free at once, and a second release
    // does not affect the next owner.
    let server = ClientAndServer::start().await;
    let lease = server
        .client()
        .acquire(Request::new("r", TTL).owner("w1"))
        .await
        .unwrap();
    let until = now().plus(TTL * 3);
    while now() < until {
        let left = lease.checkpoint(Duration::from_millis(1)).unwrap();
        assert!(left <= TTL);
        let seen = server.resource("r").await;
        assert_eq!(seen["holder"]["fencingToken"], lease.fencing_token(), "{seen}");
        // The pace of the worker, over several real renewals.
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    lease.release().await.unwrap();
    assert!(server.is_free("r").await && lease.is_lost());
    assert_eq!(lease.loss(), Some(Loss::Released));
    assert_eq!(
        lease.checkpoint(Duration::ZERO),
        Err(CheckpointError::Lost(Loss::Released))
    );
    let next = server
        .client()
        .acquire(Request::new("r", TTL).owner("w2"))
        .await
        .unwrap();
    lease.release().await.unwrap();
    drop(lease);
    assert_eq!(next.fencing_token(), 2);
    // A loss cannot be waited for: a whole TTL in which the old lease must not end the next one.
    tokio::time::sleep(TTL).await;
    assert!(!next.is_lost());
    assert_eq!(server.resource("r").await["holder"]["ownerId"], "w2");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_old_lease_neither_renews_nor_stops_the_next_one() {
    // Trap 25: one process, one owner, one resource. The first lease is revoked without a notification and the second
    // acquired; the first learns of it, is released and dropped; the second lives on. After its release no task renews
    // the next holder's lease.
    let server = ClientAndServer::start().await;
    let client = server.client();
    let request = || Request::new("r", TTL).owner("w1");
    let old = client.acquire(request()).await.unwrap();
    server.revoke(old.id()).await;
    let next = client.acquire(request()).await.unwrap();
    assert!(next.fencing_token() > old.fencing_token());
    let loss = old.lost().await;
    assert_eq!(loss.code(), "revoked");
    old.release().await.unwrap();
    drop(old);
    let until = now().plus(TTL * 2);
    while now() < until {
        assert!(!next.is_lost(), "{:?}", next.loss());
        assert_eq!(
            server.resource("r").await["holder"]["fencingToken"],
            next.fencing_token()
        );
        // The pace of the worker, over several real renewals.
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    next.release().await.unwrap();
    let body = json!({"resource": "r", "ownerId": "w1", "ttlSeconds": 2});
    let began = now();
    assert_eq!(server.post("/v1/locks/acquire", &body).await["fencingToken"], 3);
    eventually("it ran out", || server.is_free("r")).await;
    no_later(now(), began, TTL);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_revocation_arrives_with_actor_and_reason() {
    // TTL 60 s: the next renewal is far away, so the event stream must report the loss.
    let server = ClientAndServer::start().await;
    let client = server.builder().build().unwrap();
    let lease = client
        .acquire(Request::new("r", Duration::from_secs(60)))
        .await
        .unwrap();
    let state = lease.state();
    let heard = aside(async move { (state.lost().await, now()) });
    // A listener that subscribes after the loss receives it too.
    let revoked = now();
    server.revoke(lease.id()).await;
    let (loss, at) = heard.await.unwrap();
    no_later(at, revoked, Duration::from_secs(1));
    let expected = Loss::Revoked {
        by: "dana".to_owned(),
        reason: "stuck since noon".to_owned(),
        audit_id: "audit-7".to_owned(),
    };
    assert_eq!(loss, expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dropped_lease_is_released_before_its_ttl() {
    // TTL 60 s; the drop releases the lease without being awaited.
    let server = ClientAndServer::start().await;
    let lease = server
        .client()
        .acquire(Request::new("r", Duration::from_secs(60)))
        .await
        .unwrap();
    let state = lease.state();
    drop(lease);
    assert!(state.is_lost());
    eventually("it is free", || server.is_free("r")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_dropped_by_a_thread_without_runtime_is_released() {
    // As in a program that is not asynchronous itself.
    let server = ClientAndServer::start().await;
    let request = Request::new("r", Duration::from_secs(60));
    let lease = server.client().acquire(request).await.unwrap();
    std::thread::spawn(move || drop(lease)).join().unwrap();
    eventually("it is free", || server.is_free("r")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_grant_after_a_long_queue_has_its_full_ttl() {
    // Trap 27: its request was sent 3 s before the grant, and the TTL is 2 s: counted from there it would be over.
    let server = ClientAndServer::start().await;
    let first = server
        .client()
        .acquire(Request::new("r", TTL).owner("w1"))
        .await
        .unwrap();
    let client = server.client();
    let request = Request::new("r", TTL).owner("w2").wait(Duration::from_secs(20));
    let waiting = aside(async move { client.acquire(request).await.unwrap() });
    // Longer than one renewal interval: the holder keeps the lease by renewing it.
    tokio::time::sleep(Duration::from_secs(3)).await;
    first.release().await.unwrap();
    let second = waiting.await.unwrap();
    assert!(second.checkpoint(TTL / 4).is_ok());
    assert!(second.state().deadline() <= now().plus(TTL));
    // A whole TTL on a real server, which only renewals survive.
    tokio::time::sleep(TTL).await;
    assert!(!second.is_lost());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refusal_names_the_holder_and_a_bad_request_its_field() {
    // Without a wait and after a wait that timed out; a TTL beyond the server's limit is a permanent error.
    let server = ClientAndServer::start().await;
    let _held = server
        .client()
        .acquire(Request::new("r", TTL).owner("w1"))
        .await
        .unwrap();
    for wait in [0, 1] {
        let request = Request::new("r", TTL).owner("w2").wait(Duration::from_secs(wait));
        let error = server.client().acquire(request).await.unwrap_err();
        let AcquireError::Held {
            held_by: Some(by), ..
        } = &error
        else {
            panic!("{error}");
        };
        assert_eq!((by.owner.as_str(), by.fencing_token), ("w1", 1));
    }
    let error = server
        .client()
        .acquire(Request::new("s", Duration::from_secs(9_999)))
        .await
        .unwrap_err();
    assert!(
        matches!(&error, AcquireError::Refused { status: 400, code, .. } if code == "invalid"),
        "{error}"
    );
    assert!(error.to_string().contains("ttlSeconds"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_at_its_lifetime_cap_is_held_until_it_expires() {
    // The server caps leases at 3 s: renewals are cut, then refused; the loss names the reason in time.
    let config = LeaseConfig {
        max_ttl: TTL,
        max_lifetime: Duration::from_secs(3),
        ..LeaseConfig::default()
    };
    let server = ClientAndServer::start_with(config).await;
    let began = now();
    let lease = server.client().acquire(Request::new("r", TTL)).await.unwrap();
    let loss = lease.lost().await;
    assert!(matches!(loss, Loss::LifetimeReached | Loss::Expired), "{loss}");
    no_later(now(), began, Duration::from_secs(3));
    assert!(now().since(began) >= TTL, "renewed at least once");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_without_renewals_is_acquired_after_a_wait() {
    // The TTL is the cap on a lease's lifetime, so the renewal after the wait is refused: the grant is used as it is.
    let ttl = Duration::from_secs(3);
    let config = LeaseConfig {
        max_ttl: ttl,
        max_lifetime: ttl,
        ..LeaseConfig::default()
    };
    let server = ClientAndServer::start_with(config).await;
    let _first = server.client().acquire(Request::new("r", ttl)).await.unwrap();
    let request = Request::new("r", ttl).wait(Duration::from_secs(30));
    // Until the first lease expires, which is longer than a third of the TTL.
    let next = server.client().acquire(request).await.unwrap();
    assert_eq!(next.resource(), "r");
}
