//! The first takes over the account of the approver after its approval.

use domain::access::Role;
use reqwest::Method;
use serde_json::json;

use super::stage::{NAME, PASSWORD, call, id_of, scene};
use crate::unlock::stage::{code, on};

#[tokio::test]
async fn account_taken_over_after_its_approval() {
    // Bob approved, as himself; then the first sets his password: at the act he is no independent approver any more.
    let scene = scene().await;
    let stage = &scene.stage;
    let bob = stage.person("bob", on(Role::Approver, None, None)).await;
    let id = stage.begun(&scene.ada, &scene.held).await;
    assert_eq!(stage.act(&bob, &id, "approve").await.0, 200);
    let path = format!("/v1/people/{}/password", id_of(stage, "bob"));
    call(
        stage,
        &scene.ada,
        Method::PUT,
        &path,
        json!({"password": PASSWORD}),
    )
    .await;
    let refused = stage.confirm(&scene.ada, &id, NAME).await;
    assert_eq!(code(&refused), (403, "needs_approval"), "{}", refused.1);
}
