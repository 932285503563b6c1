//! Token floors of etcd shards, which the SQL store keeps one by one.

use ::lease::LeaseConfig;
use ::testkit::{EtcdOptions, Throwaway};
use serde_json::{Value, json};
use sqlx::{Connection as _, SqliteConnection};
use testkit::eventually;

use super::lease_server::{lease_stores, token};
use super::shards::names;
use crate::support::{Store, TestServer};

/// By one raised epoch.
const RAISED: u64 = 1 << 32;

async fn recorded(store: &Store) -> Vec<(String, String)> {
    let mut connection = SqliteConnection::connect(&store.console_url()).await.unwrap();
    let select = "SELECT key, value FROM settings WHERE key LIKE 'lease_token_floor%'";
    sqlx::query_as(select).fetch_all(&mut connection).await.unwrap()
}

async fn acquire(server: &TestServer, shard: u32, nth: usize) -> Value {
    let body = json!({"resource": names(shard, nth + 1)[nth], "ownerId": "o", "ttlSeconds": 60});
    let acquire = server.client.post(server.url("/v1/locks/acquire")).json(&body);
    acquire.send().await.unwrap().json().await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_token_floor_of_a_shard_raises_no_other() {
    let fast = EtcdOptions {
        fast: true,
        ..EtcdOptions::default()
    };
    let etcd = Throwaway::etcd_cluster(1, fast).await.unwrap();
    let urls = [0, 1].map(|shard| format!("etcd://{}/leasehold-{shard}/", etcd.addresses()));
    let lease = LeaseConfig {
        store: lease_stores(&urls.join(" ")),
        ..LeaseConfig::default()
    };
    let builder = || TestServer::builder().lease(lease.clone()).operator();
    let server = builder().start().await;
    for shard in [0, 1] {
        assert_eq!(token(&acquire(&server, shard, 0).await), 1);
    }
    let store = server.stop().await;
    assert_eq!(recorded(&store).await, []);

    let file = store.folder().join("leasehold.toml");
    let toml = format!("store = \"{}\"\n[lease]\nstore = {urls:?}\n", store.url);
    std::fs::write(&file, toml).unwrap();
    let mut raise = tokio::process::Command::new(env!("CARGO_BIN_EXE_leasehold"));
    raise
        .args(["migrate", "--raise-epoch", "--shard", "1", "--config"])
        .arg(&file);
    let raised = raise.output().await.unwrap();
    assert!(
        raised.status.success(),
        "{}",
        String::from_utf8_lossy(&raised.stderr)
    );

    let server = builder().start_on(store).await;
    eventually("the floor of the raised shard is recorded", async || {
        let floor = ("lease_token_floor_1".to_owned(), (RAISED + 1).to_string());
        recorded(&server.store).await == [floor]
    })
    .await;
    let store = server.stop().await;
    // A start compares each shard with the floor that was recorded for it.
    let server = builder().start_on(store).await;
    assert_eq!(token(&acquire(&server, 0, 1).await), 1);
    let of_raised = token(&acquire(&server, 1, 1).await);
    assert!((RAISED..2 * RAISED).contains(&of_raised), "{of_raised}");
}
