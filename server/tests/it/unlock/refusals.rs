//! Who may not, and when it cannot be done: the right answer, a row, and the lock untouched.

use domain::access::Role;
use leasehold::identity::Who;
use leasehold::throwaway::{RedisOptions, Throwaway};
use reqwest::Method;
use serde_json::json;
use sqlx::{Connection as _, Executor as _, SqliteConnection};

use super::stage::{Caller, Home, REASON, Stage, answered, code, on, state};
use crate::support::eventually::eventually;
use crate::support::proxy::{Link, Proxy};

#[tokio::test]
async fn an_intent_is_its_owners_alone() {
    // Another operator, and a third who only approves: neither confirms nor cancels it.
    let stage = Stage::start().await;
    let operator = stage.operator().await;
    let other = stage.token("other", on(Role::Operator, None, None)).await;
    let held = stage.hold(&operator, "r").await;
    let id = stage.begun(&operator, &held).await;
    assert_eq!(code(&stage.confirm(&other, &id, "r").await), (403, "forbidden"));
    assert_eq!(code(&stage.act(&other, &id, "cancel").await), (403, "forbidden"));
    let rows = stage.record().await;
    let refused: Vec<&str> = rows
        .iter()
        .filter(|row| row.outcome == "forbidden" && row.unlock_id.as_deref() == Some(&id))
        .map(|row| row.actor_name.as_str())
        .collect();
    assert_eq!(refused, ["other", "other"]);
    assert!(stage.is_held(&operator, &held).await);
    assert_eq!(
        state(&stage.confirm(&operator, &id, "r").await),
        (200, "released")
    );
}

#[tokio::test]
async fn viewers_and_other_sites_get_nowhere() {
    // Forged posts by a viewer's token and browser, and from another site with an operator's cookie; each in the record.
    let stage = Stage::start().await;
    let operator = stage.operator().await;
    let viewer = stage.person("vera", on(Role::Viewer, None, None)).await;
    let token = stage.token("viewing", on(Role::Viewer, None, None)).await;
    let ada = stage.person("ada", on(Role::Operator, None, None)).await;
    let held = stage.hold(&operator, "r").await;
    let id = stage.begun(&operator, &held).await;
    for caller in [&viewer, &token] {
        assert_eq!(code(&stage.begin(caller, &held).await), (403, "forbidden"));
        for step in ["confirm", "approve", "cancel", "review"] {
            assert_eq!(
                code(&stage.act(caller, &id, step).await),
                (403, "forbidden"),
                "{step}"
            );
        }
    }
    let Caller::Browser(cookie) = &ada else { panic!() };
    let own = stage.begun(&ada, &held).await;
    for header in [
        ("sec-fetch-site", "cross-site"),
        ("origin", "https://evil.example"),
    ] {
        let url = stage.url(&format!("/v1/unlocks/{own}/confirm"));
        let request = reqwest::Client::new()
            .post(url)
            .header("cookie", format!("leasehold={cookie}"))
            .header(header.0, header.1)
            .json(&json!({"resource": "r"}));
        assert_eq!(code(&answered(request).await), (403, "forbidden"), "{header:?}");
    }
    assert!(stage.is_held(&operator, &held).await);
    let query = domain::audit::AuditQuery {
        limit: 100,
        action: Some(domain::audit::Action::Deny),
        ..Default::default()
    };
    let denied = stage.audit().await.page(&query).await.unwrap().rows;
    let count = |outcome: &str| denied.iter().filter(|row| row.outcome == outcome).count();
    assert_eq!((count("forbidden"), count("cross_site")), (10, 2));
}

#[tokio::test]
async fn a_grant_ends_at_its_prefix_and_backend() {
    // An operator of one tenant: the neighbour in name is 403 whether or not it is held, its unlock is not there.
    let stage = Stage::start().await;
    let operator = stage.operator().await;
    let tenant = stage
        .token("tenant", on(Role::Operator, None, Some("tenant_1")))
        .await;
    let elsewhere = stage
        .token("elsewhere", on(Role::Operator, Some("cache"), None))
        .await;
    let own = stage.hold(&operator, "tenant_1:a").await;
    let foreign = stage.hold(&operator, "tenant_12:a").await;
    let mut nobodys = foreign.clone();
    nobodys.resource = "tenant_12:never".to_owned();
    let held = stage.begin(&tenant, &foreign).await;
    let free = stage.begin(&tenant, &nobodys).await;
    assert_eq!((code(&held), &held.1["detail"]), (code(&free), &free.1["detail"]));
    assert_eq!(code(&held), (403, "forbidden"));
    assert_eq!(code(&stage.begin(&elsewhere, &own).await), (403, "forbidden"));
    let id = stage.begun(&operator, &foreign).await;
    let path = format!("/v1/unlocks/{id}");
    assert_eq!(code(&stage.get(&tenant, &path).await), (404, "not_found"));
    assert_eq!(
        code(&stage.confirm(&tenant, &id, "tenant_12:a").await),
        (404, "not_found")
    );
    let mine = stage.begun(&tenant, &own).await;
    assert_eq!(
        state(&stage.confirm(&tenant, &mine, "tenant_1:a").await),
        (200, "released")
    );
    assert!(stage.is_held(&operator, &foreign).await);
}

