//! Protected names by page: proved again, a second person by a link, and acting alone.

use domain::access::{Grant, Role};
use domain::unlock::Tier;
use leasehold::identity::{NewPerson, Who};

use super::super::stage::{Caller, Held, Stage, on};
use super::{address, begun, id, post, see};

const PASSWORD: &str = "correct horse battery";

struct Scene {
    stage: Stage,
    operator: Caller,
    held: Held,
}

async fn scene() -> Scene {
    let stage = Stage::start().await;
    let unlocks = &stage.serving.unlocks;
    let system = Who::system("test");
    unlocks
        .set_tier(&system, None, "jobs", Tier::Protected)
        .await
        .unwrap();
    let operator = stage.operator().await;
    let held = stage.hold(&operator, "jobs/close").await;
    Scene {
        stage,
        operator,
        held,
    }
}

#[tokio::test]
async fn the_link_is_handed_over_and_the_second_person_approves_by_the_same_page() {
    // Without: the name is not asked for, the page looks again, and a forged confirmation is refused. With: released.
    let Scene {
        stage,
        operator,
        held,
    } = scene().await;
    let ada = stage.person("ada", on(Role::Operator, None, None)).await;
    let bob = stage.person("bob", on(Role::Approver, None, Some("jobs"))).await;
    see(&stage, &ada, &address(&held))
        .await
        .has("This name is protected.");
    let step = begun(&stage, &ada, &held).await;
    let answer = stage
        .request(&ada, reqwest::Method::GET, &step)
        .send()
        .await
        .unwrap();
    assert_eq!(answer.headers()["refresh"], "10");
    let waiting = see(&stage, &ada, &step).await;
    waiting
        .has("A second person approves")
        .has("may: bob")
        .has(&stage.url(&step));
    assert!(!waiting.text.contains("name=\"resource\""), "{}", waiting.text);
    let path = format!("{step}/confirm");
    let early = post(&stage, &ada, &path, &[("resource", "jobs/close")]).await;
    early.is(403).has("a second person must approve first");
    let own = post(&stage, &ada, &format!("{step}/approve"), &[]).await;
    own.is(403);
    let asked = see(&stage, &bob, &step).await;
    asked
        .has("You are asked to be the second person")
        .has("worker-7")
        .has("What dies with it");
    assert_eq!(
        post(&stage, &bob, &format!("{step}/approve"), &[])
            .await
            .is(303)
            .to,
        step
    );
    see(&stage, &bob, &step).await.has("can confirm this intent");
    let ready = see(&stage, &ada, &step).await;
    ready.has("A second person approved").has("name=\"resource\"");
    post(&stage, &ada, &path, &[("resource", "jobs/close")])
        .await
        .is(303);
    see(&stage, &ada, &step)
        .await
        .has("Released")
        .has("bob approved it");
    assert!(!stage.is_held(&operator, &held).await);
}

#[tokio::test]
async fn who_has_not_proved_who_they_are_for_a_while_does_so_on_the_page() {
    // The password once more, wrong at first; then it waits for the second person. Without a password: signing in again.
    let Scene { stage, held, .. } = scene().await;
    let new = NewPerson {
        name: "ada".to_owned(),
        grants: on(Role::Operator, None, None),
        password: Some(PASSWORD.into()),
    };
    stage
        .identity()
        .add_person(&Who::system("test"), new)
        .await
        .unwrap();
    let ada = stage.sign_in("ada").await;
    let lin = stage.person("lin", on(Role::Operator, None, None)).await;
    stage
        .home
        .sql("UPDATE sessions SET authenticated_at = authenticated_at - 1000000")
        .await;
    let step = begun(&stage, &ada, &held).await;
    see(&stage, &ada, &step)
        .await
        .has("Prove again who you are")
        .has("name=\"password\"");
    let path = format!("{step}/confirm");
    let early = post(&stage, &ada, &path, &[("resource", "jobs/close")]).await;
    early.is(403).has("prove again who you are");
    let prove = format!("{step}/prove");
    let wrong = post(&stage, &ada, &prove, &[("password", "not it at all")]).await;
    wrong
        .is(401)
        .has("That is not your password.")
        .has("aria-invalid");
    assert!(!wrong.text.contains("not it at all"));
    assert_eq!(
        post(&stage, &ada, &prove, &[("password", PASSWORD)])
            .await
            .is(303)
            .to,
        step
    );
    see(&stage, &ada, &step)
        .await
        .has("You proved who you are")
        .has("A second person approves");
    let other = begun(&stage, &lin, &held).await;
    let link = format!("/sign-in?next={other}");
    see(&stage, &lin, &other).await.has("Sign in again").has(&link);
}

#[tokio::test]
async fn acting_alone_asks_for_a_second_reason_and_stays_flagged_until_reviewed() {
    // The same reason twice is refused at its field with the name kept; then released, flagged, reviewed by another.
    let Scene {
        stage,
        operator,
        held,
    } = scene().await;
    let ada = stage.person("ada", on(Role::Operator, None, None)).await;
    let both = vec![
        Grant::everywhere(Role::Approver),
        Grant::everywhere(Role::Operator),
    ];
    let bob = stage.person("bob", both).await;
    let step = begun(&stage, &ada, &held).await;
    see(&stage, &ada, &step).await.has(&format!("{step}?alone"));
    see(&stage, &ada, &format!("{step}?alone"))
        .await
        .has("You are about to act alone")
        .has("Release alone");
    let path = format!("{step}/confirm");
    let same = [("breakGlassReason", super::REASON), ("resource", "jobs/close")];
    let same = post(&stage, &ada, &path, &same).await;
    same.is(422)
        .has("needs a second reason")
        .has("value=\"jobs/close\"")
        .has("breakGlassReason-note");
    assert!(stage.is_held(&operator, &held).await);
    let second = [
        ("breakGlassReason", "nobody answers the pager at night"),
        ("resource", "jobs/close"),
    ];
    post(&stage, &ada, &path, &second).await.is(303);
    let flagged = see(&stage, &ada, &step).await;
    flagged
        .has("not reviewed yet")
        .has("nobody answers the pager at night");
    assert!(!flagged.text.contains("I have reviewed it"));
    see(&stage, &bob, &step).await.has("I have reviewed it");
    assert_eq!(
        post(&stage, &bob, &format!("{step}/review"), &[])
            .await
            .is(303)
            .to,
        step
    );
    see(&stage, &ada, &step).await.has("Reviewed by ").has("bob");
    let told = stage.told(id(&step)).await;
    assert!(
        told.ends_with(&["outcome released".to_owned(), "approval reviewed".to_owned()]),
        "{told:?}"
    );
}
