//! One of two shards goes away and comes back: its resources are refused, and nothing else.

use ::backends::builtin::Builtin;
use axum::http::StatusCode;
use domain::charts::scale::TimeScale;
use domain::lease::Scope;
use leasehold::fencing_rejections;
use runtime::clock::Clock;
use serde_json::{Value, json};
use testkit::{EtcdCluster, EtcdOptions, Postgres, PostgresOptions, Throwaway, eventually};

use super::lease_server::{LeaseServer, is_granted, serve_at, token};
use super::shards::{acquire_with_key, names};
use crate::support::watching::ReadParts;

async fn postgres() -> Postgres {
    let options = PostgresOptions {
        fast: true,
        ..Default::default()
    };
    Throwaway::postgres(options).await.unwrap()
}

async fn etcd() -> EtcdCluster {
    let options = EtcdOptions {
        fast: true,
        ..Default::default()
    };
    Throwaway::etcd_cluster(1, options).await.unwrap()
}

async fn status_of_acquire(server: &LeaseServer, name: &str) -> StatusCode {
    let body = json!({"resource": name, "ownerId": "o", "ttlSeconds": 60});
    server.post("/v1/locks/acquire", body).await.0
}

async fn listed(server: &LeaseServer) -> (Vec<String>, bool) {
    let (status, page) = server.get("/v1/locks?prefix=job:").await;
    assert_eq!(status, StatusCode::OK, "{page}");
    let locks = page["locks"].as_array().unwrap().iter();
    let names = locks.map(|lock| lock["resource"].as_str().unwrap().to_owned());
    (names.collect(), page["complete"].as_bool().unwrap())
}

/// Holds two resources of each shard; returns the leases by shard.
async fn hold(server: &LeaseServer) -> [Vec<Value>; 2] {
    let mut leases = [Vec::new(), Vec::new()];
    for (shard, leases) in (0..).zip(&mut leases) {
        for name in names(shard, 2) {
            leases.push(server.acquire(&name, "o", 300).await);
        }
    }
    leases
}

/// While shard 1 is down.
async fn check_outage(server: &LeaseServer, leases: &[Vec<Value>; 2]) {
    let unavailable = StatusCode::SERVICE_UNAVAILABLE;
    let (own, others) = (names(0, 40), names(1, 40));
    assert_eq!(server.renew_once(&leases[1][0]).await.0, unavailable);
    assert_eq!(server.delete_once(&leases[1][0]).await.0, unavailable);
    assert_eq!(server.renew(&leases[0][0]).await.0, StatusCode::OK);
    // Keys of either shard: a key whose shard is down does not stop the grant.
    for (number, name) in own.iter().enumerate().skip(2).take(16) {
        let (status, first) = acquire_with_key(server, name, &format!("outage-{number}")).await;
        assert_eq!((status, is_granted(&first)), (StatusCode::OK, true), "{first}");
        let (_, again) = acquire_with_key(server, name, &format!("outage-{number}")).await;
        assert_eq!(token(&again), token(&first));
    }
    assert_eq!(status_of_acquire(server, &others[5]).await, unavailable);
    let url = format!("/v1/resources/{}", others[0].replace(':', "%3A"));
    assert_eq!(server.get(&url).await.0, unavailable);
    eventually("the list is marked as incomplete", || async {
        listed(server).await == (sorted(&own[..18]), false)
    })
    .await;
    let states = server.service.shards();
    assert_eq!(
        states.iter().map(|shard| shard.is_down).collect::<Vec<_>>(),
        [false, true]
    );
    let observed = Builtin::new(server.service.clone(), String::new(), Clock::start());
    let parts = ReadParts::from_partial_scan(&observed).await;
    assert!(own.iter().all(|name| parts.has_read("lease", name)));
    assert!(!others.iter().any(|name| parts.has_read("lease", name)));
    // The fencing page names what is missing.
    let ever = TimeScale::new(0, i64::MAX);
    let rejections = fencing_rejections::read(&server.service, ever, &Scope::everything()).await;
    assert!(!rejections.unwrap().is_complete);
}

fn sorted(names: &[String]) -> Vec<String> {
    let mut names = names.to_vec();
    names.sort();
    names
}

/// After shard 1 answers again.
async fn check_recovery(server: &LeaseServer, leases: &[Vec<Value>; 2]) {
    eventually("its leases are renewed", || async {
        server.renew(&leases[1][0]).await.0 == StatusCode::OK
    })
    .await;
    let mut all = names(0, 18);
    all.extend(names(1, 2));
    eventually("the list is complete", || async {
        listed(server).await == (sorted(&all), true)
    })
    .await;
    // The refused acquire granted nothing.
    let free = server.acquire(&names(1, 6)[5], "p", 60).await;
    assert_eq!((is_granted(&free), token(&free)), (true, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_postgres_shard_refuses_its_resources_only() {
    let databases = [postgres().await, postgres().await];
    let urls = databases.each_ref().map(Postgres::superuser_url).join(" ");
    let server = serve_at(&urls).await;
    let leases = hold(&server).await;
    databases[1].kill().await.unwrap();
    check_outage(&server, &leases).await;
    databases[1].restart().await.unwrap();
    check_recovery(&server, &leases).await;
    server.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_starts_while_a_shard_is_down() {
    // It serves the other shard, opens this one when it answers, and does not create it again.
    let databases = [postgres().await, postgres().await];
    let urls = databases.each_ref().map(Postgres::superuser_url).join(" ");
    let server = serve_at(&urls).await;
    let leases = hold(&server).await;
    server.close().await;
    databases[1].kill().await.unwrap();
    let server = serve_at(&urls).await;
    check_outage(&server, &leases).await;
    databases[1].restart().await.unwrap();
    check_recovery(&server, &leases).await;
    server.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_paused_postgres_shard_delays_no_other() {
    // It accepts connections and does not answer: known after the first timeout.
    let databases = [postgres().await, postgres().await];
    let urls = databases.each_ref().map(Postgres::superuser_url).join(" ");
    let server = serve_at(&urls).await;
    let leases = hold(&server).await;
    databases[1].pause().await.unwrap();
    check_outage(&server, &leases).await;
    databases[1].resume().await.unwrap();
    check_recovery(&server, &leases).await;
    server.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_etcd_shard_refuses_its_resources_only() {
    let clusters = [etcd().await, etcd().await];
    let url = |cluster: &EtcdCluster| format!("etcd://{}/leasehold/", cluster.addresses());
    let urls = clusters.each_ref().map(url).join(" ");
    let server = serve_at(&urls).await;
    let leases = hold(&server).await;
    clusters[1].members[0].kill().await.unwrap();
    check_outage(&server, &leases).await;
    clusters[1].members[0].restart().await.unwrap();
    check_recovery(&server, &leases).await;
    server.close().await;
}
