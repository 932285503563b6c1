//! Receivers are added, and those of a rule are changed, while its alert fires.

use crate::support::{Store, TestServer, on};
use domain::access::Role;
use leasehold::identity::Principal;
use leasehold::notify::{NewReceiver, ReceiverKind};
use reqwest::Method;
use serde_json::{Value, json};

use crate::notify::notifier::{LOCAL_RECEIVERS, SECRET, TestNotifier, config};
use crate::support::webhook_sink::WebhookSink;
use testkit::eventually;

async fn add_receiver(server: &TestServer, name: &str) -> WebhookSink {
    add(server, name, ReceiverKind::Webhook).await
}

async fn add(server: &TestServer, name: &str, kind: ReceiverKind) -> WebhookSink {
    let sink = WebhookSink::open().await;
    let new = NewReceiver {
        name: name.to_owned(),
        kind,
        urls: vec![sink.url.as_str().into()],
        secret: (kind == ReceiverKind::Webhook).then(|| SECRET.into()),
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

async fn start(store: Store) -> TestServer {
    TestServer::builder()
        .config(LOCAL_RECEIVERS)
        .start_on(store)
        .await
}

/// A rejected write fires, and counts as notified although there is no receiver.
async fn fire_without_receivers(server: &TestServer) {
    let client = server.token("client", on(Role::Client, None, None)).await;
    let rejection = json!({"resource": "jobs/1", "fencingToken": 3, "highestToken": 5, "source": "test"});
    let reported = server.as_user(&client);
    reported
        .done(Method::POST, "/v1/fencing/rejections", &rejection)
        .await;
    eventually("it counts as notified", async || {
        let notified = server.serving.alerts.notified_fingerprints().await;
        !notified.unwrap().is_empty()
    })
    .await;
}

/// States of the messages about rejected writes.
fn states(sink: &WebhookSink) -> Vec<String> {
    let of_rule = messages(sink).into_iter();
    let of_rule = of_rule.filter(|(_, group)| group.contains("fencing_rejections/"));
    of_rule.map(|(status, _)| status).collect()
}

async fn later_receivers_are_sent_what_fires(store: Store) {
    let server = start(store).await;
    fire_without_receivers(&server).await;
    let first = add_receiver(&server, "first").await;
    first.wait_for(1).await;
    let second = add_receiver(&server, "second").await;
    second.wait_for(1).await;
    let who = Principal::system("test");
    server.serving.notifier.remove(&who, "second").await.unwrap();
    let recreated = add_receiver(&server, "second").await;
    recreated.wait_for(1).await;
    // The second message is a resend of the firing alert.
    let peers = add(&server, "peers", ReceiverKind::Alertmanager).await;
    peers.wait_for(2).await;
    // Another process adds one while the server is down.
    let offline = WebhookSink::open().await;
    let notifier = TestNotifier::on(server.stop().await, config()).await;
    notifier
        .add("offline", ReceiverKind::Webhook, &[&offline.url])
        .await;
    let server = start(notifier.stopped().await.0).await;
    offline.wait_for(1).await;
    for sink in [&first, &second, &recreated, &offline] {
        assert_eq!(states(sink), ["firing"]);
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_later_receiver_is_sent_what_fires_on_sqlite() {
    // Also one that is created again under its name. The earlier ones are not sent it again.
    Box::pin(later_receivers_are_sent_what_fires(Store::sqlite())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_later_receiver_is_sent_what_fires_on_postgres() {
    Box::pin(later_receivers_are_sent_what_fires(Store::postgres().await)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_evaluator_finds_receivers_of_another_server() {
    // One of the two servers does not evaluate.
    let store = Store::postgres().await;
    let (one, two) = (start(store.shared()).await, start(store.shared()).await);
    fire_without_receivers(&one).await;
    let (first, second) = (
        add_receiver(&one, "first").await,
        add_receiver(&two, "second").await,
    );
    first.wait_for(1).await;
    second.wait_for(1).await;
    one.stop().await;
    two.stop().await;
}
