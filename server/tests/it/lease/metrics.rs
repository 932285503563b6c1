//! Metrics of the lease service.

use std::time::Duration;

use ::lease::{AcquireRequest, LeaseCaller, LeaseMetrics};
use domain::lease::{Metadata, Revocation, Ttl, names};
use serde_json::json;

use super::lease_server::{LeaseStore, StoreKind, id, is_granted, on_both_stores, on_every_store, token};
use testkit::eventually;

fn request(resource: &str, wait: Duration, key: Option<&str>) -> AcquireRequest {
    AcquireRequest {
        resource: names::resource(resource).unwrap(),
        owner: names::owner("w1").unwrap(),
        ttl: Ttl::parse(30, 3_600).unwrap(),
        wait,
        metadata: Metadata::default(),
        idempotency_key: key.map(Into::into),
    }
}

async fn until(what: &str, metrics: &LeaseMetrics, holds: impl Fn(&LeaseMetrics) -> bool) {
    eventually(what, || async { holds(metrics) }).await;
}

on_every_store!(attempts_are_counted_by_their_outcome, |store| {
    // A grant, a refusal, a replay, a waiter that is served, one that disconnects, a grant that is not delivered.
    let server = store.serve().await;
    let metrics = server.service.metrics();
    let caller = LeaseCaller::open();
    let held = server.acquire("r", "w1", 30).await;
    assert!(!is_granted(&server.acquire("r", "w2", 30).await));
    assert_eq!((metrics.granted.read(), metrics.refused.read()), (1, 1));
    for _ in 0..2 {
        server
            .service
            .acquire(&caller, request("keyed", Duration::ZERO, Some("k1")))
            .await
            .unwrap();
    }
    assert_eq!((metrics.granted.read(), metrics.replayed.read()), (2, 1));

    let hung_up = server
        .service
        .acquire(&caller, request("r", Duration::from_secs(30), None));
    assert!(
        tokio::time::timeout(Duration::from_millis(300), hung_up)
            .await
            .is_err()
    );
    until("the waiter is gone", metrics, |it| it.waiters_gone.read() == 1).await;

    let waiting = server
        .service
        .acquire(&caller, request("r", Duration::from_secs(30), None));
    let release = async {
        eventually("it waits", || async { server.service.waiters() == 1 }).await;
        // The wait that is measured is not zero.
        tokio::time::sleep(Duration::from_millis(50)).await;
        server.delete(&held).await
    };
    let (granted, _) = tokio::join!(waiting, release);
    granted.unwrap();
    until("the wait is counted", metrics, |it| it.waits.read() == 2).await;
    assert!(metrics.wait_ms.read() >= 50 && metrics.grant_attempts.read() >= 1);

    // The store may answer within the poll.
    let mut taken = 0;
    loop {
        let name = format!("untaken-{taken}");
        let acquire = server
            .service
            .acquire(&caller, request(&name, Duration::ZERO, None));
        if futures::poll!(&mut Box::pin(acquire)).is_pending() {
            break;
        }
        taken += 1;
    }
    until("the lease is released", metrics, |it| {
        it.unclaimed_grants.read() == 1 && it.releases.read() == 2
    })
    .await;
    assert_eq!(metrics.granted.read(), 4 + taken);
    server.close().await;
});

on_every_store!(the_ends_of_leases_are_counted_by_their_kind, |store| {
    // Renewed and released after a while, revoked, expired and noted, expired and reclaimed at once, renewed too late.
    let server = store.serve().await;
    let metrics = server.service.metrics();
    let lease = server.acquire("r", "w1", 30).await;
    // The hold time that is measured.
    tokio::time::sleep(Duration::from_millis(30)).await;
    server.renew(&lease).await;
    server.delete(&lease).await;
    server.delete(&lease).await;
    assert_eq!((metrics.renewals.read(), metrics.releases.read()), (1, 1));
    assert!(metrics.hold_ms.read() >= 30);
    assert_eq!(metrics.losses.read(), 0, "a second release loses nothing");
    let revoked = server.acquire("r", "w1", 30).await;
    let revocation = Revocation {
        by: "ada".into(),
        reason: "stuck".into(),
        audit_id: "a1".into(),
    };
    server
        .service
        .revoke(id(&revoked), revocation, Duration::ZERO)
        .await
        .unwrap();
    assert_eq!(metrics.revocations.read(), 1);
    server.renew(&revoked).await;
    assert_eq!(metrics.losses.read(), 1);

    server.acquire("short", "w1", 1).await;
    until("the expiry is counted once", metrics, |it| {
        it.expirations.read() == 1
    })
    .await;
    // Until a grant comes before the expiry recorder has noted the end of the lease before it.
    let mut rounds = 0;
    while metrics.reclaims.read() == 0 {
        rounds += 1;
        assert!(rounds < 20, "no reclaim in {rounds} rounds");
        server.acquire("short", "w1", 1).await;
        while !is_granted(&server.acquire("short", "w2", 1).await) {}
    }
    server.close().await;
});

on_both_stores!(rejections_and_failures_are_counted, |store| {
    // A token that is too low; then a store without its table, and with it again.
    let server = store.serve().await;
    let metrics = server.service.metrics();
    let held = server.acquire("r", "w1", 30).await;
    let check = json!({"resource": "r", "fencingToken": token(&held) + 1});
    let (_, refused) = server.post("/v1/fencing/check", check).await;
    assert_eq!(refused["accepted"], json!(false));
    until("the refusal is counted", metrics, |it| it.rejections.read() == 1).await;
    assert!(metrics.batches.read() >= 2 && metrics.operations.read() >= 2);
    assert_eq!(
        (metrics.unavailable.read(), metrics.failed_batches.read()),
        (0, 0)
    );
    store.sql("ALTER TABLE leases RENAME TO leases_aside").await;
    let failed = server
        .service
        .acquire(&LeaseCaller::open(), request("s", Duration::ZERO, None))
        .await;
    assert!(failed.is_err());
    assert!(metrics.unavailable.read() >= 1 && metrics.failed_batches.read() >= 1);
    store.sql("ALTER TABLE leases_aside RENAME TO leases").await;
    eventually("it serves again", || async {
        let again = request("s2", Duration::ZERO, None);
        server.service.acquire(&LeaseCaller::open(), again).await.is_ok()
    })
    .await;
    server.close().await;
});
