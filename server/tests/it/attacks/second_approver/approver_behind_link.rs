//! One user opens the link of another user, begins as that user and approves as themselves.

use super::protected_lock::{NAME, Scene, by_link, scene};
use crate::support::{code, on};
use crate::unlock::requests::state;
use domain::access::Role;

#[tokio::test]
async fn approver_behind_the_link_of_the_first() {
    // Ada opens a link for the operator bob herself, begins as him, and approves as herself.
    let Scene {
        server, ada, held, ..
    } = scene().await;
    server.user("bob", on(Role::Operator, None, None)).await;
    let bob = server.user_id("bob");
    let puppet = by_link(&server, &ada, &bob).await;
    let id = server.begun(&puppet, &held).await;
    let refused = server.unlock_step(&ada, &id, "approve").await;
    assert_eq!(code(&refused), (403, "forbidden"), "{}", refused.1);
    // Or begins in bob's own session, if it was left open, and confirms in the one behind the link.
    let own = server.sign_in("bob").await;
    server.store.sql("DELETE FROM account_changes").await;
    let id = server.begun(&own, &held).await;
    assert_eq!(server.unlock_step(&ada, &id, "approve").await.0, 200);
    let refused = server.confirm(&puppet, &id, NAME).await;
    assert_eq!(code(&refused), (403, "needs_approval"), "{}", refused.1);
    assert_eq!(state(&server.confirm(&own, &id, NAME).await), (200, "released"));
}
