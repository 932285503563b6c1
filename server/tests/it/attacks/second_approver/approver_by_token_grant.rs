//! A token gives the role to the second approver.

use super::protected_lock::{A_DAY_LATER, is_refused, scene};
use crate::support::on;
use domain::access::Role;
use reqwest::Method;
use serde_json::json;

#[tokio::test]
async fn role_granted_by_a_token_does_not_count() {
    // It does not count, not even after a day, until another signed-in admin grants the role.
    let scene = scene().await;
    let server = &scene.server;
    let automation = server.token("automation", on(Role::Admin, None, None)).await;
    let bob = server.user("bob", on(Role::Viewer, None, None)).await;
    let path = format!("/v1/users/{}/grants", server.user_id("bob"));
    let grants = json!({"grants": [{"role": "approver"}]});
    server
        .as_user(&automation)
        .done(Method::PUT, &path, &grants.clone())
        .await;
    let id = server.begun(&scene.ada, &scene.held).await;
    is_refused(&scene, &bob, &id, "API token").await;
    server.store.sql(A_DAY_LATER).await;
    is_refused(&scene, &bob, &id, "a signed-in admin must grant it").await;
    let carol = server.user("carol", on(Role::Admin, None, None)).await;
    server.as_user(&carol).done(Method::PUT, &path, &grants).await;
    assert_eq!(server.unlock_step(&bob, &id, "approve").await.0, 200);
}
