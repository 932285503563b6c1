//! The first opens the account of another admin, and creates the second approver as that admin.

use super::protected_lock::{A_DAY_LATER, is_refused, scene, set_password, sign_in_by_password};
use crate::support::PASSWORD;
use crate::support::on;
use domain::access::Role;
use reqwest::Method;
use serde_json::json;

#[tokio::test]
async fn approver_created_as_an_admin_whose_password_was_set() {
    let scene = scene().await;
    let server = &scene.server;
    server.user("carol", on(Role::Admin, None, None)).await;
    set_password(server, &scene.ada, "carol").await;
    let carol = sign_in_by_password(server, "carol").await;
    let body = json!({"name": "puppet", "grants": [{"role": "approver"}], "password": PASSWORD});
    server
        .as_user(&carol)
        .done(Method::POST, "/v1/users", &body)
        .await;
    let puppet = sign_in_by_password(server, "puppet").await;
    let id = server.begun(&scene.ada, &scene.held).await;
    is_refused(
        &scene,
        &puppet,
        &id,
        "the other user created the account that changed this one",
    )
    .await;
    server.store.sql(A_DAY_LATER).await;
    assert_eq!(server.unlock_step(&puppet, &id, "approve").await.0, 200);
}
