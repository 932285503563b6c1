//! Token rotation: a token that succeeds another one inherits its leases, and nothing else.

use domain::access::{Grant, Role};
use leasehold::identity::{NewToken, Secret, Who};
use reqwest::{Client, StatusCode};
use serde_json::{Value, json};

use super::stage::{Stage, acquire, call, get, on};

fn new(name: &str, grants: Vec<Grant>) -> NewToken {
    NewToken {
        name: name.to_owned(),
        grants,
        expires_in: None,
    }
}

async fn successor(stage: &Stage, name: &str, of: &str, prefix: Option<&str>) -> Secret {
    let new = new(name, on(Role::Client, None, prefix));
    let who = Who::system("test");
    stage.identity().create_successor(&who, new, of).await.unwrap()
}

async fn lease(stage: &Stage, token: &Secret, resource: &str) -> String {
    let (status, lease) = acquire(stage, token, resource).await;
    assert_eq!(
        (status, &lease["acquired"]),
        (StatusCode::OK, &json!(true)),
        "{lease}"
    );
    format!("/v1/locks/{}", lease["leaseId"].as_str().unwrap())
}

async fn renew(stage: &Stage, token: &Secret, lease: &str) -> StatusCode {
    call(Client::new().post(stage.url(&format!("{lease}/renew"))), token)
        .await
        .0
}

async fn release(stage: &Stage, token: &Secret, lease: &str) -> (StatusCode, Value) {
    call(Client::new().delete(stage.url(lease)), token).await
}

#[tokio::test]
async fn successor_inherits_the_leases_of_its_whole_chain() {
    // first → second → third; the first is revoked. The third renews, reads, follows, lists and releases leases of both.
    let stage = Stage::start().await;
    let first = stage.token("first", on(Role::Client, None, None)).await;
    let of_first = lease(&stage, &first, "jobs:1").await;
    let second = successor(&stage, "second", "first", None).await;
    let of_second = lease(&stage, &second, "jobs:2").await;
    let revoked = stage.identity().revoke_token(&Who::system("test"), "first").await;
    revoked.unwrap();
    let third = successor(&stage, "third", "second", None).await;
    let of_third = lease(&stage, &third, "jobs:3").await;

    let (_, list) = get(&stage, &third, "/v1/locks").await;
    let ids = list["locks"].as_array().unwrap().iter();
    let ids: Vec<String> = ids
        .map(|one| format!("/v1/locks/{}", one["leaseId"].as_str().unwrap()))
        .collect();
    assert_eq!(ids, [of_first.clone(), of_second.clone(), of_third.clone()]);
    for lease in [&of_first, &of_second] {
        assert_eq!(renew(&stage, &third, lease).await, StatusCode::OK);
        assert_eq!(get(&stage, &third, lease).await.0, StatusCode::OK);
        let events = Client::new().get(stage.url(&format!("{lease}/events")));
        let events = events.bearer_auth(third.expose()).send().await.unwrap();
        assert_eq!(events.status(), StatusCode::OK);
        assert_eq!(release(&stage, &third, lease).await.1, json!({"released": true}));
    }
    assert_eq!(
        release(&stage, &second, &of_third).await.0,
        StatusCode::NOT_FOUND,
        "inheritance goes one way"
    );
}

#[tokio::test]
async fn successor_keeps_to_its_own_scope_and_others_inherit_nothing() {
    // A narrower successor does not reach the lease; a token that succeeds another one does not either.
    let stage = Stage::start().await;
    let first = stage.token("first", on(Role::Client, None, None)).await;
    let held = lease(&stage, &first, "tenant_2:job").await;
    stage.token("unrelated", on(Role::Client, None, None)).await;
    let narrow = successor(&stage, "narrow", "first", Some("tenant_1:")).await;
    let other = successor(&stage, "other", "unrelated", None).await;
    for token in [&narrow, &other] {
        assert_eq!(renew(&stage, token, &held).await, StatusCode::NOT_FOUND);
        assert_eq!(release(&stage, token, &held).await.0, StatusCode::NOT_FOUND);
        assert_eq!(get(&stage, token, &held).await.0, StatusCode::NOT_FOUND);
    }
    assert_eq!(renew(&stage, &first, &held).await, StatusCode::OK);
}

#[tokio::test]
async fn successor_is_made_by_api_and_by_page_and_listed() {
    // By id over the API, by name on the page; an unknown one is a fault of the field; the audit entry names it.
    let stage = Stage::start().await;
    let admin = stage.token("admin", on(Role::Admin, None, None)).await;
    let first = stage.token("first", on(Role::Client, None, None)).await;
    let held = lease(&stage, &first, "jobs:1").await;
    let id = stage.identity().tokens().await.unwrap();
    let id = id.iter().find(|token| token.name == "first").unwrap().id.clone();
    let make = async |name: &str, of: &str| {
        let body = json!({"name": name, "grants": [{"role": "client"}], "successorOf": of});
        call(Client::new().post(stage.url("/v1/tokens")).json(&body), &admin).await
    };
    let (status, problem) = make("lost", "nowhere\0").await;
    assert_eq!(
        (status, &problem["field"]),
        (StatusCode::BAD_REQUEST, &json!("successorOf")),
        "{problem}"
    );
    let (status, made) = make("second", &id).await;
    assert_eq!(status, StatusCode::CREATED, "{made}");
    let renew = Client::new().post(stage.url(&format!("{held}/renew")));
    let renewed = renew
        .bearer_auth(made["token"].as_str().unwrap())
        .send()
        .await
        .unwrap();
    assert_eq!(renewed.status(), StatusCode::OK);
    let (_, list) = get(&stage, &admin, "/v1/tokens").await;
    let tokens = list["tokens"].as_array().unwrap();
    let of = |name: &str| &tokens.iter().find(|one| one["name"] == name).unwrap()["successorOf"];
    assert_eq!((of("second"), of("first")), (&json!("first"), &Value::Null));
    let entry = &stage.record().await[0];
    assert!(entry.after.as_ref().unwrap().contains(&id), "{entry:?}");

    stage.person("root", on(Role::Admin, None, None)).await;
    let root = stage.signed_in("root").await;
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
    assert_eq!(refused.status(), StatusCode::UNPROCESSABLE_ENTITY);
    assert!(refused.text().await.unwrap().contains("no token is named"));
    let made = root.post("/settings/tokens", &form("second")).await;
    assert_eq!(made.status(), StatusCode::CREATED);
    assert!(made.text().await.unwrap().contains("successor of second"));
}
