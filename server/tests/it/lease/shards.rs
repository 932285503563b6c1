//! Leases on several stores: which store has a resource, merged lists, idempotency keys, and which sets are refused.

use std::collections::BTreeSet;

use ::lease::{LeaseConfig, LeaseOpenError, LeaseService, ShardMap};
use axum::http::StatusCode;
use domain::names::Resource;
use runtime::clock::Clock;
use serde_json::{Value, json};
use sqlx::{Connection as _, PgConnection};
use tokio_util::sync::CancellationToken;

use super::lease_server::{
    LeaseServer, LeaseStore, StoreKind, answer, id, is_granted, lease_stores, serve_at, token,
};

/// Names of the first or the second of two shards.
pub(super) fn names(shard: u32, count: usize) -> Vec<String> {
    let map = ShardMap::new(2).unwrap();
    let of_shard = |name: &String| map.of_resource(&Resource::from(name.as_str())).get() == shard;
    (0..)
        .map(|n| format!("job:{n}"))
        .filter(of_shard)
        .take(count)
        .collect()
}

pub(super) async fn acquire_with_key(server: &LeaseServer, resource: &str, key: &str) -> (StatusCode, Value) {
    let body = json!({"resource": resource, "ownerId": "o", "ttlSeconds": 60});
    let request = server.http.post(format!("{}/v1/locks/acquire", server.base));
    answer(request.header("Idempotency-Key", key).json(&body)).await
}

