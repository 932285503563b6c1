//! The first takes over the account of the approver after its approval.

use super::protected_lock::{NAME, scene, set_password};
use crate::support::{code, on};
use domain::access::Role;

#[tokio::test]
async fn account_taken_over_after_its_approval() {
    // Bob approved, as himself; then the first sets his password: at the act he is no independent approver any more.
    let scene = scene().await;
    let server = &scene.server;
    let bob = server.user("bob", on(Role::Approver, None, None)).await;
    let id = server.begun(&scene.ada, &scene.held).await;
    assert_eq!(server.unlock_step(&bob, &id, "approve").await.0, 200);
    set_password(server, &scene.ada, "bob").await;
    let refused = server.confirm(&scene.ada, &id, NAME).await;
    assert_eq!(code(&refused), (403, "needs_approval"), "{}", refused.1);
}
