//! The first gives the role to the second approver.

use domain::access::Role;
use reqwest::Method;
use serde_json::json;

use super::stage::{call, id_of, is_refused, scene};
use crate::unlock::pages::see;
use crate::unlock::stage::on;

#[tokio::test]
async fn approver_given_the_role_by_the_first_within_a_day() {
    let scene = scene().await;
    let stage = &scene.stage;
    let bob = stage.person("bob", on(Role::Viewer, None, None)).await;
    let path = format!("/v1/people/{}/grants", id_of(stage, "bob"));
    let grants = json!({"grants": [{"role": "approver"}]});
    call(stage, &scene.ada, Method::PUT, &path, grants).await;
    let id = stage.begun(&scene.ada, &scene.held).await;
    is_refused(&scene, &bob, &id, "within 24 h").await;
    // The page says so, too, and offers no button.
    let page = see(stage, &bob, &format!("/unlocks/{id}")).await;
    page.has("You cannot approve this: ").has("within 24 h");
    assert!(!page.text.contains("/approve\""), "{}", page.text);
    // Somebody whom another admin made an approver counts.
    let carol = stage.person("carol", on(Role::Approver, None, None)).await;
    assert_eq!(stage.act(&carol, &id, "approve").await.0, 200);
}
