//! One person opens the link of another user, begins as that user and approves as themselves.

use domain::access::Role;

use super::stage::{NAME, Scene, by_link, id_of, scene};
use crate::unlock::stage::{code, on, state};

#[tokio::test]
async fn approver_behind_the_link_of_the_first() {
    // Ada opens a link for the operator bob herself, begins as him, and approves as herself.
    let Scene { stage, ada, held, .. } = scene().await;
    stage.person("bob", on(Role::Operator, None, None)).await;
    let bob = id_of(&stage, "bob");
    let puppet = by_link(&stage, &ada, &bob).await;
    let id = stage.begun(&puppet, &held).await;
    let refused = stage.act(&ada, &id, "approve").await;
    assert_eq!(code(&refused), (403, "forbidden"), "{}", refused.1);
    // Or begins in bob's own session, if it was left open, and confirms in the one behind the link.
    let own = stage.sign_in("bob").await;
    stage.home.sql("DELETE FROM account_changes").await;
    let id = stage.begun(&own, &held).await;
    assert_eq!(stage.act(&ada, &id, "approve").await.0, 200);
    let refused = stage.confirm(&puppet, &id, NAME).await;
    assert_eq!(code(&refused), (403, "needs_approval"), "{}", refused.1);
    assert_eq!(state(&stage.confirm(&own, &id, NAME).await), (200, "released"));
}
