//! An attacker finds an approver's open session and approves without a password.

use super::protected_lock::{Scene, TOO_OLD, scene};
use crate::support::PASSWORD;
use crate::support::code;
use domain::access::{Grant, Role};
use leasehold::identity::Principal;

use crate::unlock::pages::{post, see};

#[tokio::test]
async fn approver_with_a_session_left_open() {
    // Signed in 16 minutes ago: the API refuses, the page asks for the password and then shows
    // the button.
    let Scene {
        server, ada, held, ..
    } = scene().await;
    let new = leasehold::identity::NewUser {
        name: "bob".to_owned(),
        grants: vec![Grant::everywhere(Role::Approver)],
        password: Some(PASSWORD.into()),
    };
    let identity = server.identity();
    identity.add_user(&Principal::system("test"), new).await.unwrap();
    let bob = server.sign_in("bob").await;
    let id = server.begun(&ada, &held).await;
    server.store.sql(TOO_OLD).await;
    let refused = server.unlock_step(&bob, &id, "approve").await;
    assert_eq!(code(&refused), (403, "needs_reauthentication"), "{}", refused.1);
    let step = format!("/unlocks/{id}");
    let page = see(&server, &bob, &step).await;
    page.has(&format!("href=\"/prove?next={step}\""));
    assert!(!page.text.contains("/approve\""), "{}", page.text);
    let prove = format!("/prove?next={step}");
    let asked = see(&server, &bob, &prove).await;
    asked.has("name=\"currentPassword\"").has("Approvals, ");
    let wrong = [("currentPassword", "wrong password")];
    post(&server, &bob, &prove, &wrong).await.is(401);
    let right = [("currentPassword", PASSWORD)];
    assert_eq!(post(&server, &bob, &prove, &right).await.is(303).to, step);
    see(&server, &bob, &step).await.has("/approve\"");
    post(&server, &bob, &format!("{step}/approve"), &[]).await.is(303);
    assert_eq!(server.unlock_state(&ada, &id).await["approval"]["by"], "bob");
}
