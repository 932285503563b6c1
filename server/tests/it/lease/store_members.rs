//! Members of the lease store's etcd, on the Backends page and in the API.

use ::lease::LeaseConfig;
use ::testkit::{EtcdCluster, EtcdOptions, Throwaway};
use domain::access::Role;
use serde_json::{Value, json};
use testkit::eventually;

use super::lease_server::lease_stores;
use crate::support::{TestServer, on};
use crate::wire::assert_shape_snapshot;

async fn server_on(members: usize) -> (EtcdCluster, TestServer) {
    let fast = EtcdOptions {
        fast: true,
        ..EtcdOptions::default()
    };
    let etcd = Throwaway::etcd_cluster(members, fast).await.unwrap();
    let lease = LeaseConfig {
        store: lease_stores(&format!("etcd://{}/leasehold/", etcd.addresses())),
        ..LeaseConfig::default()
    };
    let server = TestServer::builder().lease(lease).operator().start().await;
    (etcd, server)
}

async fn clusters(server: &TestServer) -> Value {
    let backends = server.json("/v1/backends").await;
    let mut backends = backends.as_array().unwrap().iter();
    let builtin = backends.find(|backend| backend["name"] == "builtin").unwrap();
    builtin["clusters"].clone()
}

async fn cluster(server: &TestServer) -> Value {
    clusters(server).await[0].clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silent_member_is_first_with_its_age_and_remedy() {
    let (etcd, server) = server_on(3).await;
    server.add_user("ann", on(Role::Viewer, None, None)).await;
    let browser = server.signed_in("ann").await;
    eventually("all members answer", async || {
        cluster(&server).await["headline"] == "3 of 3 members answer; 1 more may fail"
    })
    .await;
    let page = browser.get("/backends").await.text().await.unwrap();
    for text in [
        "3 of 3 members answer; 1 more may fail",
        "0\u{a0}leader changes",
        "m0",
        "2.1\u{a0}GB",
    ] {
        assert!(page.contains(text), "{text} is not on the page");
    }
    assert!(!page.contains("not reachable"));
    let leader = etcd.leader().await.unwrap();
    etcd.members[leader].pause().await.unwrap();
    eventually("the loss and the election are shown", async || {
        let cluster = cluster(&server).await;
        cluster["answering"] == 2 && cluster["leaderChanges"] == 1
    })
    .await;
    let seen = cluster(&server).await;
    let first = &seen["members"][0];
    assert_eq!(first["name"], format!("m{leader}"), "{seen}");
    assert_eq!(first["role"], Value::Null, "{first}");
    assert!(
        first["unknown"]["role"].is_string() && first["answeredAt"].is_string(),
        "{first}"
    );
    let page = browser.get("/backends").await.text().await.unwrap();
    for text in [
        "not reachable",
        "Its last answer",
        "the loss of one more stops it",
        "1\u{a0}leader change",
    ] {
        assert!(page.contains(text), "{text} is not on the page");
    }
    // The two other members still serve leases.
    let body = json!({"resource": "r", "ownerId": "o", "ttlSeconds": 5});
    let acquire = server.client.post(server.url("/v1/locks/acquire")).json(&body);
    let granted: Value = acquire.send().await.unwrap().json().await.unwrap();
    assert_eq!(granted["acquired"], true, "{granted}");
    etcd.members[leader].resume().await.unwrap();
    eventually("it answers again", async || {
        cluster(&server).await["answering"] == 3
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_cluster_in_the_api_has_this_shape() {
    let (_etcd, server) = server_on(1).await;
    eventually("the member answers with its quota", async || {
        cluster(&server).await["members"][0]["quotaBytes"].is_u64()
    })
    .await;
    let mut seen = cluster(&server).await;
    for figure in ["sizeBytes", "behindLeader", "unapplied"] {
        let found = &mut seen["members"][0][figure];
        assert!(found.is_u64(), "{figure}: {found}");
        *found = json!("[count]");
    }
    assert_shape_snapshot("cluster-of-a-backend", &seen);
    // A reader of a part of the locks sees nothing of the members.
    let tenant = server.token("tenant", on(Role::Viewer, None, Some("team"))).await;
    let (_, backends) = server.as_user(&tenant).get("/v1/backends").await;
    let builtin = backends
        .as_array()
        .unwrap()
        .iter()
        .find(|it| it["name"] == "builtin")
        .unwrap();
    assert_eq!(builtin["clusters"], Value::Null, "{builtin}");
    assert!(builtin["unknown"]["clusters"].is_string(), "{builtin}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_members_of_each_shard_are_listed() {
    let fast = EtcdOptions {
        fast: true,
        ..EtcdOptions::default()
    };
    let etcd = Throwaway::etcd_cluster(1, fast).await.unwrap();
    let shards = [0, 1].map(|shard| format!("etcd://{}/leasehold-{shard}/", etcd.addresses()));
    let lease = LeaseConfig {
        store: lease_stores(&shards.join(" ")),
        ..LeaseConfig::default()
    };
    let server = TestServer::builder().lease(lease).operator().start().await;
    eventually("both are listed", async || {
        let clusters = clusters(&server).await;
        let of_shards: Vec<_> = clusters
            .as_array()
            .unwrap()
            .iter()
            .map(|of| &of["shard"])
            .collect();
        of_shards == [&json!(0), &json!(1)]
    })
    .await;
    server.add_user("ann", on(Role::Viewer, None, None)).await;
    let page = server.signed_in("ann").await.get("/backends").await;
    let page = page.text().await.unwrap();
    assert!(
        page.contains("Shard ") && page.matches("1 of 1 members answer").count() == 2,
        "{page}"
    );
}
