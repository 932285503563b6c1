//! A lease of the Rust client from its grant to its end.

use std::time::Duration;

use leasehold::lease::LeaseConfig;
use leasehold_client::{AcquireError, Checkpoint, Loss, Request};
use serde_json::json;

use super::world::{World, aside, no_later, now};
use crate::support::eventually::eventually;

const TTL: Duration = Duration::from_secs(2);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_is_renewed_until_it_is_given_back() {
    // Held over three TTLs under one token; then free at once; giving back again does nothing to the next owner.
    let world = World::start().await;
    let lease = world
        .client()
        .acquire(Request::new("r", TTL).owner("w1"))
        .await
        .unwrap();
    let until = now().plus(TTL * 3);
    while now() < until {
        let left = lease.checkpoint(Duration::from_millis(1)).unwrap();
        assert!(left <= TTL);
        let seen = world.resource("r").await;
        assert_eq!(seen["holder"]["fencingToken"], lease.fencing_token(), "{seen}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    lease.release().await.unwrap();
    assert!(world.is_free("r").await && lease.is_lost());
    assert_eq!(lease.loss(), Some(Loss::Released));
    assert_eq!(
        lease.checkpoint(Duration::ZERO),
        Err(Checkpoint::Lost(Loss::Released))
    );
    let next = world
        .client()
        .acquire(Request::new("r", TTL).owner("w2"))
        .await
        .unwrap();
    lease.release().await.unwrap();
    drop(lease);
    assert_eq!(next.fencing_token(), 2);
    tokio::time::sleep(TTL).await;
    assert!(!next.is_lost());
    assert_eq!(world.resource("r").await["holder"]["ownerId"], "w2");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_left_of_an_old_lease_neither_renews_nor_stops_the_next_one() {
    // Trap 25: one process, one owner, one resource. The first lease is taken away unheard; the next is acquired;
    // the first finds out, is released and dropped; the next lives on. Given back, nobody renews whoever follows.
    let world = World::start().await;
    let client = world.client();
    let request = || Request::new("r", TTL).owner("w1");
    let old = client.acquire(request()).await.unwrap();
    world.revoke(old.id()).await;
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
            world.resource("r").await["holder"]["fencingToken"],
            next.fencing_token()
        );
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    next.release().await.unwrap();
    let body = json!({"resource": "r", "ownerId": "w1", "ttlSeconds": 2});
    let began = now();
    assert_eq!(world.post("/v1/locks/acquire", &body).await["fencingToken"], 3);
    eventually("it ran out", || world.is_free("r")).await;
    no_later(now(), began, TTL);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_revocation_is_heard_within_a_second_with_who_and_why() {
    // TTL 60 s: the next renewal is far away; the event stream tells.
    let world = World::start().await;
    let client = world.builder().build().unwrap();
    let lease = client
        .acquire(Request::new("r", Duration::from_secs(60)))
        .await
        .unwrap();
    let standing = lease.standing();
    let heard = aside(async move { (standing.lost().await, now()) });
    // Subscribed or not yet: a late listener hears it too.
    let revoked = now();
    world.revoke(lease.id()).await;
    let (loss, at) = heard.await.unwrap();
    no_later(at, revoked, Duration::from_secs(1));
    let told = Loss::Revoked {
        by: "dana".to_owned(),
        reason: "stuck since noon".to_owned(),
        audit_id: "audit-7".to_owned(),
    };
    assert_eq!(loss, told);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dropped_lease_is_free_long_before_its_ttl() {
    // TTL 60 s; nobody waits for the drop.
    let world = World::start().await;
    let lease = world
        .client()
        .acquire(Request::new("r", Duration::from_secs(60)))
        .await
        .unwrap();
    let standing = lease.standing();
    drop(lease);
    assert!(standing.is_lost());
    eventually("it is free", || world.is_free("r")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_grant_after_a_long_line_is_fresh_when_it_is_handed_over() {
    // Trap 27: its request was sent 3 s before the grant, and the TTL is 2 s: counted from there it would be over.
    let world = World::start().await;
    let first = world
        .client()
        .acquire(Request::new("r", TTL).owner("w1"))
        .await
        .unwrap();
    let client = world.client();
    let request = Request::new("r", TTL).owner("w2").wait(Duration::from_secs(20));
    let waiting = aside(async move { client.acquire(request).await.unwrap() });
    tokio::time::sleep(Duration::from_secs(3)).await;
    first.release().await.unwrap();
    let second = waiting.await.unwrap();
    assert!(second.checkpoint(TTL / 4).is_ok());
    assert!(second.standing().deadline() <= now().plus(TTL));
    tokio::time::sleep(TTL).await;
    assert!(!second.is_lost());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refusal_names_the_holder_and_a_bad_request_its_field() {
    // Without a wait and after one that was in vain; a TTL beyond the server's limit will be refused for ever.
    let world = World::start().await;
    let _held = world
        .client()
        .acquire(Request::new("r", TTL).owner("w1"))
        .await
        .unwrap();
    for wait in [0, 1] {
        let request = Request::new("r", TTL).owner("w2").wait(Duration::from_secs(wait));
        let error = world.client().acquire(request).await.unwrap_err();
        let AcquireError::Held {
            held_by: Some(by), ..
        } = &error
        else {
            panic!("{error}");
        };
        assert_eq!((by.owner.as_str(), by.fencing_token), ("w1", 1));
    }
    let error = world
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
async fn a_lease_that_may_live_no_longer_is_held_to_its_end_and_lost_then() {
    // The server lets leases live for 3 s: renewals are cut, then refused; the loss says why, in time.
    let config = LeaseConfig {
        max_ttl: TTL,
        max_lifetime: Duration::from_secs(3),
        ..LeaseConfig::default()
    };
    let world = World::start_with(config).await;
    let began = now();
    let lease = world.client().acquire(Request::new("r", TTL)).await.unwrap();
    let loss = lease.lost().await;
    assert!(matches!(loss, Loss::LifetimeReached | Loss::Expired), "{loss}");
    no_later(now(), began, Duration::from_secs(3));
    assert!(now().since(began) >= TTL, "renewed at least once");
}
