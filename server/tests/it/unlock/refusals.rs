//! Missing permissions and impossible unlocks: the right answer, an audit entry, and the lock untouched.

use crate::support::{TestCaller, TestServer, code, on, reply};
use crate::unlock::requests::{REASON, state};
use ::testkit::{RedisOptions, Throwaway};
use domain::access::Role;
use leasehold::identity::Principal;
use reqwest::Method;
use serde_json::json;
use sqlx::{Connection as _, Executor as _, SqliteConnection};

use crate::support::proxy::{Link, Proxy};
use testkit::eventually;

#[tokio::test]
async fn an_intent_belongs_to_its_owner() {
    // Another operator can neither confirm nor cancel it.
    let server = TestServer::start().await;
    let operator = server.operator().await;
    let other = server.token("other", on(Role::Operator, None, None)).await;
    let held = server.hold(&operator, "r").await;
    let id = server.begun(&operator, &held).await;
    assert_eq!(code(&server.confirm(&other, &id, "r").await), (403, "forbidden"));
    assert_eq!(
        code(&server.unlock_step(&other, &id, "cancel").await),
        (403, "forbidden")
    );
    let rows = server.unlock_entries().await;
    let refused: Vec<&str> = rows
        .iter()
        .filter(|row| row.outcome == "forbidden" && row.unlock_id.as_deref() == Some(&id))
        .map(|row| row.actor_name.as_str())
        .collect();
    assert_eq!(refused, ["other", "other"]);
    assert!(server.is_held(&operator, &held).await);
    assert_eq!(
        state(&server.confirm(&operator, &id, "r").await),
        (200, "released")
    );
}

#[tokio::test]
async fn viewers_and_other_sites_are_refused() {
    // Forged posts by a viewer's token and browser, and from another site with an operator's cookie; each audited.
    let server = TestServer::start().await;
    let operator = server.operator().await;
    let viewer = server.user("vera", on(Role::Viewer, None, None)).await;
    let token = server.token("viewing", on(Role::Viewer, None, None)).await;
    let ada = server.user("ada", on(Role::Operator, None, None)).await;
    let held = server.hold(&operator, "r").await;
    let id = server.begun(&operator, &held).await;
    for caller in [&viewer, &token] {
        assert_eq!(code(&server.begin(caller, &held).await), (403, "forbidden"));
        for step in ["confirm", "approve", "cancel", "review"] {
            assert_eq!(
                code(&server.unlock_step(caller, &id, step).await),
                (403, "forbidden"),
                "{step}"
            );
        }
    }
    let TestCaller::Session(cookie) = &ada else {
        panic!()
    };
    let own = server.begun(&ada, &held).await;
    for header in [
        ("sec-fetch-site", "cross-site"),
        ("origin", "https://evil.example"),
    ] {
        let url = server.url(&format!("/v1/unlocks/{own}/confirm"));
        let request = reqwest::Client::new()
            .post(url)
            .header("cookie", format!("leasehold={cookie}"))
            .header(header.0, header.1)
            .json(&json!({"resource": "r"}));
        assert_eq!(code(&reply(request).await), (403, "forbidden"), "{header:?}");
    }
    assert!(server.is_held(&operator, &held).await);
    let query = domain::audit::AuditQuery {
        limit: 100,
        action: Some(domain::audit::Action::Deny),
        ..Default::default()
    };
    let denied = server.audit().await.page(&query).await.unwrap().rows;
    let count = |outcome: &str| denied.iter().filter(|row| row.outcome == outcome).count();
    assert_eq!((count("forbidden"), count("cross_site")), (10, 2));
}

#[tokio::test]
async fn a_grant_ends_at_its_prefix_and_backend() {
    // An operator of one tenant: the neighbour in name is 403 whether or not it is held, its unlock is not there.
    let server = TestServer::start().await;
    let operator = server.operator().await;
    let tenant = server
        .token("tenant", on(Role::Operator, None, Some("tenant_1")))
        .await;
    let elsewhere = server
        .token("elsewhere", on(Role::Operator, Some("cache"), None))
        .await;
    let own = server.hold(&operator, "tenant_1:a").await;
    let foreign = server.hold(&operator, "tenant_12:a").await;
    let mut unheld = foreign.clone();
    unheld.resource = "tenant_12:never".to_owned();
    let held = server.begin(&tenant, &foreign).await;
    let free = server.begin(&tenant, &unheld).await;
    assert_eq!((code(&held), &held.1["detail"]), (code(&free), &free.1["detail"]));
    assert_eq!(code(&held), (403, "forbidden"));
    assert_eq!(code(&server.begin(&elsewhere, &own).await), (403, "forbidden"));
    let id = server.begun(&operator, &foreign).await;
    let path = format!("/v1/unlocks/{id}");
    assert_eq!(
        code(&server.as_user(&tenant).get(&path).await),
        (404, "not_found")
    );
    assert_eq!(
        code(&server.confirm(&tenant, &id, "tenant_12:a").await),
        (404, "not_found")
    );
    let mine = server.begun(&tenant, &own).await;
    assert_eq!(
        state(&server.confirm(&tenant, &mine, "tenant_1:a").await),
        (200, "released")
    );
    assert!(server.is_held(&operator, &foreign).await);
}