async fn open(urls: &str, installation: &str) -> Result<(), String> {
    let mut stores = lease_stores(urls);
    if let Some(stores) = &mut stores {
        stores.set_installation(installation);
    }
    let config = LeaseConfig {
        store: stores,
        ..LeaseConfig::default()
    };
    let url = urls.split(' ').next().unwrap();
    let opened = LeaseService::open(url, config, Clock::start(), CancellationToken::new()).await;
    match opened {
        Ok(service) => {
            service.close().await;
            Ok(())
        }
        Err(error @ LeaseOpenError::Shard(_)) => Err(error.to_string()),
        Err(error) => panic!("{error:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_resource_is_in_the_database_of_its_shard() {
    // The rows, the shard in the lease id, and a list of both in the order of names, in pages.
    let store = LeaseStore::new(StoreKind::PostgresShards).await;
    let server = store.serve().await;
    let map = ShardMap::new(2).unwrap();
    let mut all = BTreeSet::new();
    for (shard, url) in (0..).zip(store.url.split(' ')) {
        let names = names(shard, 5);
        for name in &names {
            let lease = server.acquire(name, "o", 60).await;
            assert_eq!((token(&lease), map.of_lease(id(&lease)).get()), (1, shard));
        }
        let mut connection = PgConnection::connect(url).await.unwrap();
        let select = "SELECT resource FROM leases WHERE resource LIKE 'job:%'";
        let rows: Vec<String> = sqlx::query_scalar(select)
            .fetch_all(&mut connection)
            .await
            .unwrap();
        assert_eq!(
            rows.into_iter().collect::<BTreeSet<_>>(),
            names.iter().cloned().collect()
        );
        all.extend(names);
    }
    let (mut listed, mut cursor) = (Vec::new(), String::new());
    loop {
        let (status, page) = server.get(&format!("/v1/locks?limit=3{cursor}")).await;
        assert_eq!((status, &page["complete"]), (StatusCode::OK, &json!(true)));
        let rows = page["locks"].as_array().unwrap().iter();
        listed.extend(rows.map(|lock| lock["resource"].as_str().unwrap().to_owned()));
        match page["nextCursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(listed, all.into_iter().collect::<Vec<_>>());
    server.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_is_bound_to_one_request_over_all_shards() {
    // Whatever the shards of the key and of the two resources: the first request has it, and has one lease.
    for kind in [StoreKind::PostgresShards, StoreKind::EtcdShards] {
        let store = LeaseStore::new(kind).await;
        let servers = [store.serve().await, store.serve().await];
        let pairs: Vec<(String, String)> = names(0, 8).into_iter().zip(names(1, 8)).collect();
        for (number, (one, other)) in pairs.iter().enumerate() {
            let key = format!("key-{number}");
            let (status, first) = acquire_with_key(&servers[0], one, &key).await;
            assert_eq!(status, StatusCode::OK, "{first}");
            let (status, problem) = acquire_with_key(&servers[1], other, &key).await;
            assert_eq!(status, StatusCode::CONFLICT, "{kind:?} {key}: {problem}");
            let (_, again) = acquire_with_key(&servers[1], one, &key).await;
            assert_eq!((id(&again), token(&again)), (id(&first), 1));
        }
        for server in servers {
            server.close().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claimed_key_without_a_grant_is_granted_once() {
    // As after a crash between the claim and the grant: only the claim exists, and the retry continues from it.
    let store = LeaseStore::new(StoreKind::PostgresShards).await;
    let server = store.serve().await;
    let mut claimed = 0;
    for (number, name) in names(0, 8).iter().enumerate() {
        let key = format!("key-{number}");
        let (_, first) = acquire_with_key(&server, name, &key).await;
        let forget = format!(
            "DELETE FROM idempotency_keys WHERE key = '{key}' AND lease_id IS NOT NULL; UPDATE leases SET ended_at = \
             acquired_at, ended_how = 'expired' WHERE lease_id = '{}'",
            first["leaseId"].as_str().unwrap()
        );
        store.sql(&forget).await;
        let mut claims = 0;
        for url in store.url.split(' ') {
            let mut connection = PgConnection::connect(url).await.unwrap();
            let select = "SELECT count(*) FROM idempotency_keys WHERE key = $1";
            let found: i64 = sqlx::query_scalar(select)
                .bind(&key)
                .fetch_one(&mut connection)
                .await
                .unwrap();
            claims += found;
        }
        claimed += claims;
        let (status, second) = acquire_with_key(&server, name, &key).await;
        assert_eq!((status, is_granted(&second)), (StatusCode::OK, true), "{second}");
        assert_eq!(token(&second), 2);
        let (_, again) = acquire_with_key(&server, name, &key).await;
        assert_eq!((id(&again), token(&again)), (id(&second), 2));
    }
    assert!(claimed > 0, "no key had a shard of its own");
    server.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_set_that_was_not_created_is_refused() {
    // Another order, one store twice, and another number; then the right set opens.
    for kind in [StoreKind::PostgresShards, StoreKind::EtcdShards] {
        let store = LeaseStore::new(kind).await;
        let [first, second] = store.url.split(' ').collect::<Vec<_>>().try_into().unwrap();
        let server = serve_at(&store.url).await;
        for name in names(0, 1).iter().chain(&names(1, 1)) {
            server.acquire(name, "o", 60).await;
        }
        server.close().await;
        let twice = first.replace("127.0.0.1", "localhost");
        // Two more stores, which do not exist yet.
        let more = match kind {
            StoreKind::PostgresShards => {
                store.sql_once("CREATE DATABASE shard_2").await;
                store.sql_once("CREATE DATABASE shard_3").await;
                [
                    second.replace("shard_1", "shard_2"),
                    second.replace("shard_1", "shard_3"),
                ]
            }
            _ => ["2", "3"].map(|index| second.replace("-1/", &format!("-{index}/"))),
        };
        let cases = [
            (format!("{second} {first}"), "was created as shard 1"),
            (format!("{first} {twice}"), "name each store once"),
            (
                format!("{first} {second} {} {}", more[0], more[1]),
                "one of 2 shards, and lease.store names 4",
            ),
        ];
        for (urls, why) in cases {
            let refusal = open(&urls, "test").await.unwrap_err();
            assert!(refusal.contains(why), "{refusal}");
        }
        open(&store.url, "test").await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_of_others_does_not_become_a_shard() {
    let store = LeaseStore::new(StoreKind::PostgresShards).await;
    let [first, second] = store.url.split(' ').collect::<Vec<_>>().try_into().unwrap();
    let server = serve_at(&store.url).await;
    server.acquire(&names(0, 1)[0], "o", 60).await;
    server.close().await;
    let other = open(&store.url, "other").await.unwrap_err();
    assert!(other.contains("another installation"), "{other}");
    let one = open(first, "test").await.unwrap_err();
    assert!(one.contains("holds the leases of shard 0 of 2"), "{one}");
    // The database of shard 1 is lost, and an empty one has its name.
    store.sql_once("DROP DATABASE shard_1").await;
    store.sql_once("CREATE DATABASE shard_1").await;
    let lost = open(&store.url, "test").await.unwrap_err();
    assert!(lost.contains("is empty, and shard 0 has issued"), "{lost}");
    // A store with leases of its own.
    store.sql_once("CREATE DATABASE alone").await;
    let alone = second.replace("shard_1", "alone");
    let server = serve_at(&alone).await;
    server.acquire("r", "o", 60).await;
    server.close().await;
    let with_leases = open(&format!("{alone} {second}"), "test").await.unwrap_err();
    assert!(with_leases.contains("a store without shards"), "{with_leases}");
}
