//! The first enables a disabled account that has the role, whose password they know.

use super::protected_lock::{A_DAY_LATER, is_refused, scene, sign_in_by_password};
use crate::support::on;
use domain::access::Role;
use reqwest::Method;
use serde_json::json;

#[tokio::test]
async fn approver_enabled_by_the_first_within_a_day() {
    let scene = scene().await;
    let server = &scene.server;
    let former = server.add_user("former", on(Role::Approver, None, None)).await;
    for step in ["disable", "enable"] {
        let path = format!("/v1/users/{former}/{step}");
        let ada = server.as_user(&scene.ada);
        ada.done(Method::POST, &path, &json!({})).await;
    }
    let former = sign_in_by_password(server, "former").await;
    let id = server.begun(&scene.ada, &scene.held).await;
    is_refused(&scene, &former, &id, "within 24 h").await;
    server.store.sql(A_DAY_LATER).await;
    assert_eq!(server.unlock_step(&former, &id, "approve").await.0, 200);
}
