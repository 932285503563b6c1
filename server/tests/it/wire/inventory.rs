//! Locks of a backend, the name tree, backends, contention, health.

use domain::access::Role;
use reqwest::Method;
use serde_json::Value;

use super::http_client::SnapshotClient;
use crate::support::redis_keys::hold_key;
use crate::support::{TestServer, on};
use crate::waits::{deadlock_of_leases, deadlocked};
use testkit::eventually;

#[tokio::test]
async fn bodies_of_the_inventory() {
    // A key of Redis with a TTL, whose value is a secret.
    let server = TestServer::builder()
        .redis_polled_every("2s")
        .operator()
        .start()
        .await;
    hold_key(server.redis(), "lock:nightly-export").await;
    server.inventory_where("", |page| page["total"] == 1).await;
    eventually("every backend was scanned and probed", async || {
        let backends = server.json("/v1/backends").await;
        let mut backends = backends.as_array().unwrap().iter();
        backends.all(|backend| backend["version"].is_string() && backend["status"] == "live")
    })
    .await;
    let admin = server.token("admin", on(Role::Admin, None, None)).await;
    let client = SnapshotClient {
        server: &server,
        caller: &admin,
    };
    client.get("/v1/inventory").await;
    let lock = "/v1/inventory/cache/lock:nightly-export";
    client
        .send(
            Method::GET,
            "/v1/inventory/{backend}/{resource}",
            lock,
            Value::Null,
        )
        .await;
    client.get("/v1/prefixes").await;
    client.get("/v1/backends").await;
    client.get("/v1/contention").await;
    client.get("/healthz").await;
    client.get("/readyz").await;
    // A deadlock of two owners, with all its reasons.
    let locks = ("a:close", "b:index");
    deadlock_of_leases(&server, &admin, locks, ("worker-1", "worker-2")).await;
    deadlocked(&server, &admin).await;
    client.get("/v1/waits").await;
}
