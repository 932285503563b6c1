//! Waiters of real libraries that sleep until a signal: woken by a forced unlock where `wake` names the library.

use std::time::Duration;

use ::backends::Backend;
use ::config::redis::RedisWake;
use ::testkit::{Redis, hangs};
use domain::force_release::Release;
use domain::names::Resource;

use super::super::{Setup, driver, key, run, start};
use crate::support::lock_client::LockClient;
use crate::support::unlocking::unlock;

/// A client that waits for this lock.
async fn start_waiter(library: &str, redis: &Redis, name: &str) -> LockClient {
    let mut waiter = match library {
        "ioredis-mutex" => LockClient::start("mutex.mjs", &[&redis.url(), &format!("lock:{name}")]),
        _ => LockClient::start("wait.py", &[library, &redis.port().to_string(), name]),
    };
    assert_eq!(waiter.line().await, "waiting");
    waiter
}

/// One waiter sleeps in a blocking command or on the library's channel.
async fn until_asleep(redis: &Redis, library: &str) {
    let mut driver = driver(redis).await;
    testkit::within(Duration::from_secs(60), "the waiter sleeps", async || {
        let clients: String = redis::cmd("CLIENT")
            .arg("LIST")
            .query_async(&mut driver)
            .await
            .unwrap();
        if library == "ioredis-mutex" {
            // Subscribed, and its attempt has failed.
            clients.contains("cmd=subscribe") && clients.contains("cmd=set")
        } else {
            clients.contains("cmd=blpop")
        }
    })
    .await;
}

async fn woken(library: &'static str, wake: RedisWake) {
    let redis = start().await;
    run(
        &mut driver(&redis).await,
        &["SET", "lock:orders", "another-holder", "PX", "3600000"],
    )
    .await;
    let mut waiter = start_waiter(library, &redis, "orders").await;
    until_asleep(&redis, library).await;
    let mut setup = Setup::new(&redis.url()).unlocking(&redis.url());
    setup.redis.wake = wake;
    let backend = setup.backend();
    let resource = Resource::from("lock:orders");
    let seen = backend.inspect(&key(), &resource).await.unwrap();
    let warnings = &seen.blast_radius.known().unwrap().warnings;
    let says_no = warnings.iter().any(|line| line.contains("are not woken"));
    assert_eq!(says_no, wake == RedisWake::None, "{warnings:?}");
    assert_eq!(unlock(&backend, &key(), &resource).await, Release::Released);
    if wake == RedisWake::None {
        assert!(
            hangs(Duration::from_millis(1_500), waiter.line()).await,
            "it sleeps on"
        );
    } else {
        let held = tokio::time::timeout(Duration::from_secs(60), waiter.line()).await;
        assert_eq!(held.expect("it wakes"), "held");
    }
}

#[tokio::test]
async fn waiters_of_python_redis_lock_are_woken_if_configured() {
    woken("python-redis-lock", RedisWake::PythonRedisLock).await;
    woken("python-redis-lock", RedisWake::None).await;
}

#[tokio::test]
async fn waiters_of_walrus_are_woken() {
    woken("walrus", RedisWake::Walrus).await;
}

#[tokio::test]
async fn waiters_of_ioredis_mutex_are_woken() {
    woken("ioredis-mutex", RedisWake::IoredisMutex).await;
}

#[tokio::test]
async fn a_short_value_is_a_weak_identity() {
    // ioredis-mutex writes the same value for every holder.
    let redis = start().await;
    let mut driver = driver(&redis).await;
    run(&mut driver, &["SET", "lock:a", "mutex"]).await;
    run(
        &mut driver,
        &["SET", "lock:b", "3f0c1a77-0b7e-4d8e", "PX", "60000"],
    )
    .await;
    let backend = Setup::new(&redis.url()).backend();
    for (name, is_weak) in [("lock:a", true), ("lock:b", false)] {
        let seen = backend.inspect(&key(), &name.into()).await.unwrap();
        let radius = seen.blast_radius.known().unwrap();
        assert_eq!(radius.weak_identity.is_some(), is_weak, "{name}: {radius:?}");
        let is_warned = radius.warnings.iter().any(|line| line.contains("5 bytes"));
        assert_eq!(is_warned, is_weak);
    }
}
