//! An approver left a session open: whoever finds it approves without a password.

use domain::access::{Grant, Role};
use leasehold::identity::Who;

use super::stage::{PASSWORD, Scene, TOO_OLD, scene};
use crate::unlock::pages::{post, see};
use crate::unlock::stage::code;

#[tokio::test]
async fn approver_with_a_session_left_open() {
    // Signed in 16 minutes ago: the API says so, the page asks for the password and then shows the button.
    let Scene { stage, ada, held, .. } = scene().await;
    let new = leasehold::identity::NewPerson {
        name: "bob".to_owned(),
        grants: vec![Grant::everywhere(Role::Approver)],
        password: Some(PASSWORD.into()),
    };
    let identity = stage.identity();
    identity.add_person(&Who::system("test"), new).await.unwrap();
    let bob = stage.sign_in("bob").await;
    let id = stage.begun(&ada, &held).await;
    stage.home.sql(TOO_OLD).await;
    let refused = stage.act(&bob, &id, "approve").await;
    assert_eq!(code(&refused), (403, "needs_reauthentication"), "{}", refused.1);
    let step = format!("/unlocks/{id}");
    let page = see(&stage, &bob, &step).await;
    page.has(&format!("href=\"/prove?next={step}\""));
    assert!(!page.text.contains("/approve\""), "{}", page.text);
    let prove = format!("/prove?next={step}");
    see(&stage, &bob, &prove).await.has("name=\"currentPassword\"");
    let wrong = [("currentPassword", "wrong password")];
    post(&stage, &bob, &prove, &wrong).await.is(401);
    let right = [("currentPassword", PASSWORD)];
    assert_eq!(post(&stage, &bob, &prove, &right).await.is(303).to, step);
    see(&stage, &bob, &step).await.has("/approve\"");
    post(&stage, &bob, &format!("{step}/approve"), &[]).await.is(303);
    assert_eq!(stage.state(&ada, &id).await["approval"]["by"], "bob");
}
