//! One person tries to be both users of a protected unlock: by a token, by an account that they opened, by a link, by a role
//! that they gave, or by a session that somebody left open.

use domain::access::{Grant, Role};
use domain::unlock::Tier;
use leasehold::audit::Origin;
use leasehold::identity::Who;
use reqwest::Method;
use serde_json::{Value, json};

use crate::unlock::pages::{post, see};
use crate::unlock::stage::{Caller, Held, Home, Stage, answered, code, on, state};

const NAME: &str = "jobs/close";
const PASSWORD: &str = "correct horse battery";
/// Past the server: what a day does.
const A_DAY_LATER: &str = "UPDATE account_changes SET changed_at = changed_at - 86400001";
const TOO_OLD: &str = "UPDATE sessions SET authenticated_at = authenticated_at - 16 * 60000";

struct Scene {
    stage: Stage,
    client: Caller,
    /// An admin, who may begin and approve.
    ada: Caller,
    held: Held,
}

async fn scene() -> Scene {
    scene_on(Home::sqlite()).await
}

async fn scene_on(home: Home) -> Scene {
    let stage = Stage::on(home, "").await;
    let unlocks = &stage.serving.unlocks;
    unlocks
        .set_tier(&Who::system("test"), None, "jobs", Tier::Protected)
        .await
        .unwrap();
    let client = stage.token("client", on(Role::Client, None, None)).await;
    let ada = stage.person("ada", on(Role::Admin, None, None)).await;
    let held = stage.hold(&client, NAME).await;
    Scene {
        stage,
        client,
        ada,
        held,
    }
}

fn id_of(stage: &Stage, name: &str) -> String {
    let directory = stage.identity().directory();
    directory.person_named(name).unwrap().id.clone()
}

/// A call of the API that must be done.
async fn call(stage: &Stage, caller: &Caller, method: Method, path: &str, body: Value) -> Value {
    let (status, reply) = answered(stage.request(caller, method.clone(), path).json(&body)).await;
    assert!((200..300).contains(&status), "{method} {path}: {status} {reply}");
    reply
}

async fn make_token(stage: &Stage, caller: &Caller, name: &str, role: &str) -> Caller {
    let body = json!({"name": name, "grants": [{"role": role}]});
    let made = call(stage, caller, Method::POST, "/v1/tokens", body).await;
    Caller::Token(made["token"].as_str().unwrap().to_owned())
}

async fn make_user(stage: &Stage, caller: &Caller, name: &str, role: &str) -> String {
    let body = json!({"name": name, "grants": [{"role": role}]});
    let added = call(stage, caller, Method::POST, "/v1/people", body).await;
    added["id"].as_str().unwrap().to_owned()
}

/// Opens a link that `maker` creates for a user.
async fn by_link(stage: &Stage, maker: &Caller, user: &str) -> Caller {
    let path = format!("/v1/people/{user}/link");
    let made = call(stage, maker, Method::POST, &path, json!({})).await;
    let (_, link) = made["link"].as_str().unwrap().split_once("link=").unwrap();
    let opened = stage.identity().open_link(link, &Origin::default()).await;
    Caller::Browser(opened.unwrap().secret.expose().to_owned())
}

/// The approval is refused, the lock stays, and the answer has these words.
async fn is_refused(scene: &Scene, approver: &Caller, id: &str, words: &str) {
    let refused = scene.stage.act(approver, id, "approve").await;
    assert_eq!(code(&refused), (403, "forbidden"), "{}", refused.1);
    let detail = refused.1["detail"].as_str().unwrap();
    assert!(detail.contains(words), "{detail}");
    let early = scene.stage.confirm(&scene.ada, id, NAME).await;
    assert_eq!(code(&early), (403, "needs_approval"), "{}", early.1);
    assert!(scene.stage.is_held(&scene.client, &scene.held).await);
}

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

