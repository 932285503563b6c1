//! Protected names by page: proved again, a second approver by a link, and acting alone.

use crate::support::{TestCaller, TestServer, on};
use crate::unlock::requests::HeldLock;
use domain::access::{Grant, Role};
use leasehold::identity::{NewUser, Principal};

use super::{address, begun, id, post, see};

const PASSWORD: &str = "correct horse battery";

struct Scene {
    server: TestServer,
    operator: TestCaller,
    held: HeldLock,
}

async fn scene() -> Scene {
    let server = TestServer::start().await;
    server.protect("jobs").await;
    let operator = server.operator().await;
    let held = server.hold(&operator, "jobs/close").await;
    Scene {
        server,
        operator,
        held,
    }
}

#[tokio::test]
async fn second_approver_approves_on_the_linked_page() {
    // Without approval: the page has no name field and waits for the approval, and a forged confirmation is refused.
    // With it: released.
    let Scene {
        server,
        operator,
        held,
    } = scene().await;
    let ada = server.user("ada", on(Role::Operator, None, None)).await;
    let bob = server.user("bob", on(Role::Approver, None, Some("jobs"))).await;
    see(&server, &ada, &address(&held))
        .await
        .has("This name is protected.");
    let step = begun(&server, &ada, &held).await;
    let waiting = see(&server, &ada, &step).await;
    waiting
        .has("The next step appears here after the approval")
        .has("A second approver approves")
        .has("may approve: bob")
        .has(&server.url(&step));
    assert!(!waiting.text.contains("name=\"resource\""), "{}", waiting.text);
    let path = format!("{step}/confirm");
    let early = post(&server, &ada, &path, &[("resource", "jobs/close")]).await;
    early.is(403).has("a second approver must approve first");
    let own = post(&server, &ada, &format!("{step}/approve"), &[]).await;
    own.is(403);
    let form = see(&server, &bob, &step).await;
    form.has("Your approval is requested")
        .has("worker-7")
        .has("Also released");
    assert_eq!(
        post(&server, &bob, &format!("{step}/approve"), &[])
            .await
            .is(303)
            .to,
        step
    );
    see(&server, &bob, &step).await.has("can confirm this intent");
    let ready = see(&server, &ada, &step).await;
    ready
        .has("Approved by a second approver")
        .has("name=\"resource\"");
    post(&server, &ada, &path, &[("resource", "jobs/close")])
        .await
        .is(303);
    see(&server, &ada, &step)
        .await
        .has("Released")
        .has("bob approved it");
    assert!(!server.is_held(&operator, &held).await);
}

#[tokio::test]
async fn an_old_sign_in_is_renewed_on_the_page() {
    // The password once more, wrong at first; then it waits for the second approver. Without a password: signing in again.
    let Scene { server, held, .. } = scene().await;
    let new = NewUser {
        name: "ada".to_owned(),
        grants: on(Role::Operator, None, None),
        password: Some(PASSWORD.into()),
    };
    server
        .identity()
        .add_user(&Principal::system("test"), new)
        .await
        .unwrap();
    let ada = server.sign_in("ada").await;
    let lin = server.user("lin", on(Role::Operator, None, None)).await;
    server
        .store
        .sql("UPDATE sessions SET authenticated_at = authenticated_at - 1000000")
        .await;
    let step = begun(&server, &ada, &held).await;
    see(&server, &ada, &step)
        .await
        .has("Authenticate again")
        .has("name=\"password\"");
    let path = format!("{step}/confirm");
    let early = post(&server, &ada, &path, &[("resource", "jobs/close")]).await;
    early.is(403).has("sign in again or give your password");
    let prove = format!("{step}/prove");
    let wrong = post(&server, &ada, &prove, &[("password", "not it at all")]).await;
    wrong
        .is(401)
        .has("That is not your password.")
        .has("aria-invalid");
    assert!(!wrong.text.contains("not it at all"));
    assert_eq!(
        post(&server, &ada, &prove, &[("password", PASSWORD)])
            .await
            .is(303)
            .to,
        step
    );
    see(&server, &ada, &step)
        .await
        .has("Authenticated")
        .has("A second approver approves");
    let other = begun(&server, &lin, &held).await;
    let link = format!("/sign-in?next={other}");
    see(&server, &lin, &other).await.has("Sign in again").has(&link);
}

#[tokio::test]
async fn break_glass_needs_a_second_reason_and_a_review() {
    // The same reason twice is refused at its field with the name kept; then released, flagged, reviewed by another
    // user.
    let Scene {
        server,
        operator,
        held,
    } = scene().await;
    let ada = server.user("ada", on(Role::Operator, None, None)).await;
    let both = vec![
        Grant::everywhere(Role::Approver),
        Grant::everywhere(Role::Operator),
    ];
    let bob = server.user("bob", both).await;
    let step = begun(&server, &ada, &held).await;
    see(&server, &ada, &step)
        .await
        .has(&format!("{step}?break-glass"));
    see(&server, &ada, &format!("{step}?break-glass"))
        .await
        .has("You are about to act without a second approver")
        .has("Release (break-glass)");
    let path = format!("{step}/confirm");
    let same = [("breakGlassReason", super::REASON), ("resource", "jobs/close")];
    let same = post(&server, &ada, &path, &same).await;
    same.is(422)
        .has("needs a second reason")
        .has("value=\"jobs/close\"")
        .has("breakGlassReason-note");
    assert!(server.is_held(&operator, &held).await);
    let second = [
        ("breakGlassReason", "no approver answers the pager at night"),
        ("resource", "jobs/close"),
    ];
    post(&server, &ada, &path, &second).await.is(303);
    let flagged = see(&server, &ada, &step).await;
    flagged
        .has("not reviewed yet")
        .has("no approver answers the pager at night");
    assert!(!flagged.text.contains("Mark as reviewed"));
    see(&server, &bob, &step).await.has("Mark as reviewed");
    assert_eq!(
        post(&server, &bob, &format!("{step}/review"), &[])
            .await
            .is(303)
            .to,
        step
    );
    see(&server, &ada, &step).await.has("Reviewed by ").has("bob");
    let phases = server.unlock_phases(id(&step)).await;
    assert!(
        phases.ends_with(&["outcome released".to_owned(), "approval reviewed".to_owned()]),
        "{phases:?}"
    );
}