#[tokio::test]
async fn rights_are_asked_again_at_the_act() {
    // Taken away, or everything made read-only, between look and confirm.
    let stage = Stage::start().await;
    let operator = stage.operator().await;
    let ada = stage.person("ada", on(Role::Operator, None, None)).await;
    let held = stage.hold(&operator, "r").await;
    let id = stage.begun(&ada, &held).await;
    let system = Who::system("test");
    let identity = stage.identity();
    identity.set_read_only(&system, true).await.unwrap();
    assert_eq!(code(&stage.confirm(&ada, &id, "r").await), (403, "forbidden"));
    identity.set_read_only(&system, false).await.unwrap();
    let person = identity.directory().person_named("ada").unwrap().id.clone();
    let narrower = on(Role::Operator, None, Some("elsewhere"));
    identity.set_grants(&system, &person, narrower).await.unwrap();
    let refused = stage.confirm(&ada, &id, "r").await;
    assert!(
        [(403, "forbidden"), (404, "not_found")].contains(&code(&refused)),
        "{refused:?}"
    );
    assert!(stage.is_held(&operator, &held).await);
}

#[tokio::test]
async fn a_backend_without_an_account_for_it_or_without_an_answer_unlocks_nothing() {
    // No unlock_url: 409. Behind a cut link: 503 for the intent, and for the confirmation of one made before.
    let redis = Throwaway::redis(RedisOptions::default()).await.unwrap();
    let proxy = Proxy::start(redis.port()).await;
    let url = |port: u16| format!("redis://127.0.0.1:{port}");
    let toml = format!(
        "[[backend]]\nname = \"looking\"\nkind = \"redis\"\nurls = [\"{0}\"]\npatterns = [\"lock:*\"]\npoll = \"1s\"\n\
         [[backend]]\nname = \"cache\"\nkind = \"redis\"\nurls = [\"{1}\"]\nunlock_url = \"{1}\"\n\
         patterns = [\"lock:*\"]\npoll = \"1s\"\ntimeout = \"8s\"\n",
        url(redis.port()),
        url(proxy.port()),
    );
    let stage = Stage::on(Home::sqlite(), &toml).await;
    let operator = stage.operator().await;
    let client = redis::Client::open(redis.url()).unwrap();
    let mut driver = client.get_multiplexed_async_connection().await.unwrap();
    let () = redis::cmd("SET")
        .arg("lock:a")
        .arg("one")
        .query_async(&mut driver)
        .await
        .unwrap();
    let refused = stage
        .begin(&operator, &stage.seen(&operator, "looking", "lock:a").await)
        .await;
    assert_eq!(code(&refused), (409, "unlock_unavailable"), "{}", refused.1);
    let held = stage.seen(&operator, "cache", "lock:a").await;
    let id = stage.begun(&operator, &held).await;
    proxy.set(Link::Cut).await;
    let confirmed = stage.confirm(&operator, &id, "lock:a").await;
    assert_eq!(code(&confirmed), (503, "backend_stale"), "{}", confirmed.1);
    assert_eq!(stage.state(&operator, &id).await["state"], "pending");
    eventually("the backend is stale or down", async || {
        let begun = stage.begin(&operator, &held).await;
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
        state(&stage.confirm(&operator, &id, "lock:a").await) == (200, "released")
    })
    .await;
}

#[tokio::test]
async fn what_cannot_be_recorded_is_not_done() {
    // Another process keeps the record's file to itself: 503 for look and act, the lease lives; later it works.
    let stage = Stage::start().await;
    let operator = stage.operator().await;
    let held = stage.hold(&operator, "r").await;
    let id = stage.begun(&operator, &held).await;
    let mut keeper = SqliteConnection::connect(&stage.home.console()).await.unwrap();
    keeper.execute("BEGIN IMMEDIATE").await.unwrap();
    assert_eq!(
        code(&stage.begin(&operator, &held).await),
        (503, "audit_unavailable")
    );
    assert_eq!(
        code(&stage.confirm(&operator, &id, "r").await),
        (503, "audit_unavailable")
    );
    assert!(stage.is_held(&operator, &held).await);
    keeper.execute("ROLLBACK").await.unwrap();
    assert_eq!(
        state(&stage.confirm(&operator, &id, "r").await),
        (200, "released")
    );
}

#[tokio::test]
async fn bodies_that_say_something_else_are_refused_by_field() {
    // Missing, of another kind, too long, unknown; and ids that are none.
    let stage = Stage::start().await;
    let operator = stage.operator().await;
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
        let reply = stage.post(&operator, "/v1/unlocks", &body).await;
        assert_eq!(
            (code(&reply), &reply.1["field"]),
            ((400, "invalid"), &json!(field)),
            "{}",
            reply.1
        );
    }
    for id in ["u_0", "..%2F", "%00", "bulk"] {
        let reply = stage.get(&operator, &format!("/v1/unlocks/{id}")).await;
        assert!(reply.0 == 404 || reply.0 == 405, "{id}: {reply:?}");
        let step = stage.confirm(&operator, id, "r").await;
        assert!([400, 404].contains(&step.0), "{id}: {step:?}");
    }
    let none = answered(stage.request(&operator, Method::POST, "/v1/unlocks")).await;
    assert_eq!(none.0, 400);
}