#[tokio::test]
async fn token_reviews_what_its_maker_did_alone() {
    let Scene { stage, ada, held, .. } = scene().await;
    let token = make_token(&stage, &ada, "reviewer", "approver").await;
    let id = stage.begun(&ada, &held).await;
    let body = json!({"resource": NAME, "breakGlassReason": "nobody answers the pager"});
    let done = stage
        .post(&ada, &format!("/v1/unlocks/{id}/confirm"), &body)
        .await;
    assert_eq!(state(&done), (200, "released"), "{}", done.1);
    assert_eq!(code(&stage.act(&token, &id, "review").await), (403, "forbidden"));
    let puppet = make_user(&stage, &ada, "puppet", "approver").await;
    let puppet = by_link(&stage, &ada, &puppet).await;
    assert_eq!(code(&stage.act(&puppet, &id, "review").await), (403, "forbidden"));
    let bob = stage.person("bob", on(Role::Approver, None, None)).await;
    assert_eq!(stage.act(&bob, &id, "review").await.0, 200);
}

#[tokio::test]
async fn approver_created_by_the_first_within_a_day() {
    for home in [Home::sqlite(), Home::postgres().await] {
        let scene = scene_on(home).await;
        let stage = &scene.stage;
        let puppet = make_user(stage, &scene.ada, "puppet", "approver").await;
        let puppet = by_link(stage, &scene.ada, &puppet).await;
        let id = stage.begun(&scene.ada, &scene.held).await;
        let same_person = "same person is behind both sessions";
        is_refused(&scene, &puppet, &id, same_person).await;
        // With a password instead of the link, from a session that no link opened.
        let user = id_of(stage, "puppet");
        let path = format!("/v1/people/{user}/password");
        call(
            stage,
            &scene.ada,
            Method::PUT,
            &path,
            json!({"password": PASSWORD}),
        )
        .await;
        let password = PASSWORD.into();
        let signed_in = stage
            .identity()
            .sign_in("puppet", &password, &Origin::default())
            .await;
        let puppet = Caller::Browser(signed_in.unwrap().secret.expose().to_owned());
        is_refused(&scene, &puppet, &id, "within 24 h").await;
        stage.home.sql(A_DAY_LATER).await;
        assert_eq!(stage.act(&puppet, &id, "approve").await.0, 200);
    }
}

#[tokio::test]
async fn approver_given_the_role_by_the_first_within_a_day() {
    let scene = scene().await;
    let stage = &scene.stage;
    let bob = stage.person("bob", on(Role::Viewer, None, None)).await;
    let path = format!("/v1/people/{}/grants", id_of(stage, "bob"));
    let grants = json!({"grants": [{"role": "approver"}]});
    call(stage, &scene.ada, Method::PUT, &path, grants).await;
    let id = stage.begun(&scene.ada, &scene.held).await;
    is_refused(&scene, &bob, &id, "within 24 h").await;
    // The page says so, too, and offers no button.
    let page = see(stage, &bob, &format!("/unlocks/{id}")).await;
    page.has("You cannot approve this: ").has("within 24 h");
    assert!(!page.text.contains("/approve\""), "{}", page.text);
    // Somebody whom another admin made an approver counts.
    let carol = stage.person("carol", on(Role::Approver, None, None)).await;
    assert_eq!(stage.act(&carol, &id, "approve").await.0, 200);
}

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

#[tokio::test]
async fn role_granted_by_a_token_does_not_count() {
    // Not to anyone, not after a day; until a signed-in admin grants it, and that was a day ago.
    let scene = scene().await;
    let stage = &scene.stage;
    let automation = stage.token("automation", on(Role::Admin, None, None)).await;
    let bob = stage.person("bob", on(Role::Viewer, None, None)).await;
    let path = format!("/v1/people/{}/grants", id_of(stage, "bob"));
    let grants = json!({"grants": [{"role": "approver"}]});
    call(stage, &automation, Method::PUT, &path, grants.clone()).await;
    let id = stage.begun(&scene.ada, &scene.held).await;
    is_refused(&scene, &bob, &id, "API token").await;
    stage.home.sql(A_DAY_LATER).await;
    is_refused(&scene, &bob, &id, "a signed-in admin must grant it").await;
    let carol = stage.person("carol", on(Role::Admin, None, None)).await;
    call(stage, &carol, Method::PUT, &path, grants).await;
    assert_eq!(stage.act(&bob, &id, "approve").await.0, 200);
}

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
