//! Receivers and the outbox over HTTP, and who may.

use domain::access::Role;
use leasehold::identity::Secret;
use reqwest::{Client, Method, StatusCode};
use serde_json::{Value, json};

use super::stage::{SECRET, firing};
use crate::people::stage::{Stage, call, get, on};
use crate::support::ear::{Ear, Reply};
use crate::support::eventually::eventually;

async fn send(
    stage: &Stage,
    token: &Secret,
    method: Method,
    path: &str,
    body: &Value,
) -> (StatusCode, Value) {
    call(Client::new().request(method, stage.url(path)).json(body), token).await
}

async fn admin(stage: &Stage) -> Secret {
    stage.token("admin", on(Role::Admin, None, None)).await
}

fn hook(url: &str) -> Value {
    json!({"name": "ops", "kind": "webhook", "urls": [url], "secret": SECRET})
}

#[tokio::test]
async fn an_admin_adds_tries_changes_and_removes_a_receiver_and_each_is_a_row() {
    // No answer and no row holds the secret, nor the query that is one.
    let ear = Ear::open().await;
    let stage = Stage::start().await;
    let admin = admin(&stage).await;
    let url = format!("{}/in?token=c4nary-query", ear.url);
    let mut said = Vec::new();
    let mut ask = async |method: Method, path: &str, body: Value| {
        let (status, answer) = send(&stage, &admin, method, path, &body).await;
        said.push(answer.to_string());
        (status.as_u16(), answer)
    };
    assert_eq!(ask(Method::POST, "/v1/receivers", hook(&url)).await.0, 201);
    let (status, again) = ask(Method::POST, "/v1/receivers", hook(&url)).await;
    assert_eq!((status, &again["code"]), (409, &json!("exists")));
    let (_, listed) = ask(Method::GET, "/v1/receivers", Value::Null).await;
    let receiver = &listed["receivers"][0];
    assert_eq!(
        (&receiver["kind"], &receiver["hasSecret"]),
        (&json!("webhook"), &json!(true))
    );
    assert_eq!(receiver["urls"], json!([format!("{}/in?…", ear.url)]));
    let (status, tried) = ask(Method::POST, "/v1/receivers/ops/test", Value::Null).await;
    let trial = &tried["trials"][0];
    assert_eq!(
        (status, &trial["status"], &trial["answer"]),
        (200, &json!(200), &json!("heard"))
    );
    assert!(
        trial["body"]
            .as_str()
            .unwrap()
            .contains("This is a test. Nothing is wrong.")
    );
    assert_eq!(ear.heard().len(), 1);
    let change = json!({"urls": [format!("{}/other", ear.url)]});
    assert_eq!(ask(Method::PUT, "/v1/receivers/ops", change).await.0, 204);
    ear.answers([Reply::Status(500)]);
    let (_, tried) = ask(Method::POST, "/v1/receivers/ops/test", Value::Null).await;
    assert_eq!(tried["trials"][0]["fault"], "answered 500: said so");
    assert_eq!(ear.heard()[1].path, "/other");
    assert_eq!(ask(Method::DELETE, "/v1/receivers/ops", Value::Null).await.0, 204);
    assert_eq!(ask(Method::DELETE, "/v1/receivers/ops", Value::Null).await.0, 404);
    let rows = stage.record().await;
    let rows: Vec<_> = rows
        .iter()
        .filter(|row| row.action.starts_with("RECEIVER"))
        .collect();
    let mut actions: Vec<&str> = rows.iter().map(|row| row.action.as_str()).collect();
    actions.reverse();
    let wanted = [
        "RECEIVER_CREATE",
        "RECEIVER_TEST",
        "RECEIVER_CHANGE",
        "RECEIVER_TEST",
        "RECEIVER_REMOVE",
    ];
    assert_eq!(actions, wanted);
    assert!(rows.iter().all(|row| row.actor_name == "admin"));
    said.push(format!("{rows:?}"));
    for text in said {
        assert!(!text.contains(SECRET) && !text.contains("c4nary"), "{text}");
    }
}

