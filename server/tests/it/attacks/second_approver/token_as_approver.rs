//! A token that another token made, or a command, approves what its maker began.

use domain::access::Role;

use super::stage::{is_refused, make_token, scene};
use crate::unlock::stage::on;

#[tokio::test]
async fn token_approves_its_maker() {
    // Ada's token makes a token: nobody of that name is a user, so it once stood for itself. A command's token, too.
    let scene = scene().await;
    let stage = &scene.stage;
    let first = make_token(stage, &scene.ada, "first", "admin").await;
    let second = make_token(stage, &first, "second", "approver").await;
    let id = stage.begun(&scene.ada, &scene.held).await;
    is_refused(&scene, &second, &id, "API token").await;
    let other = stage.token("other", on(Role::Approver, None, None)).await;
    is_refused(&scene, &other, &id, "API token").await;
}
