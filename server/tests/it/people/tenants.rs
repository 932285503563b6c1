//! Tenants: what is outside of one's prefixes does not exist, in the list, in the tree, in counts, by name, in the lease API.

use domain::access::Role;
use reqwest::StatusCode;
use serde_json::Value;

use super::stage::{Stage, acquire, call, get, on};
use crate::support::eventually::eventually;

async fn total(stage: &Stage, token: &leasehold::identity::Secret, path: &str) -> u64 {
    get(stage, token, path).await.1["total"].as_u64().unwrap()
}

#[tokio::test]
async fn a_tenant_sees_its_own_locks_and_no_trace_of_others() {
    // Names that begin alike; the same answer for a foreign name whether or not it is held.
    let stage = Stage::start().await;
    let redis = redis::Client::open(format!("redis://127.0.0.1:{}", stage.redis.port())).unwrap();
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
    let all = stage.token("all", on(Role::Viewer, None, None)).await;
    eventually("all five are listed", || async {
        total(&stage, &all, "/v1/inventory").await == 5
    })
    .await;
    let one = stage.token("one", on(Role::Viewer, None, Some("tenant_1"))).await;

    let (_, list) = get(&stage, &one, "/v1/inventory?sort=resource").await;
    let names: Vec<&str> = list["locks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|lock| lock["resource"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["tenant_1:a", "tenant_1:b"]);
    assert_eq!(list["total"], 2);
    assert_eq!(total(&stage, &one, "/v1/inventory?q=12").await, 0);
    let (_, tree) = get(&stage, &one, "/v1/prefixes?prefix=").await;
    let children = tree["children"].as_array().unwrap();
    assert_eq!((tree["total"].as_u64(), children.len()), (Some(2), 1));
    assert_eq!(children[0]["prefix"], "tenant_1:");
    let (_, below) = get(&stage, &one, "/v1/prefixes?prefix=tenant_1:").await;
    assert_eq!(below["children"].as_array().unwrap().len(), 2);
    let (_, backends) = get(&stage, &one, "/v1/backends").await;
    let locks: u64 = backends
        .as_array()
        .unwrap()
        .iter()
        .map(|backend| backend["locks"].as_u64().unwrap_or(0))
        .sum();
    assert_eq!(locks, 2, "{backends}");

    let detail = async |name: &str| get(&stage, &one, &format!("/v1/inventory/cache/{name}")).await;
    assert_eq!(detail("tenant_1:a").await.0, StatusCode::OK);
    let neutral = |(status, problem): (StatusCode, Value), name: &str| {
        (status, problem["detail"].as_str().unwrap().replace(name, "NAME"))
    };
    assert_eq!(
        neutral(detail("tenant_12:a").await, "tenant_12:a"),
        neutral(detail("tenant_12:zz").await, "tenant_12:zz")
    );
}

#[tokio::test]
async fn the_lease_service_is_cut_along_the_same_prefixes() {
    // By name 403, held or not; by id 404 as for nothing; lists filtered; another backend's grant gives nothing here.
    let stage = Stage::start().await;
    let one = stage
        .token("one", on(Role::Client, None, Some("tenant_1:")))
        .await;
    let two = stage
        .token("two", on(Role::Client, None, Some("tenant_2:")))
        .await;
    let elsewhere = stage
        .token("elsewhere", on(Role::Client, Some("cache"), None))
        .await;
    let (status, lease) = acquire(&stage, &one, "tenant_1:job").await;
    assert_eq!(status, StatusCode::OK, "{lease}");
    for name in ["tenant_1:job", "tenant_1:free"] {
        let (status, problem) = acquire(&stage, &two, name).await;
        assert_eq!(
            (status, problem["code"].as_str()),
            (StatusCode::FORBIDDEN, Some("out_of_scope")),
            "{name}"
        );
    }
    assert_eq!(
        acquire(&stage, &elsewhere, "tenant_1:job").await.0,
        StatusCode::FORBIDDEN
    );
    let path = format!("/v1/locks/{}", lease["leaseId"].as_str().unwrap());
    assert_eq!(get(&stage, &two, &path).await.0, StatusCode::NOT_FOUND);
    let release = reqwest::Client::new().delete(stage.url(&path));
    assert_eq!(call(release, &two).await.0, StatusCode::NOT_FOUND);
    let (_, list) = get(&stage, &two, "/v1/locks").await;
    assert_eq!(list["locks"].as_array().unwrap().len(), 0);
    let (_, own) = get(&stage, &one, "/v1/locks").await;
    assert_eq!(own["locks"].as_array().unwrap().len(), 1);
}
