//! The first gives the role to the second approver.

use super::protected_lock::{is_refused, scene};
use crate::support::on;
use domain::access::Role;
use reqwest::Method;
use serde_json::json;

use crate::unlock::pages::see;

#[tokio::test]
async fn approver_given_the_role_by_the_first_within_a_day() {
    let scene = scene().await;
    let server = &scene.server;
    let bob = server.user("bob", on(Role::Viewer, None, None)).await;
    let path = format!("/v1/users/{}/grants", server.user_id("bob"));
    let grants = json!({"grants": [{"role": "approver"}]});
    server.as_user(&scene.ada).done(Method::PUT, &path, &grants).await;
    let id = server.begun(&scene.ada, &scene.held).await;
    is_refused(&scene, &bob, &id, "within 24 h").await;
    // The page reports it, too, and has no button.
    let page = see(server, &bob, &format!("/unlocks/{id}")).await;
    page.has("You cannot approve this: ").has("within 24 h");
    assert!(!page.text.contains("/approve\""), "{}", page.text);
    // An approver who did not get the role from the first counts.
    let carol = server.user("carol", on(Role::Approver, None, None)).await;
    assert_eq!(server.unlock_step(&carol, &id, "approve").await.0, 200);
}
