//! Receivers and the outbox over HTTP, and the permissions for them.

use crate::support::{TestCaller, TestServer, on, reply};
use domain::access::Role;
use reqwest::{Client, Method};
use serde_json::{Value, json};

use super::notifier::{LOCAL_RECEIVERS, SECRET, firing};
use crate::support::webhook_sink::{Reply, WebhookSink};
use testkit::eventually;

async fn send(
    server: &TestServer,
    token: &TestCaller,
    method: Method,
    path: &str,
    body: &Value,
) -> (u16, Value) {
    reply(token.authenticate(Client::new().request(method, server.url(path)).json(body))).await
}

async fn admin(server: &TestServer) -> TestCaller {
    server.token("admin", on(Role::Admin, None, None)).await
}

fn hook(url: &str) -> Value {
    json!({"name": "ops", "kind": "webhook", "urls": [url], "secret": SECRET})
}

#[tokio::test]
async fn receiver_changes_by_admins_are_audited() {
    // No answer and no row holds the secret, nor the query that is one.
    let sink = WebhookSink::open().await;
    let server = TestServer::builder().config(LOCAL_RECEIVERS).start().await;
    let admin = admin(&server).await;
    let url = format!("{}/in?token=c4nary-query", sink.url);
    let mut responses = Vec::new();
    let mut ask = async |method: Method, path: &str, body: Value| {
        let (status, answer) = send(&server, &admin, method, path, &body).await;
        responses.push(answer.to_string());
        (status, answer)
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
    assert_eq!(receiver["urls"], json!([format!("{}/in?…", sink.url)]));
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
    assert_eq!(sink.received().len(), 1);
    let change = json!({"urls": [format!("{}/other", sink.url)]});
    // The only receiver gets the notification of its change at the new address, before the test message.
    sink.answers([Reply::Status(200), Reply::Status(500)]);
    assert_eq!(ask(Method::PUT, "/v1/receivers/ops", change).await.0, 204);
    sink.wait_for(2).await;
    let (_, tried) = ask(Method::POST, "/v1/receivers/ops/test", Value::Null).await;
    assert_eq!(tried["trials"][0]["fault"], "answered 500: not accepted");
    let paths = sink.received();
    let paths: Vec<&str> = paths.iter().map(|received| received.path.as_str()).collect();
    assert_eq!(paths, ["/in", "/other", "/other"]);
    assert_eq!(ask(Method::DELETE, "/v1/receivers/ops", Value::Null).await.0, 204);
    assert_eq!(ask(Method::DELETE, "/v1/receivers/ops", Value::Null).await.0, 404);
    let rows = server.audit_entries().await;
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
    assert!(
        format!("{:?}", rows[0]).contains("pendingMessages"),
        "{:?}",
        rows[0]
    );
    responses.push(format!("{rows:?}"));
    for text in responses {
        assert!(!text.contains(SECRET) && !text.contains("c4nary"), "{text}");
    }
}

#[tokio::test]
async fn invalid_receivers_are_refused_with_field_and_remedy() {
    // Inner addresses, no address, no secret, a weak one, an unknown kind, a bad name, an unknown field.
    let server = TestServer::builder().config(LOCAL_RECEIVERS).start().await;
    let admin = admin(&server).await;
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
        (with("urls", json!(["http://1.1.1.1/"])), "urls", "plain HTTP"),
        (with("urls", json!([])), "urls", "needed"),
        (
            with("urls", json!("https://1.1.1.1/")),
            "urls",
            "must be an array",
        ),
        (with("secret", Value::Null), "secret", "is required"),
        (with("secret", json!("short")), "secret", "at least"),
        (with("kind", json!("pager")), "kind", "one of"),
        (with("name", json!("Ops Team")), "name", "a-z"),
        (with("colour", json!("red")), "colour", "is not a field"),
    ] {
        let (status, problem) = send(&server, &admin, Method::POST, "/v1/receivers", &body).await;
        assert_eq!((status, &problem["field"]), (400, &json!(field)), "{problem}");
        assert!(problem["detail"].as_str().unwrap().contains(word), "{problem}");
    }
    let (_, listed) = server.as_user(&admin).get("/v1/receivers").await;
    assert_eq!(listed, json!({"receivers": []}));
    for (query, field) in [
        ("state=lost", "state"),
        ("limit=0", "limit"),
        ("before=x", "before"),
        ("a=b", "a"),
    ] {
        let (status, problem) = server
            .as_user(&admin)
            .get(&format!("/v1/notifications?{query}"))
            .await;
        assert_eq!((status, &problem["field"]), (400, &json!(field)), "{problem}");
    }
}

#[tokio::test]
async fn a_dead_letter_is_listed_and_retried() {
    // Refused once; listed as a dead letter with the receiver's answer; retried and delivered; a second retry is
    // refused.
    let sink = WebhookSink::open().await;
    sink.answers([Reply::Status(403)]);
    let server = TestServer::builder().config(LOCAL_RECEIVERS).start().await;
    let admin = admin(&server).await;
    send(&server, &admin, Method::POST, "/v1/receivers", &hook(&sink.url)).await;
    let db = runtime::db::Db::open(&server.store.url).await.unwrap();
    super::notifier::enqueue_notice(&db, &firing("tenant_1:close")).await;
    let found = std::cell::RefCell::new(Value::Null);
    eventually("it is dead", async || {
        let (_, dead) = server
            .as_user(&admin)
            .get("/v1/notifications?state=dead&receiver=ops&limit=1")
            .await;
        *found.borrow_mut() = dead["notifications"][0].clone();
        found.borrow().is_object()
    })
    .await;
    let dead = found.into_inner();
    assert_eq!(
        (&dead["answer"], &dead["attempts"]),
        (&json!("answered 403: not accepted"), &json!(1))
    );
    assert_eq!(
        (&dead["status"], &dead["group"]),
        (&json!("firing"), &json!("LongHeld:tenant_1:close"))
    );
    let path = format!("/v1/notifications/{}/retry", dead["id"].as_str().unwrap());
    let (status, _) = send(&server, &admin, Method::POST, &path, &Value::Null).await;
    assert_eq!(status, 204);
    sink.wait_for(2).await;
    eventually("it is delivered", async || {
        let (_, all) = server
            .as_user(&admin)
            .get("/v1/notifications?state=delivered")
            .await;
        all["notifications"].as_array().is_some_and(|all| all.len() == 1)
    })
    .await;
    let (status, problem) = send(&server, &admin, Method::POST, &path, &Value::Null).await;
    assert_eq!((status, &problem["code"]), (409, &json!("not_dead")));
    let (status, _) = send(
        &server,
        &admin,
        Method::POST,
        "/v1/notifications/x/retry",
        &Value::Null,
    )
    .await;
    assert_eq!(status, 404);
}
