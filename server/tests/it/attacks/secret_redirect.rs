//! An admin, or a stolen admin token, changes the address of a receiver to read its write-only secret there.

use crate::support::{TestServer, on};
use domain::access::Role;
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::webhook_sink::{ReceivedRequest, WebhookSink};

const TOML: &str = "[notify]\nallowed_networks = [\"127.0.0.1/32\"]\n";
const BEARER: &str = "Bearer c4nary-of-the-alertmanager";

fn bearer(received: &ReceivedRequest) -> Option<&str> {
    received.headers.get("authorization")?.to_str().ok()
}

#[tokio::test]
async fn a_stored_secret_is_not_sent_to_another_origin() {
    // Another origin alone and as a further peer; another path of the same origin; another origin with a secret.
    let server = TestServer::builder().config(TOML).start().await;
    let admin = server.token("admin", on(Role::Admin, None, None)).await;
    let (known, other) = (WebhookSink::open().await, WebhookSink::open().await);
    let new = json!({
        "name": "ops", "kind": "alertmanager", "urls": [known.url], "secret": BEARER.replace("Bearer ", ""),
    });
    let added = server.as_user(&admin).post("/v1/receivers", &new).await;
    assert_eq!(added.0, 201, "{}", added.1);
    let change = async |body: Value| {
        let user = server.as_user(&admin);
        user.json(Method::PUT, "/v1/receivers/ops", &body).await
    };
    for urls in [json!([other.url]), json!([known.url, other.url])] {
        let (status, problem) = change(json!({"urls": urls})).await;
        assert_eq!((status, &problem["field"]), (400, &json!("secret")), "{problem}");
        assert!(problem["remedy"].is_string(), "{problem}");
    }
    let test = async || {
        let user = server.as_user(&admin);
        user.post("/v1/receivers/ops/test", &Value::Null).await.0
    };
    assert_eq!(test().await, 200);
    assert_eq!(bearer(&known.received()[0]), Some(BEARER));

    let same_origin = json!({"urls": [format!("{}/am", known.url)]});
    let (status, problem) = change(same_origin).await;
    assert_eq!(status, 204, "{problem}");
    assert_eq!(test().await, 200);
    let moved = known.received();
    let moved: Vec<_> = moved
        .iter()
        .filter(|received| received.path.starts_with("/am/"))
        .collect();
    assert!(!moved.is_empty() && moved.iter().all(|received| bearer(received) == Some(BEARER)));

    assert!(other.received().is_empty());
    let with_secret = json!({"urls": [other.url], "secret": "a-token-of-the-other"});
    let (status, problem) = change(with_secret).await;
    assert_eq!(status, 204, "{problem}");
    assert_eq!(test().await, 200);
    let received = other.received();
    let is_new = |received: &ReceivedRequest| bearer(received) == Some("Bearer a-token-of-the-other");
    assert!(!received.is_empty() && received.iter().all(is_new));
}
