//! Token rotation: a token that succeeds another one inherits its leases, and nothing else.

use crate::support::{TestCaller, TestServer, on, reply};
use domain::access::{Grant, Role};
use leasehold::identity::{NewToken, Principal};
use reqwest::Client;
use serde_json::{Value, json};

fn new(name: &str, grants: Vec<Grant>) -> NewToken {
    NewToken {
        name: name.to_owned(),
        grants,
        expires_in: None,
    }
}

async fn successor(server: &TestServer, name: &str, of: &str, prefix: Option<&str>) -> TestCaller {
    let new = new(name, on(Role::Client, None, prefix));
    let who = Principal::system("test");
    let secret = server.identity().create_successor(&who, new, of).await;
    secret.unwrap().into()
}

async fn lease(server: &TestServer, token: &TestCaller, resource: &str) -> String {
    let (status, lease) = server.as_user(token).acquire(resource).await;
    assert_eq!((status, &lease["acquired"]), (200, &json!(true)), "{lease}");
    format!("/v1/locks/{}", lease["leaseId"].as_str().unwrap())
}

async fn renew(server: &TestServer, token: &TestCaller, lease: &str) -> u16 {
    reply(token.authenticate(Client::new().post(server.url(&format!("{lease}/renew")))))
        .await
        .0
}

async fn release(server: &TestServer, token: &TestCaller, lease: &str) -> (u16, Value) {
    server.as_user(token).delete(lease).await
}

#[tokio::test]
async fn successor_inherits_the_leases_of_its_whole_chain() {
    // first → second → third; the first is revoked. The third renews, reads, follows, lists and releases leases of both.
    let server = TestServer::builder().redis().start().await;
    let first = server.token("first", on(Role::Client, None, None)).await;
    let of_first = lease(&server, &first, "jobs:1").await;
    let second = successor(&server, "second", "first", None).await;
    let of_second = lease(&server, &second, "jobs:2").await;
    let revoked = server
        .identity()
        .revoke_token(&Principal::system("test"), "first")
        .await;
    revoked.unwrap();
    let third = successor(&server, "third", "second", None).await;
    let of_third = lease(&server, &third, "jobs:3").await;

    let (_, list) = server.as_user(&third).get("/v1/locks").await;
    let ids = list["locks"].as_array().unwrap().iter();
    let ids: Vec<String> = ids
        .map(|one| format!("/v1/locks/{}", one["leaseId"].as_str().unwrap()))
        .collect();
    assert_eq!(ids, [of_first.clone(), of_second.clone(), of_third.clone()]);
    for lease in [&of_first, &of_second] {
        assert_eq!(renew(&server, &third, lease).await, 200);
        assert_eq!(server.as_user(&third).get(lease).await.0, 200);
        let events = Client::new().get(server.url(&format!("{lease}/events")));
        let events = events.bearer_auth(third.secret()).send().await.unwrap();
        assert_eq!(events.status(), 200);
        assert_eq!(release(&server, &third, lease).await.1, json!({"released": true}));
    }
    assert_eq!(
        release(&server, &second, &of_third).await.0,
        404,
        "inheritance goes one way"
    );
}

#[tokio::test]
async fn a_successor_is_limited_to_its_own_scope() {
    // A narrower successor does not reach the lease; a token that succeeds another one does not either.
    let server = TestServer::builder().redis().start().await;
    let first = server.token("first", on(Role::Client, None, None)).await;
    let held = lease(&server, &first, "tenant_2:job").await;
    server.token("unrelated", on(Role::Client, None, None)).await;
    let narrow = successor(&server, "narrow", "first", Some("tenant_1:")).await;
    let other = successor(&server, "other", "unrelated", None).await;
    for token in [&narrow, &other] {
        assert_eq!(renew(&server, token, &held).await, 404);
        assert_eq!(release(&server, token, &held).await.0, 404);
        assert_eq!(server.as_user(token).get(&held).await.0, 404);
    }
    assert_eq!(renew(&server, &first, &held).await, 200);
}

#[tokio::test]
async fn a_successor_is_created_by_api_and_page() {
    // By id over the API, by name on the page; an unknown one is a fault of the field; the audit entry names it.
    let server = TestServer::builder().redis().start().await;
    let admin = server.token("admin", on(Role::Admin, None, None)).await;
    let first = server.token("first", on(Role::Client, None, None)).await;
    let held = lease(&server, &first, "jobs:1").await;
    let id = server.identity().tokens().await.unwrap();
    let id = id.iter().find(|token| token.name == "first").unwrap().id.clone();
    let make = async |name: &str, of: &str| {
        let body = json!({"name": name, "grants": [{"role": "client"}], "successorOf": of});
        server.as_user(&admin).post("/v1/tokens", &body).await
    };
    let (status, problem) = make("lost", "nowhere\0").await;
    assert_eq!(
        (status, &problem["field"]),
        (400, &json!("successorOf")),
        "{problem}"
    );
    let (status, made) = make("second", &id).await;
    assert_eq!(status, 201, "{made}");
    let renew = Client::new().post(server.url(&format!("{held}/renew")));
    let renewed = renew
        .bearer_auth(made["token"].as_str().unwrap())
        .send()
        .await
        .unwrap();
    assert_eq!(renewed.status(), 200);
    let (_, list) = server.as_user(&admin).get("/v1/tokens").await;
    let tokens = list["tokens"].as_array().unwrap();
    let of = |name: &str| &tokens.iter().find(|one| one["name"] == name).unwrap()["successorOf"];
    assert_eq!((of("second"), of("first")), (&json!("first"), &Value::Null));
    let entry = &server.audit_entries().await[0];
    assert!(entry.after.as_ref().unwrap().contains(&id), "{entry:?}");

    server.add_user("root", on(Role::Admin, None, None)).await;
    let root = server.signed_in("root").await;
    let form = |of: &'static str| {
        [
            ("name", "third"),
            ("role", "client"),
            ("days", "30"),
            ("backend", ""),
            ("prefix", ""),
            ("successor_of", of),
        ]
    };
    let refused = root.post("/settings/tokens", &form("nowhere")).await;
    assert_eq!(refused.status(), 422);
    assert!(refused.text().await.unwrap().contains("no token is named"));
    let made = root.post("/settings/tokens", &form("second")).await;
    assert_eq!(made.status(), 201);
    assert!(made.text().await.unwrap().contains("successor of second"));
}
