//! A token that another token or a command created approves an unlock of its creator.

use super::protected_lock::{is_refused, make_token, scene};
use crate::support::on;
use domain::access::Role;

#[tokio::test]
async fn token_approves_its_creator() {
    // Ada's token creates a token; no user has its name, so it once counted as a separate
    // approver. Likewise a token created by a command.
    let scene = scene().await;
    let server = &scene.server;
    let first = make_token(server, &scene.ada, "first", "admin").await;
    let second = make_token(server, &first, "second", "approver").await;
    let id = server.begun(&scene.ada, &scene.held).await;
    is_refused(&scene, &second, &id, "API token").await;
    let other = server.token("other", on(Role::Approver, None, None)).await;
    is_refused(&scene, &other, &id, "API token").await;
}
