//! Forced unlocks on Redis through the console: the nodes of a Redlock, and holders that all write the same value.

use crate::support::{TestServer, code};
use crate::unlock::requests::state;
use ::testkit::{Redis, RedisOptions, Throwaway};
use serde_json::json;

async fn run(redis: &Redis, words: &[&str]) {
    let client = ::redis::Client::open(redis.url()).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let mut command = ::redis::cmd(words[0]);
    command.arg(&words[1..]);
    let _: ::redis::Value = command.query_async(&mut connection).await.unwrap();
}

#[tokio::test]
async fn a_redlock_is_reviewed_and_released_node_by_node() {
    // A split: both values are in the review, and each node has its result in the answer and in the audit log.
    let mut nodes = Vec::new();
    for value in ["one", "two", ""] {
        let node = Throwaway::redis(RedisOptions::default()).await.unwrap();
        if !value.is_empty() {
            run(&node, &["SET", "lock:a", value, "PX", "600000"]).await;
        }
        nodes.push(node);
    }
    let toml = format!(
        "[[backend]]\nname = \"quorum\"\nkind = \"redis\"\nmode = \"redlock\"\nurls = {:?}\n\
         unlock_user = \"leasehold-unlock\"\npoll_interval = \"1s\"\n",
        nodes.iter().map(Redis::url).collect::<Vec<_>>()
    );
    let server = TestServer::builder().config(&toml).start().await;
    let operator = server.operator().await;
    let held = server.inventory_lock(&operator, "quorum", "lock:a").await;
    let (_, detail) = server.as_user(&operator).get("/v1/inventory/quorum/lock:a").await;
    assert_eq!(
        (&detail["state"], &detail["source"], &detail["quorum"]),
        (&json!("split"), &json!("redlock"), &json!("split"))
    );
    assert_eq!(detail["nodes"][2]["value"], json!(null));
    let begun = server.begin(&operator, &held).await;
    let observed = &begun.1["observed"]["nodes"];
    let reachable: Vec<bool> = observed
        .as_array()
        .unwrap()
        .iter()
        .map(|node| node["value"].is_string())
        .collect();
    assert_eq!(reachable, [true, true, false], "{}", begun.1);
    let id = begun.1["unlockId"].as_str().unwrap();
    let confirmed = server.confirm(&operator, id, "lock:a").await;
    assert_eq!(state(&confirmed), (200, "released"));
    let results: Vec<&str> = confirmed.1["outcome"]["nodes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|node| node["result"].as_str().unwrap())
        .collect();
    assert_eq!(results, ["deleted", "deleted", "no_key"]);
    let recorded = server.unlock_entries().await;
    let is_listed = |after: &String| {
        let after: serde_json::Value = serde_json::from_str(after).unwrap();
        after["nodes"][2]["result"] == "no_key"
    };
    assert!(
        recorded
            .iter()
            .filter_map(|entry| entry.after.as_ref())
            .any(is_listed)
    );
}

#[tokio::test]
async fn the_same_value_with_more_time_left_is_refused() {
    // Every holder writes the same value: after the review the lock is released and acquired again.
    let redis = Throwaway::redis(RedisOptions::default()).await.unwrap();
    let toml = format!(
        "[[backend]]\nname = \"cache\"\nkind = \"redis\"\nurls = [\"{0}\"]\nunlock_url = \"{0}\"\npoll_interval = \"1s\"\n",
        redis.url()
    );
    let value = "a-value-that-every-holder-writes";
    run(&redis, &["SET", "lock:a", value, "PX", "60000"]).await;
    run(&redis, &["SET", "lock:b", value, "PX", "60000"]).await;
    let server = TestServer::builder().config(&toml).start().await;
    let operator = server.operator().await;
    server.inventory_lock(&operator, "cache", "lock:b").await;
    let held = server.inventory_lock(&operator, "cache", "lock:a").await;
    let begun = server.begin(&operator, &held).await;
    let warnings = begun.1["warnings"].to_string();
    assert!(
        warnings.contains("the same value is on 1 other lock now"),
        "{warnings}"
    );
    let id = begun.1["unlockId"].as_str().unwrap();
    run(&redis, &["DEL", "lock:a"]).await;
    run(&redis, &["SET", "lock:a", value, "PX", "600000"]).await;
    let refused = server.confirm(&operator, id, "lock:a").await;
    assert_eq!(code(&refused), (409, "unlock_unavailable"), "{}", refused.1);
    assert!(
        refused.1["detail"]
            .as_str()
            .unwrap()
            .starts_with("More time is left"),
        "{}",
        refused.1
    );
    // With the time as reviewed it is released.
    let held = server.inventory_lock(&operator, "cache", "lock:a").await;
    let begun = server.begin(&operator, &held).await;
    let id = begun.1["unlockId"].as_str().unwrap();
    assert_eq!(
        state(&server.confirm(&operator, id, "lock:a").await),
        (200, "released")
    );
}
