//! A token or an account created by a user reviews that user's break-glass unlock.

use super::protected_lock::{NAME, Scene, by_link, make_token, make_user, scene};
use crate::support::{code, on};
use crate::unlock::requests::state;
use domain::access::Role;
use serde_json::json;

#[tokio::test]
async fn token_reviews_the_break_glass_of_its_creator() {
    let Scene {
        server, ada, held, ..
    } = scene().await;
    let token = make_token(&server, &ada, "reviewer", "approver").await;
    let id = server.begun(&ada, &held).await;
    let body = json!({"resource": NAME, "breakGlassReason": "no approver answers the pager"});
    let done = server
        .as_user(&ada)
        .post(&format!("/v1/unlocks/{id}/confirm"), &body)
        .await;
    assert_eq!(state(&done), (200, "released"), "{}", done.1);
    assert_eq!(
        code(&server.unlock_step(&token, &id, "review").await),
        (403, "forbidden")
    );
    let puppet = make_user(&server, &ada, "puppet", "approver").await;
    let puppet = by_link(&server, &ada, &puppet).await;
    assert_eq!(
        code(&server.unlock_step(&puppet, &id, "review").await),
        (403, "forbidden")
    );
    let bob = server.user("bob", on(Role::Approver, None, None)).await;
    assert_eq!(server.unlock_step(&bob, &id, "review").await.0, 200);
}
