//! A token gives the role to the second approver.

use domain::access::Role;
use reqwest::Method;
use serde_json::json;

use super::stage::{A_DAY_LATER, call, id_of, is_refused, scene};
use crate::unlock::stage::on;

#[tokio::test]
async fn role_granted_by_a_token_does_not_count() {
    // Not to anyone, not after a day; until a signed-in admin grants it, and that was a day ago.
    let scene = scene().await;
    let stage = &scene.stage;
    let automation = stage.token("automation", on(Role::Admin, None, None)).await;
    let bob = stage.person("bob", on(Role::Viewer, None, None)).await;
    let path = format!("/v1/people/{}/grants", id_of(stage, "bob"));
    let grants = json!({"grants": [{"role": "approver"}]});
    call(stage, &automation, Method::PUT, &path, grants.clone()).await;
    let id = stage.begun(&scene.ada, &scene.held).await;
    is_refused(&scene, &bob, &id, "API token").await;
    stage.home.sql(A_DAY_LATER).await;
    is_refused(&scene, &bob, &id, "a signed-in admin must grant it").await;
    let carol = stage.person("carol", on(Role::Admin, None, None)).await;
    call(stage, &carol, Method::PUT, &path, grants).await;
    assert_eq!(stage.act(&bob, &id, "approve").await.0, 200);
}
