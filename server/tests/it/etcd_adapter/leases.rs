//! Time left of leases, and the keys attached to them.

use std::sync::atomic::{AtomicUsize, Ordering};

use ::backends::Backend;
use domain::observation::{Lifetime, ObservedCondition};

use super::watched_etcd::{WatchedEtcd, granted_ms, refreshed, remaining_ms};
use testkit::eventually;

#[tokio::test]
async fn a_renewal_is_found_by_the_next_scan_without_an_event() {
    // A lease of 30 s runs down for a while, then its owner renews.
    let mut watched = WatchedEtcd::start().await;
    let lease = watched.lease(30).await;
    watched.put("/locks/a", "o", lease).await;
    eventually("two seconds are gone", async || {
        remaining_ms(watched.seen().await.lock("key", "/locks/a")) <= 28_000
    })
    .await;
    let (mut keep_alive_requests, mut answers) = watched.client.lease_keep_alive(lease).await.unwrap();
    keep_alive_requests.keep_alive().await.unwrap();
    answers.message().await.unwrap().unwrap();
    assert!(remaining_ms(watched.seen().await.lock("key", "/locks/a")) >= 29_000);
}

#[tokio::test]
async fn a_lease_refilled_by_a_restart_is_no_new_acquisition() {
    // The granted TTL is constant, the time left rises by the restart, and the acquisition time is unknown.
    let mut watched = WatchedEtcd::start().await;
    let lease = watched.lease(30).await;
    watched.put("/locks/a", "o", lease).await;
    eventually("some seconds are gone", async || {
        remaining_ms(watched.seen().await.lock("key", "/locks/a")) <= 26_000
    })
    .await;
    let before = remaining_ms(watched.seen().await.lock("key", "/locks/a"));
    watched.etcd.kill().await.unwrap();
    watched.etcd.restart().await.unwrap();
    let seen = watched.seen().await;
    let lock = seen.lock("key", "/locks/a");
    assert!(remaining_ms(lock) > before, "{lock:?}, before {before}");
    assert_eq!(granted_ms(lock), 30_000);
    assert!(lock.acquired_at.is_unknown());
    assert!(remaining_ms(lock) < 40_000);
}

#[tokio::test]
async fn an_expired_lease_removes_its_lock() {
    // Observed all the while: never shown with more than its TTL, and gone in the end.
    let mut watched = WatchedEtcd::start().await;
    let lease = watched.lease(1).await;
    watched.put("/locks/short", "o", lease).await;
    assert!(remaining_ms(watched.seen().await.lock("key", "/locks/short")) <= 1_000);
    eventually("it is gone", async || {
        let seen = watched.seen().await;
        assert!(seen.whole(), "{:?}", seen.pass());
        for (_, lock) in seen.locks.values() {
            assert!(remaining_ms(lock) <= 1_000, "{lock:?}");
        }
        seen.locks.is_empty()
    })
    .await;
    let seen = refreshed(&watched.backend, &[("key", "/locks/short")])
        .await
        .unwrap();
    assert_eq!((seen.locks.len(), seen.gone.len()), (0, 1));
}

#[tokio::test]
async fn keys_that_share_a_lease_name_each_other() {
    // Three keys on one lease: two below the configured prefix and one outside of it.
    let mut watched = WatchedEtcd::start().await;
    let lease = watched.lease(60).await;
    watched.put("/locks/a", "o", lease).await;
    watched.put("/locks/b", "o", lease).await;
    watched.put("/other/\u{202e}c", "o", lease).await;
    let seen = watched.seen().await;
    assert_eq!(
        remaining_ms(seen.lock("key", "/locks/a")),
        remaining_ms(seen.lock("key", "/locks/b"))
    );
    let lock = seen.lock("key", "/locks/a");
    let detail = watched
        .backend
        .inspect(&lock.source, &lock.resource)
        .await
        .unwrap();
    assert_eq!(detail.related_locks.len(), 2, "{:?}", detail.related_locks);
    assert!(detail.related_locks[0].contains("/locks/b") && detail.related_locks[1].contains("/other/"));
    let raw = |name: &str| &detail.raw.iter().find(|field| field.name == name).unwrap().value;
    assert_eq!((raw("key").as_str(), raw("value").as_str()), ("/locks/a", "o"));
    assert_eq!(
        (raw("lease"), raw("granted TTL").as_str()),
        (&format!("{lease:x}"), "60 s")
    );
    for name in ["create revision", "mod revision", "version", "remaining TTL"] {
        raw(name);
    }
}

#[tokio::test]
async fn a_lease_in_its_last_second_is_not_expired() {
    // etcd reports 0 for it; it must then read as a fraction of a second, never as expired.
    let mut watched = WatchedEtcd::start().await;
    let lease = watched.lease(2).await;
    watched.put("/locks/a", "o", lease).await;
    let slivers = AtomicUsize::new(0);
    eventually("it is gone", async || {
        let seen = watched.seen().await;
        for (_, lock) in seen.locks.values() {
            assert!(
                !matches!(lock.condition, Some(ObservedCondition::Note { .. })),
                "{lock:?}"
            );
            assert!(
                matches!(
                    lock.lifetime,
                    Lifetime::Leased {
                        remaining_ms: 1..,
                        ..
                    }
                ),
                "{lock:?}"
            );
            slivers.fetch_add(usize::from(remaining_ms(lock) == 1), Ordering::Relaxed);
        }
        seen.locks.is_empty()
    })
    .await;
    assert!(slivers.into_inner() > 0);
}
