//! Bodies of refusals: one for each code that a request can provoke.

use domain::access::Role;
use reqwest::Method;
use serde_json::{Value, json};

use super::http_client::SnapshotClient;
use crate::support::{TestCaller, TestServer, on};
use crate::unlock::requests::REASON;

#[tokio::test]
async fn problems_of_requests_and_permissions() {
    let server = TestServer::builder().redis().start().await;
    let admin = server.token("admin", on(Role::Admin, None, None)).await;
    let viewer = server.token("viewer", on(Role::Viewer, None, None)).await;
    let nobody = TestCaller::Token("unknown".to_owned());
    let tenant = server.token("tenant", on(Role::Client, None, Some("t1:"))).await;
    let as_caller = |caller| SnapshotClient {
        server: &server,
        caller,
    };
    let acquire = |resource: &str| json!({"resource": resource, "ownerId": "w", "ttlSeconds": 30});
    let get = |code, path| {
        let client = as_caller(&admin);
        async move { client.problem(code, Method::GET, path, Value::Null).await }
    };
    server.ready().await;
    get("invalid_parameter", "/v1/inventory?limit=0").await;
    get("not_found", "/v1/inventory/cache/nothing").await;
    get("no_such_route", "/v1/nothing").await;
    let post = "/v1/locks/acquire";
    as_caller(&admin)
        .problem("no_such_method", Method::PATCH, "/v1/inventory", Value::Null)
        .await;
    as_caller(&nobody)
        .problem("unauthenticated", Method::GET, "/v1/inventory", Value::Null)
        .await;
    as_caller(&viewer)
        .problem("forbidden", Method::POST, post, acquire("a"))
        .await;
    as_caller(&tenant)
        .problem("out_of_scope", Method::POST, post, acquire("t2:a"))
        .await;
    as_caller(&tenant)
        .problem("invalid", Method::POST, post, json!({"resource": "t1:a"}))
        .await;
    let everything = server.operator().await;
    as_caller(&everything)
        .problem("reserved", Method::POST, post, acquire("leasehold/a"))
        .await;
    let large =
        json!({"resource": "a", "ownerId": "w", "ttlSeconds": 30, "metadata": {"x": "x".repeat(70_000)}});
    as_caller(&everything)
        .problem("body_too_large", Method::POST, post, large)
        .await;
    let user = json!({"name": "ada", "grants": []});
    let made = server.as_user(&admin).post("/v1/users", &user).await;
    assert_eq!(made.0, 201, "{}", made.1);
    as_caller(&admin)
        .problem("exists", Method::POST, "/v1/users", user)
        .await;
    server
        .store
        .sql("ALTER TABLE audit_entries RENAME TO missing")
        .await;
    get("store_unavailable", "/v1/audit").await;
}

#[tokio::test]
async fn problems_of_leases_and_unlocks() {
    let server = TestServer::start().await;
    let operator = server.operator().await;
    let client = SnapshotClient {
        server: &server,
        caller: &operator,
    };
    let held = server.hold(&operator, "jobs/a").await;
    let intent = |generation: &str, reason: &str| json!({"backend": "builtin", "resource": "jobs/a", "generation": generation, "reason": reason});
    let unlocks = "/v1/unlocks";
    client
        .problem(
            "holder_changed",
            Method::POST,
            unlocks,
            intent("lease:0:0", REASON),
        )
        .await;
    let weak = intent(&held.generation, "x");
    client
        .problem("reason_too_weak", Method::POST, unlocks, weak)
        .await;
    let id = server.begun(&operator, &held).await;
    let (confirm, approve) = (
        format!("/v1/unlocks/{id}/confirm"),
        format!("/v1/unlocks/{id}/review"),
    );
    client
        .problem(
            "name_mismatch",
            Method::POST,
            &confirm,
            json!({"resource": "jobs/b"}),
        )
        .await;
    let released = server.confirm(&operator, &id, "jobs/a").await;
    assert_eq!(released.0, 200, "{}", released.1);
    let named = json!({"resource": "jobs/a"});
    client
        .problem("already_used", Method::POST, &confirm, named)
        .await;
    let approver = server.user("grace", on(Role::Approver, None, None)).await;
    let reviewer = SnapshotClient {
        server: &server,
        caller: &approver,
    };
    reviewer
        .problem("nothing_to_review", Method::POST, &approve, Value::Null)
        .await;
    let lease = format!("/v1/locks/{}", held.lease);
    client
        .problem("revoked", Method::POST, &format!("{lease}/renew"), json!({}))
        .await;
}

#[tokio::test]
async fn problems_of_released_leases_and_missing_approvals() {
    let server = TestServer::start().await;
    let operator = server.operator().await;
    let client = SnapshotClient {
        server: &server,
        caller: &operator,
    };
    let other = server.acquire(&operator, "jobs/c", "worker-1").await;
    let lease = format!("/v1/locks/{}", other["leaseId"].as_str().unwrap());
    let gone = server.as_user(&operator).delete(&lease).await;
    assert_eq!(gone.0, 200, "{}", gone.1);
    client
        .problem("released", Method::POST, &format!("{lease}/renew"), json!({}))
        .await;
    server.protect("jobs/").await;
    let held = server.hold(&operator, "jobs/d").await;
    let ada = server.user("ada", on(Role::Operator, None, None)).await;
    let id = server.begun(&ada, &held).await;
    let confirm = format!("/v1/unlocks/{id}/confirm");
    let user = SnapshotClient {
        server: &server,
        caller: &ada,
    };
    user.problem(
        "needs_approval",
        Method::POST,
        &confirm,
        json!({"resource": "jobs/d"}),
    )
    .await;
}
