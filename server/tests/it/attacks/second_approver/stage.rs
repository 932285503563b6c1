//! A protected lock, an admin who may begin and approve its unlock, and what that admin can do to accounts.

use domain::access::Role;
use domain::unlock::Tier;
use leasehold::audit::Origin;
use leasehold::identity::Who;
use reqwest::Method;
use serde_json::{Value, json};

use crate::unlock::stage::{Caller, Held, Home, Stage, answered, code, on};

pub(super) const NAME: &str = "jobs/close";
pub(super) const PASSWORD: &str = "correct horse battery";
/// Past the server: what a day does.
pub(super) const A_DAY_LATER: &str = "UPDATE account_changes SET changed_at = changed_at - 86400001";
pub(super) const TOO_OLD: &str = "UPDATE sessions SET authenticated_at = authenticated_at - 16 * 60000";

pub(super) struct Scene {
    pub(super) stage: Stage,
    pub(super) client: Caller,
    /// An admin, who may begin and approve.
    pub(super) ada: Caller,
    pub(super) held: Held,
}

pub(super) async fn scene() -> Scene {
    scene_on(Home::sqlite()).await
}

pub(super) async fn scene_on(home: Home) -> Scene {
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

pub(super) fn id_of(stage: &Stage, name: &str) -> String {
    let directory = stage.identity().directory();
    directory.person_named(name).unwrap().id.clone()
}

/// A call of the API that must be done.
pub(super) async fn call(stage: &Stage, caller: &Caller, method: Method, path: &str, body: Value) -> Value {
    let (status, reply) = answered(stage.request(caller, method.clone(), path).json(&body)).await;
    assert!((200..300).contains(&status), "{method} {path}: {status} {reply}");
    reply
}

pub(super) async fn make_token(stage: &Stage, caller: &Caller, name: &str, role: &str) -> Caller {
    let body = json!({"name": name, "grants": [{"role": role}]});
    let made = call(stage, caller, Method::POST, "/v1/tokens", body).await;
    Caller::Token(made["token"].as_str().unwrap().to_owned())
}

pub(super) async fn make_user(stage: &Stage, caller: &Caller, name: &str, role: &str) -> String {
    let body = json!({"name": name, "grants": [{"role": role}]});
    let added = call(stage, caller, Method::POST, "/v1/people", body).await;
    added["id"].as_str().unwrap().to_owned()
}

/// Opens a link that `maker` creates for a user.
pub(super) async fn by_link(stage: &Stage, maker: &Caller, user: &str) -> Caller {
    let path = format!("/v1/people/{user}/link");
    let made = call(stage, maker, Method::POST, &path, json!({})).await;
    let (_, link) = made["link"].as_str().unwrap().split_once("link=").unwrap();
    let opened = stage.identity().open_link(link, &Origin::default()).await;
    Caller::Browser(opened.unwrap().secret.expose().to_owned())
}

/// The approval is refused, the lock stays, and the answer has these words.
pub(super) async fn is_refused(scene: &Scene, approver: &Caller, id: &str, words: &str) {
    let refused = scene.stage.act(approver, id, "approve").await;
    assert_eq!(code(&refused), (403, "forbidden"), "{}", refused.1);
    let detail = refused.1["detail"].as_str().unwrap();
    assert!(detail.contains(words), "{detail}");
    let early = scene.stage.confirm(&scene.ada, id, NAME).await;
    assert_eq!(code(&early), (403, "needs_approval"), "{}", early.1);
    assert!(scene.stage.is_held(&scene.client, &scene.held).await);
}
