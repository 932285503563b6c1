//! Locks of real libraries: what the evicted program's own calls do, and the waiter after it.

use ::backends::Backend;
use domain::force_release::Release;
use domain::names::Resource;
use domain::observation::{Lifetime, ObservedCondition};

use super::super::{Setup, key, observe, start};
use crate::support::lock_client::LockClient;
use crate::support::unlocking::unlock;

#[tokio::test]
async fn an_evicted_lock_of_laravel_or_redis_py_is_not_released() {
    // The waiter polls and holds; what the evicted program does then leaves the waiter's key alone.
    let calls_of_redis_py = [("extend", "LockNotOwnedError"), ("release", "LockNotOwnedError")];
    for (script, kind, name, calls) in [
        (
            "laravel_lock.php",
            "redis",
            "app_cache:report",
            &[("release", "false")][..],
        ),
        ("redis_py_lock.py", "redis-py", "report", &calls_of_redis_py),
    ] {
        let redis = start().await;
        let args = [kind, &redis.port().to_string(), "report", "600"];
        let mut first = LockClient::start(script, &args);
        first.until("held").await;
        let mut second = LockClient::start(script, &args);
        assert_eq!(second.line().await, "waiting");
        let setup = Setup::new(&redis.url()).patterns(&[name]).unlocking(&redis.url());
        let backend = setup.backend();
        let resource = Resource::from(name);
        let seen = backend.inspect(&key(), &resource).await.unwrap();
        let lock = seen.lock.unwrap();
        assert!(
            matches!(
                lock.lifetime,
                Lifetime::Leased {
                    remaining_ms: 500_000..=600_000,
                    ..
                }
            ),
            "{lock:?}"
        );
        assert_eq!(unlock(&backend, &key(), &resource).await, Release::Released);
        second.until("held").await;
        for (call, answer) in calls {
            first.send(call).await;
            assert_eq!(first.line().await, *answer, "{kind}: {call}");
        }
        let now = backend.inspect(&key(), &resource).await.unwrap().lock.unwrap();
        assert_ne!(now.owner, lock.owner);
        assert!(now.owner.is_known(), "the fingerprint of the value");
    }
}

#[tokio::test]
async fn a_lock_without_seconds_has_no_ttl() {
    // Laravel with 0 seconds, and redis-py without a timeout.
    for (script, kind, name) in [
        ("laravel_lock.php", "redis", "app_cache:report"),
        ("redis_py_lock.py", "redis-py", "report"),
    ] {
        let redis = start().await;
        let mut client = LockClient::start(script, &[kind, &redis.port().to_string(), "report", "0"]);
        client.until("held").await;
        let backend = Setup::new(&redis.url()).patterns(&[name]).backend();
        let lock = backend
            .inspect(&key(), &Resource::from(name))
            .await
            .unwrap()
            .lock
            .unwrap();
        assert!(matches!(lock.lifetime, Lifetime::NoTtl { .. }), "{lock:?}");
    }
}

#[tokio::test]
async fn a_lock_of_symfony_in_redis_is_a_row_of_state_unknown() {
    // A sorted set: its row says so, and is not unlocked.
    let redis = start().await;
    let mut client = LockClient::start(
        "symfony_lock.php",
        &["RedisStore", &redis.port().to_string(), "report"],
    );
    client.until("held").await;
    let backend = Setup::new(&redis.url()).patterns(&["report"]).backend();
    let (_, seen) = observe(&backend).await;
    let lock = seen.named("report");
    assert!(
        matches!(&lock.condition, Some(ObservedCondition::Unrecognised { why }) if why.contains("zset")),
        "{lock:?}"
    );
    assert!(!lock.generation.is_known() && !lock.owner.is_known());
}
