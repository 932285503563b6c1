//! Holders on a real Redis that renew as client libraries do and then die, with the default poll interval: each is flagged
//! before its lease ends, and no answer shows a healthy lock with a negative time left.

use crate::support::TestServer;
use std::collections::HashSet;
use std::time::Duration;

use ::testkit::{RedisOptions, Throwaway};
use tokio::time::sleep;

/// Key, TTL and renewal interval in milliseconds; without an interval the client never renews.
const CLIENTS: [(&str, u64, Option<u64>); 5] = [
    ("lock:python-redis-lock", 6_000, Some(4_000)),
    ("lock:redlock-using", 3_000, Some(2_468)),
    ("lock:aioredlock", 5_000, Some(3_000)),
    ("lock:redis-py-extended", 6_000, Some(3_500)),
    ("lock:redis-py", 6_000, None),
];
const RENEWALS: u64 = 4;

async fn hold(url: String, key: &'static str, ttl_ms: u64, every_ms: Option<u64>) {
    let client = redis::Client::open(url).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let mut set = redis::cmd("SET");
    set.arg(key).arg("worker-1").arg("PX").arg(ttl_ms);
    let _: redis::Value = set.query_async(&mut connection).await.unwrap();
    let Some(every_ms) = every_ms else { return };
    for _ in 0..RENEWALS {
        // The rhythm of the holder, on a real Redis.
        sleep(Duration::from_millis(every_ms)).await;
        let mut renew = redis::cmd("PEXPIRE");
        renew.arg(key).arg(ttl_ms);
        let _: redis::Value = renew.query_async(&mut connection).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn dead_holders_are_flagged_before_their_leases_end() {
    let redis = Throwaway::redis(RedisOptions::default()).await.unwrap();
    let toml = format!(
        "[[backend]]\nname = \"cache\"\nkind = \"redis\"\nurls = [\"{}\"]\npatterns = [\"lock:*\"]\n",
        redis.url()
    );
    let console = TestServer::builder().config(&toml).operator().start().await;
    console.ready().await;
    let mut holders = tokio::task::JoinSet::new();
    for (key, ttl_ms, every_ms) in CLIENTS {
        holders.spawn(hold(redis.url(), key, ttl_ms, every_ms));
    }
    let (mut seen, mut flagged) = (HashSet::new(), HashSet::new());
    // Until every holder has died and its key is gone.
    loop {
        let page = console.json("/v1/inventory?backend=cache").await;
        let locks = page["locks"].as_array().unwrap();
        for lock in locks {
            let key = lock["resource"].as_str().unwrap().to_owned();
            let state = lock["state"].as_str().unwrap();
            let left_ms = lock["remainingMs"].as_i64().unwrap();
            let is_over = matches!(state, "expired" | "unknown" | "stale");
            assert_eq!(left_ms <= 0, is_over, "{key} is {state} with {left_ms} ms left");
            if matches!(state, "near_expiry" | "not_renewing") {
                flagged.insert(key.clone());
            }
            seen.insert(key);
        }
        if locks.is_empty() && seen.len() == CLIENTS.len() {
            break;
        }
        // Pause between two polls.
        sleep(Duration::from_millis(20)).await;
    }
    let missed: Vec<_> = seen.difference(&flagged).collect();
    assert!(missed.is_empty(), "healthy to their end: {missed:?}");
    console.stop().await;
}
