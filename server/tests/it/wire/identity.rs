//! Users, tokens, sessions, roles.

use domain::access::Role;
use reqwest::Method;
use serde_json::{Value, json};

use super::http_client::SnapshotClient;
use crate::support::{TestServer, on};

#[tokio::test]
async fn bodies_of_users_tokens_and_sessions() {
    let server = TestServer::start().await;
    let ada = server.user("ada", on(Role::Admin, None, None)).await;
    let client = SnapshotClient {
        server: &server,
        caller: &ada,
    };
    client.get("/v1/me").await;
    client.get("/v1/roles").await;
    client.get("/v1/sessions").await;
    let grants = json!([{"role": "viewer", "backend": "builtin", "prefix": "jobs/"}]);
    let user = client
        .post("/v1/users", json!({"name": "vera", "grants": grants}))
        .await;
    let link = format!("/v1/users/{}/link", user["id"].as_str().unwrap());
    client
        .send(Method::POST, "/v1/users/{id}/link", &link, Value::Null)
        .await;
    client.get("/v1/users").await;
    let token = json!({"name": "deploy", "grants": grants, "expiresInSeconds": 3_600});
    client.post("/v1/tokens", token).await;
    client.get("/v1/tokens").await;
    let bea = server.user("bea", on(Role::Admin, None, None)).await;
    let token = json!({"name": "ci", "grants": grants});
    server
        .as_user(&bea)
        .done(Method::POST, "/v1/tokens", &token)
        .await;
    let disable = format!("/v1/users/{}/disable", server.user_id("bea"));
    client
        .send(Method::POST, "/v1/users/{id}/disable", &disable, Value::Null)
        .await;
    client
        .send(Method::DELETE, "/v1/tokens/{id}", "/v1/tokens/ci", Value::Null)
        .await;
    let read_only = json!({"readOnly": true});
    client
        .send(Method::PUT, "/v1/read-only", "/v1/read-only", read_only)
        .await;
}