#[tokio::test]
async fn permissions_are_checked_again_at_the_release() {
    // Removed, or everything made read-only, between review and confirm.
    let server = TestServer::start().await;
    let operator = server.operator().await;
    let ada = server.user("ada", on(Role::Operator, None, None)).await;
    let held = server.hold(&operator, "r").await;
    let id = server.begun(&ada, &held).await;
    let system = Principal::system("test");
    let identity = server.identity();
    identity.set_read_only(&system, true).await.unwrap();
    assert_eq!(code(&server.confirm(&ada, &id, "r").await), (403, "forbidden"));
    identity.set_read_only(&system, false).await.unwrap();
    let user = identity.directory().user_named("ada").unwrap().id.clone();
    let narrower = on(Role::Operator, None, Some("elsewhere"));
    identity.set_grants(&system, &user, narrower).await.unwrap();
    let refused = server.confirm(&ada, &id, "r").await;
    assert!(
        [(403, "forbidden"), (404, "not_found")].contains(&code(&refused)),
        "{refused:?}"
    );
    assert!(server.is_held(&operator, &held).await);
}

#[tokio::test]
async fn backends_without_account_or_response_release_nothing() {
    // No unlock_url: 409. Behind a cut link: 503 for the intent, and for the confirmation of one made before.
    let redis = Throwaway::redis(RedisOptions::default()).await.unwrap();
    let proxy = Proxy::start(redis.port()).await;
    let url = |port: u16| format!("redis://127.0.0.1:{port}");
    let toml = format!(
        "[[backend]]\nname = \"looking\"\nkind = \"redis\"\nurls = [\"{0}\"]\npatterns = [\"lock:*\"]\npoll_interval = \"1s\"\n\
         [[backend]]\nname = \"cache\"\nkind = \"redis\"\nurls = [\"{1}\"]\nunlock_url = \"{1}\"\n\
         patterns = [\"lock:*\"]\npoll_interval = \"1s\"\ntimeout = \"8s\"\n",
        url(redis.port()),
        url(proxy.port()),
    );
    let server = TestServer::builder().config(&toml).start().await;
    let operator = server.operator().await;
    let client = redis::Client::open(redis.url()).unwrap();
    let mut driver = client.get_multiplexed_async_connection().await.unwrap();
    let () = redis::cmd("SET")
        .arg("lock:a")
        .arg("one")
        .query_async(&mut driver)
        .await
        .unwrap();
    let refused = server
        .begin(
            &operator,
            &server.inventory_lock(&operator, "looking", "lock:a").await,
        )
        .await;
    assert_eq!(code(&refused), (409, "unlock_unavailable"), "{}", refused.1);
    let held = server.inventory_lock(&operator, "cache", "lock:a").await;
    let id = server.begun(&operator, &held).await;
    proxy.set(Link::Cut).await;
    let confirmed = server.confirm(&operator, &id, "lock:a").await;
    assert_eq!(code(&confirmed), (503, "backend_stale"), "{}", confirmed.1);
    assert_eq!(server.unlock_state(&operator, &id).await["state"], "pending");
    eventually("the backend is stale or down", async || {
        let begun = server.begin(&operator, &held).await;
        assert_eq!(code(&begun), (503, "backend_stale"), "{}", begun.1);
        begun.1["detail"].as_str().unwrap().contains("is ")
    })
    .await;
    let there: bool = redis::cmd("EXISTS")
        .arg("lock:a")
        .query_async(&mut driver)
        .await
        .unwrap();
    assert!(there);
    // Healed, the same intent still works.
    proxy.set(Link::Pass).await;
    eventually("released after all", async || {
        state(&server.confirm(&operator, &id, "lock:a").await) == (200, "released")
    })
    .await;
}

#[tokio::test]
async fn an_unlock_that_cannot_be_recorded_is_not_made() {
    // Another process locks the audit log's file: 503 for review and release, the lease lives; later it works.
    let server = TestServer::start().await;
    let operator = server.operator().await;
    let held = server.hold(&operator, "r").await;
    let id = server.begun(&operator, &held).await;
    let mut blocker = SqliteConnection::connect(&server.store.console_url())
        .await
        .unwrap();
    blocker.execute("BEGIN IMMEDIATE").await.unwrap();
    assert_eq!(
        code(&server.begin(&operator, &held).await),
        (503, "audit_unavailable")
    );
    assert_eq!(
        code(&server.confirm(&operator, &id, "r").await),
        (503, "audit_unavailable")
    );
    assert!(server.is_held(&operator, &held).await);
    blocker.execute("ROLLBACK").await.unwrap();
    assert_eq!(
        state(&server.confirm(&operator, &id, "r").await),
        (200, "released")
    );
}

#[tokio::test]
async fn invalid_bodies_are_refused_by_field() {
    // Missing, of another kind, empty, unknown; and malformed ids.
    let server = TestServer::start().await;
    let operator = server.operator().await;
    let whole = json!({"backend": "builtin", "resource": "r", "generation": "g", "reason": REASON});
    let changes = [
        ("backend", json!(null)),
        ("backend", json!("Not A Name")),
        ("resource", json!(7)),
        ("resource", json!("")),
        ("generation", json!(null)),
        ("reason", json!(["a"])),
        ("source", json!("\u{7}")),
        ("prefix", json!("everything")),
    ];
    for (field, value) in changes {
        let mut body = whole.clone();
        body[field] = value;
        let reply = server.as_user(&operator).post("/v1/unlocks", &body).await;
        assert_eq!(
            (code(&reply), &reply.1["field"]),
            ((400, "invalid"), &json!(field)),
            "{}",
            reply.1
        );
    }
    for id in ["u_0", "..%2F", "%00", "bulk"] {
        let reply = server.as_user(&operator).get(&format!("/v1/unlocks/{id}")).await;
        assert!(reply.0 == 404 || reply.0 == 405, "{id}: {reply:?}");
        let step = server.confirm(&operator, id, "r").await;
        assert!([400, 404].contains(&step.0), "{id}: {step:?}");
    }
    let none = reply(server.as_user(&operator).request(Method::POST, "/v1/unlocks")).await;
    assert_eq!(none.0, 400);
}
