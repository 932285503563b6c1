//! Alerts, rules, silences, receivers, the outbox.

use domain::access::Role;
use reqwest::Method;
use serde_json::{Value, json};

use super::http_client::SnapshotClient;
use crate::support::webhook_sink::{Reply, WebhookSink};
use crate::support::{TestServer, on};
use testkit::eventually;

#[tokio::test]
async fn bodies_of_alerts_and_receivers() {
    // A rejected write fires an alert, whose notification the receiver refuses for good.
    let receiver = WebhookSink::open().await;
    let config = "[notify]\nallowed_networks = [\"127.0.0.1/32\"]\n";
    let server = TestServer::builder().config(config).start().await;
    let admin = server.token("admin", on(Role::Admin, None, None)).await;
    let client = SnapshotClient {
        server: &server,
        caller: &admin,
    };
    let new = json!({
        "name": "ops", "kind": "webhook", "urls": [receiver.url], "secret": "a secret of thirty-two characters"
    });
    let (status, added) = server.as_user(&admin).post("/v1/receivers", &new).await;
    assert_eq!(status, 201, "{added}");
    client
        .send(
            Method::POST,
            "/v1/receivers/{name}/test",
            "/v1/receivers/ops/test",
            Value::Null,
        )
        .await;
    receiver.answers((0..20).map(|_| Reply::Status(404)));
    let rejection = json!({
        "resource": "jobs/nightly", "fencingToken": 3, "highestToken": 5, "ownerId": "worker-1", "source": "orders-db"
    });
    let operator = server.operator().await;
    let reported = server
        .as_user(&operator)
        .post("/v1/fencing/rejections", &rejection)
        .await;
    assert_eq!(reported.0, 202);
    eventually("the alert fires and its notification is dead", async || {
        let dead = server.as_user(&admin).get("/v1/notifications").await.1;
        dead["notifications"][0]["state"] == "dead"
    })
    .await;
    client.get("/v1/alerts").await;
    client.get("/v1/notifications").await;
    client.get("/v1/receivers").await;
    let rule = json!({"id": "mine", "name": "Busy jobs", "condition": "contention", "prefix": "jobs/", "anyPrefix": true});
    client
        .send(Method::PUT, "/v1/rules", "/v1/rules", rule.clone())
        .await;
    client.get("/v1/rules").await;
    client.post("/v1/rules/preview", rule).await;
    let silence = json!({
        "matchers": [{"label": "resource", "value": "jobs/nightly"}], "lasts": "2h", "comment": "maintenance"
    });
    client.post("/v1/silences", silence).await;
    client.get("/v1/silences").await;
}
