//! Tenants: locks outside the scope do not exist in the list, in the tree, in counts, by name,
//! in the lease API.

use crate::support::{TestCaller, TestServer, on, reply};
use domain::access::Role;
use serde_json::Value;

use testkit::eventually;

async fn total(server: &TestServer, token: &TestCaller, path: &str) -> u64 {
    server.as_user(token).get(path).await.1["total"].as_u64().unwrap()
}

#[tokio::test]
async fn a_tenant_sees_only_its_own_locks() {
    // Names that begin alike; the same answer for a foreign name whether or not it is held.
    let server = TestServer::builder().redis().start().await;
    let redis = redis::Client::open(format!("redis://127.0.0.1:{}", server.redis().port())).unwrap();
    let mut redis = redis.get_multiplexed_async_connection().await.unwrap();
    for name in ["tenant_1:a", "tenant_1:b", "tenant_12:a", "tenantX1:a", "other"] {
        let () = redis::cmd("SET")
            .arg(name)
            .arg("x")
            .arg("PX")
            .arg(60_000)
            .query_async(&mut redis)
            .await
            .unwrap();
    }
    let all = server.token("all", on(Role::Viewer, None, None)).await;
    eventually("all five are listed", || async {
        total(&server, &all, "/v1/inventory").await == 5
    })
    .await;
    let one = server
        .token("one", on(Role::Viewer, None, Some("tenant_1")))
        .await;

    let (_, list) = server.as_user(&one).get("/v1/inventory?sort=resource").await;
    let names: Vec<&str> = list["locks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|lock| lock["resource"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["tenant_1:a", "tenant_1:b"]);
    assert_eq!(list["total"], 2);
    assert_eq!(total(&server, &one, "/v1/inventory?q=12").await, 0);
    let (_, tree) = server.as_user(&one).get("/v1/prefixes?prefix=").await;
    let children = tree["children"].as_array().unwrap();
    assert_eq!((tree["total"].as_u64(), children.len()), (Some(2), 1));
    assert_eq!(children[0]["prefix"], "tenant_1:");
    let (_, below) = server.as_user(&one).get("/v1/prefixes?prefix=tenant_1:").await;
    assert_eq!(below["children"].as_array().unwrap().len(), 2);
    let (_, backends) = server.as_user(&one).get("/v1/backends").await;
    let locks: u64 = backends
        .as_array()
        .unwrap()
        .iter()
        .map(|backend| backend["locks"].as_u64().unwrap_or(0))
        .sum();
    assert_eq!(locks, 2, "{backends}");

    let detail = async |name: &str| {
        server
            .as_user(&one)
            .get(&format!("/v1/inventory/cache/{name}"))
            .await
    };
    assert_eq!(detail("tenant_1:a").await.0, 200);
    let neutral = |(status, problem): (u16, Value), name: &str| {
        (status, problem["detail"].as_str().unwrap().replace(name, "NAME"))
    };
    assert_eq!(
        neutral(detail("tenant_12:a").await, "tenant_12:a"),
        neutral(detail("tenant_12:zz").await, "tenant_12:zz")
    );
}

#[tokio::test]
async fn the_lease_service_enforces_the_same_prefixes() {
    // By name 403, held or not; by id 404 as for nothing; lists filtered; another backend's grant gives nothing here.
    let server = TestServer::builder().redis().start().await;
    let one = server
        .token("one", on(Role::Client, None, Some("tenant_1:")))
        .await;
    let two = server
        .token("two", on(Role::Client, None, Some("tenant_2:")))
        .await;
    let elsewhere = server
        .token("elsewhere", on(Role::Client, Some("cache"), None))
        .await;
    let (status, lease) = server.as_user(&one).acquire("tenant_1:job").await;
    assert_eq!(status, 200, "{lease}");
    for name in ["tenant_1:job", "tenant_1:free"] {
        let (status, problem) = server.as_user(&two).acquire(name).await;
        assert_eq!(
            (status, problem["code"].as_str()),
            (403, Some("out_of_scope")),
            "{name}"
        );
    }
    assert_eq!(server.as_user(&elsewhere).acquire("tenant_1:job").await.0, 403);
    let path = format!("/v1/locks/{}", lease["leaseId"].as_str().unwrap());
    assert_eq!(server.as_user(&two).get(&path).await.0, 404);
    let release = reqwest::Client::new().delete(server.url(&path));
    assert_eq!(reply(two.authenticate(release)).await.0, 404);
    let (_, list) = server.as_user(&two).get("/v1/locks").await;
    assert_eq!(list["locks"].as_array().unwrap().len(), 0);
    let (_, own) = server.as_user(&one).get("/v1/locks").await;
    assert_eq!(own["locks"].as_array().unwrap().len(), 1);
}
