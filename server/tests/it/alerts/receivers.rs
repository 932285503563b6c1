//! The receivers of a rule are changed while its alert fires.

use crate::support::{TestServer, on};
use domain::access::Role;
use leasehold::identity::Principal;
use leasehold::notify::{NewReceiver, ReceiverKind};
use reqwest::Method;
use serde_json::{Value, json};

use crate::notify::notifier::{LOCAL_RECEIVERS, SECRET};
use crate::support::webhook_sink::WebhookSink;

async fn add_receiver(server: &TestServer, name: &str) -> WebhookSink {
    let sink = WebhookSink::open().await;
    let new = NewReceiver {
        name: name.to_owned(),
        kind: ReceiverKind::Webhook,
        urls: vec![sink.url.as_str().into()],
        secret: Some(SECRET.into()),
    };
    let notifier = &server.serving.notifier;
    notifier.add(&Principal::system("test"), new).await.unwrap();
    sink
}

/// Status and group of each message.
fn messages(sink: &WebhookSink) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let bodies = sink.received().into_iter().map(|received| received.json());
    bodies
        .map(|body| (text(&body["status"]), text(&body["groupKey"])))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn earlier_receivers_of_a_rule_are_sent_the_end() {
    // The new receiver gets the firing alert, and both receivers get its end when the rule is removed.
    let server = TestServer::builder().config(LOCAL_RECEIVERS).start().await;
    let admin = server.token("admin", on(Role::Admin, None, None)).await;
    let client = server.token("client", on(Role::Client, None, None)).await;
    // After the tokens, whose grants are notified too.
    let (old, new) = (
        add_receiver(&server, "old").await,
        add_receiver(&server, "new").await,
    );
    let set_receivers = async |name: &str| {
        let rule =
            json!({"id": "fencing_rejections", "condition": "fencing_rejections", "receivers": [name]});
        server.as_user(&admin).done(Method::PUT, "/v1/rules", &rule).await;
    };
    set_receivers("old").await;
    let rejection = json!({"resource": "jobs/1", "fencingToken": 3, "highestToken": 5, "source": "test"});
    let reported = server.as_user(&client);
    reported
        .done(Method::POST, "/v1/fencing/rejections", &rejection)
        .await;
    old.wait_for(1).await;
    set_receivers("new").await;
    new.wait_for(1).await;
    let removed = server.as_user(&admin);
    removed
        .done(Method::DELETE, "/v1/rules/fencing_rejections", &Value::Null)
        .await;
    old.wait_for(2).await;
    new.wait_for(2).await;
    let (old, new) = (messages(&old), messages(&new));
    let statuses: Vec<&str> = old.iter().map(|(status, _)| status.as_str()).collect();
    assert_eq!(statuses, ["firing", "resolved"]);
    assert_eq!(old, new);
    assert_eq!(old[0].1, old[1].1);
}