#[tokio::test]
async fn what_does_not_fit_is_refused_with_its_field_and_what_to_do() {
    // Inner addresses, no address, no secret, a weak one, an unknown kind, a bad name, an unknown field.
    let stage = Stage::start().await;
    let admin = admin(&stage).await;
    let with = |field: &str, value: Value| {
        let mut body = hook("https://1.1.1.1/");
        body[field] = value;
        body
    };
    for (body, field, word) in [
        (with("urls", json!(["https://10.0.0.1/"])), "urls", "private"),
        (
            with("urls", json!(["https://169.254.169.254/"])),
            "urls",
            "metadata",
        ),
        (
            with("urls", json!(["https://[::ffff:10.0.0.1]/"])),
            "urls",
            "private",
        ),
        (with("urls", json!(["http://1.1.1.1/"])), "urls", "plain http"),
        (with("urls", json!([])), "urls", "needed"),
        (
            with("urls", json!("https://1.1.1.1/")),
            "urls",
            "array of strings",
        ),
        (with("secret", Value::Null), "secret", "needed"),
        (with("secret", json!("short")), "secret", "guessed"),
        (with("kind", json!("pager")), "kind", "one of"),
        (with("name", json!("Ops Team")), "name", "a-z"),
        (with("colour", json!("red")), "colour", "is not a field"),
    ] {
        let (status, problem) = send(&stage, &admin, Method::POST, "/v1/receivers", &body).await;
        assert_eq!(
            (status.as_u16(), &problem["field"]),
            (400, &json!(field)),
            "{problem}"
        );
        assert!(problem["detail"].as_str().unwrap().contains(word), "{problem}");
    }
    let (_, listed) = get(&stage, &admin, "/v1/receivers").await;
    assert_eq!(listed, json!({"receivers": []}));
    for (query, field) in [
        ("state=lost", "state"),
        ("limit=0", "limit"),
        ("before=x", "before"),
        ("a=b", "a"),
    ] {
        let (status, problem) = get(&stage, &admin, &format!("/v1/notifications?{query}")).await;
        assert_eq!(
            (status.as_u16(), &problem["field"]),
            (400, &json!(field)),
            "{problem}"
        );
    }
}

#[tokio::test]
async fn a_dead_letter_is_listed_and_tried_again() {
    // Refused once; listed as dead with what was answered; tried again, delivered; not a second time.
    let ear = Ear::open().await;
    ear.answers([Reply::Status(403)]);
    let stage = Stage::start().await;
    let admin = admin(&stage).await;
    send(&stage, &admin, Method::POST, "/v1/receivers", &hook(&ear.url)).await;
    let db = leasehold::db::Db::open(&stage.store).await.unwrap();
    super::stage::tell(&db, &firing("tenant_1:close")).await;
    let found = std::cell::RefCell::new(Value::Null);
    eventually("it is dead", async || {
        let (_, dead) = get(
            &stage,
            &admin,
            "/v1/notifications?state=dead&receiver=ops&limit=1",
        )
        .await;
        *found.borrow_mut() = dead["notifications"][0].clone();
        found.borrow().is_object()
    })
    .await;
    let dead = found.into_inner();
    assert_eq!(
        (&dead["answer"], &dead["attempts"]),
        (&json!("answered 403: said so"), &json!(1))
    );
    assert_eq!(
        (&dead["status"], &dead["group"]),
        (&json!("firing"), &json!("LongHeld:tenant_1:close"))
    );
    let path = format!("/v1/notifications/{}/retry", dead["id"].as_str().unwrap());
    let (status, _) = send(&stage, &admin, Method::POST, &path, &Value::Null).await;
    assert_eq!(status.as_u16(), 204);
    ear.hears(2).await;
    eventually("it is delivered", async || {
        let (_, all) = get(&stage, &admin, "/v1/notifications?state=delivered").await;
        all["notifications"].as_array().is_some_and(|all| all.len() == 1)
    })
    .await;
    let (status, problem) = send(&stage, &admin, Method::POST, &path, &Value::Null).await;
    assert_eq!((status.as_u16(), &problem["code"]), (409, &json!("not_dead")));
    let (status, _) = send(
        &stage,
        &admin,
        Method::POST,
        "/v1/notifications/x/retry",
        &Value::Null,
    )
    .await;
    assert_eq!(status.as_u16(), 404);
}
