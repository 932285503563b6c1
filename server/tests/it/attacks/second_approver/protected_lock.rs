//! A protected lock, an admin who may request and approve its unlock, and the admin's actions
//! on accounts.

use crate::support::{PASSWORD, Store, TestCaller, TestServer, code, on};
use crate::unlock::requests::HeldLock;
use domain::access::Role;
use leasehold::audit::Origin;
use reqwest::Method;
use serde_json::json;

pub(super) const NAME: &str = "jobs/close";
/// Moves account changes a day back, in the store.
pub(super) const A_DAY_LATER: &str = "UPDATE account_changes SET changed_at = changed_at - 86400001";
pub(super) const TOO_OLD: &str = "UPDATE sessions SET authenticated_at = authenticated_at - 16 * 60000";

pub(super) struct Scene {
    pub(super) server: TestServer,
    pub(super) client: TestCaller,
    /// An admin, who may request and approve.
    pub(super) ada: TestCaller,
    pub(super) held: HeldLock,
}

pub(super) async fn scene() -> Scene {
    scene_on(Store::sqlite()).await
}

pub(super) async fn scene_on(home: Store) -> Scene {
    let server = TestServer::builder().start_on(home).await;
    server.protect("jobs").await;
    let client = server.token("client", on(Role::Client, None, None)).await;
    let ada = server.user("ada", on(Role::Admin, None, None)).await;
    let held = server.hold(&client, NAME).await;
    Scene {
        server,
        client,
        ada,
        held,
    }
}

pub(super) async fn make_token(
    server: &TestServer,
    caller: &TestCaller,
    name: &str,
    role: &str,
) -> TestCaller {
    let body = json!({"name": name, "grants": [{"role": role}]});
    let made = server
        .as_user(caller)
        .done(Method::POST, "/v1/tokens", &body)
        .await;
    TestCaller::Token(made["token"].as_str().unwrap().to_owned())
}

pub(super) async fn make_user(server: &TestServer, caller: &TestCaller, name: &str, role: &str) -> String {
    let body = json!({"name": name, "grants": [{"role": role}]});
    let added = server
        .as_user(caller)
        .done(Method::POST, "/v1/users", &body)
        .await;
    added["id"].as_str().unwrap().to_owned()
}

/// Opens a link that `maker` creates for a user.
pub(super) async fn by_link(server: &TestServer, maker: &TestCaller, user: &str) -> TestCaller {
    let path = format!("/v1/users/{user}/link");
    let made = server.as_user(maker).done(Method::POST, &path, &json!({})).await;
    let (_, link) = made["link"].as_str().unwrap().split_once("link=").unwrap();
    server.open_link(link).await
}

/// The approval is refused, the lock stays, and the answer has these words.
pub(super) async fn is_refused(scene: &Scene, approver: &TestCaller, id: &str, words: &str) {
    let refused = scene.server.unlock_step(approver, id, "approve").await;
    assert_eq!(code(&refused), (403, "forbidden"), "{}", refused.1);
    let detail = refused.1["detail"].as_str().unwrap();
    assert!(detail.contains(words), "{detail}");
    let early = scene.server.confirm(&scene.ada, id, NAME).await;
    assert_eq!(code(&early), (403, "needs_approval"), "{}", early.1);
    assert!(scene.server.is_held(&scene.client, &scene.held).await);
}

/// Sets [`PASSWORD`] for a user, as `admin`.
pub(super) async fn set_password(server: &TestServer, admin: &TestCaller, name: &str) {
    let path = format!("/v1/users/{}/password", server.user_id(name));
    let body = json!({"password": PASSWORD});
    server.as_user(admin).done(Method::PUT, &path, &body).await;
}

/// A session that [`PASSWORD`] opens, not a link.
pub(super) async fn sign_in_by_password(server: &TestServer, name: &str) -> TestCaller {
    let (password, origin) = (PASSWORD.into(), Origin::default());
    let signed_in = server.identity().sign_in(name, &password, &origin).await;
    TestCaller::Session(signed_in.unwrap().secret.expose().to_owned())
}
