//! A token, or an account, that the first made reviews what the first did alone.

use domain::access::Role;
use serde_json::json;

use super::stage::{NAME, Scene, by_link, make_token, make_user, scene};
use crate::unlock::stage::{code, on, state};

#[tokio::test]
async fn token_reviews_what_its_maker_did_alone() {
    let Scene { stage, ada, held, .. } = scene().await;
    let token = make_token(&stage, &ada, "reviewer", "approver").await;
    let id = stage.begun(&ada, &held).await;
    let body = json!({"resource": NAME, "breakGlassReason": "nobody answers the pager"});
    let done = stage
        .post(&ada, &format!("/v1/unlocks/{id}/confirm"), &body)
        .await;
    assert_eq!(state(&done), (200, "released"), "{}", done.1);
    assert_eq!(code(&stage.act(&token, &id, "review").await), (403, "forbidden"));
    let puppet = make_user(&stage, &ada, "puppet", "approver").await;
    let puppet = by_link(&stage, &ada, &puppet).await;
    assert_eq!(code(&stage.act(&puppet, &id, "review").await), (403, "forbidden"));
    let bob = stage.person("bob", on(Role::Approver, None, None)).await;
    assert_eq!(stage.act(&bob, &id, "review").await.0, 200);
}
