//! Locks of real libraries: what the evicted program's own calls do, and the waiter after it.

use ::backends::Backend;
use ::testkit::Redis;
use domain::force_release::Release;
use domain::names::{Resource, Source};
use domain::observation::Lifetime;

use super::super::{Setup, key, observe, start};
use crate::support::lock_client::LockClient;
use crate::support::unlocking::{act, generation, unlock};

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

/// A program with Symfony's lock `report`.
fn symfony(redis: &Redis, mode: &str) -> LockClient {
    let args = ["RedisStore", &redis.port().to_string(), "report", mode];
    LockClient::start("symfony_lock.php", &args)
}

fn zset() -> Source {
    Source::fixed("zset")
}

#[tokio::test]
async fn an_evicted_lock_of_symfony_in_redis_cannot_be_refreshed() {
    // A sorted set with the token and its expiry. A refresh is the same holding. The waiter polls and holds.
    let redis = start().await;
    let mut first = symfony(&redis, "write");
    first.until("held").await;
    let mut second = symfony(&redis, "write");
    assert_eq!(second.line().await, "waiting");
    let setup = Setup::new(&redis.url()).patterns(&["report"]);
    let backend = setup.unlocking(&redis.url()).backend();
    let resource = Resource::from("report");
    let (_, seen) = observe(&backend).await;
    let lock = seen.named("report");
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
    assert_eq!((&lock.source, lock.owner_count), (&zset(), 1));
    assert!(lock.owner.known().unwrap().as_str().starts_with("fingerprint:"));
    first.send("refresh").await;
    assert_eq!(first.line().await, "done");
    assert_eq!(
        lock.generation.known(),
        Some(&generation(&backend, &zset(), &resource).await)
    );
    assert_eq!(unlock(&backend, &zset(), &resource).await, Release::Released);
    assert_eq!(second.until("held").await, "");
    for (command, answer) in [("refresh", "LockConflictedException"), ("release", "done")] {
        first.send(command).await;
        assert_eq!(first.line().await, answer, "{command}");
    }
    second.send("acquired").await;
    assert_eq!(
        second.line().await,
        "true",
        "the release of the first deletes nothing"
    );
    let now = backend.inspect(&zset(), &resource).await.unwrap().lock.unwrap();
    assert_ne!(now.owner, lock.owner);
}

#[tokio::test]
async fn readers_of_symfony_are_released_together_or_not_at_all() {
    // One was reviewed when the second one joined; then both are, and the writer behind them holds.
    let redis = start().await;
    let mut first = symfony(&redis, "read");
    first.until("held").await;
    let setup = Setup::new(&redis.url()).patterns(&["report"]);
    let backend = setup.unlocking(&redis.url()).backend();
    let resource = Resource::from("report");
    let reviewed = generation(&backend, &zset(), &resource).await;
    let mut second = symfony(&redis, "read");
    second.until("held").await;
    let answer = backend
        .release(&zset(), &resource, &reviewed, &act())
        .await
        .unwrap();
    assert!(matches!(answer, Release::HolderChanged { .. }), "{answer:?}");
    for reader in [&mut first, &mut second] {
        reader.send("acquired").await;
        assert_eq!(reader.line().await, "true");
    }
    let mut writer = symfony(&redis, "write");
    assert_eq!(writer.line().await, "waiting");
    let seen = backend.inspect(&zset(), &resource).await.unwrap();
    let lock = seen.lock.unwrap();
    assert_eq!((lock.owner_count, seen.owners.len()), (2, 2));
    assert_eq!(lock.condition, None);
    assert_eq!(
        seen.blast_radius.known().unwrap().dies.len(),
        1,
        "the other reader"
    );
    assert_eq!(unlock(&backend, &zset(), &resource).await, Release::Released);
    assert_eq!(writer.line().await, "held");
}
