//! What each kind of receiver is sent: headers and body.

use leasehold::notify::{DeliveryState, ReceiverKind};

use super::assert_snapshot;
use crate::notify::notifier::{TestNotifier, firing, resolved};
use crate::support::webhook_sink::{ReceivedRequest, WebhookSink};

fn headers(received: &ReceivedRequest) -> String {
    let ours = received
        .headers
        .iter()
        .filter(|(name, _)| name.as_str().starts_with("x-") || *name == "content-type");
    let mut lines: Vec<String> = ours
        .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
        .collect();
    lines.sort();
    lines.join("\n")
}

fn body(received: &ReceivedRequest) -> String {
    serde_json::to_string_pretty(&received.json()).unwrap()
}

async fn sent(kind: ReceiverKind, name: &str) {
    let sink = WebhookSink::open().await;
    let notifier = TestNotifier::start().await;
    notifier.add("ops", kind, &[&sink.url]).await;
    notifier.enqueue_notice(&firing("jobs/nightly")).await;
    let firing_message = sink.wait_for(1).await[0].clone();
    notifier.are(DeliveryState::Delivered).await;
    assert_snapshot(&format!("notification-{name}-headers"), &headers(&firing_message));
    assert_snapshot(&format!("notification-{name}-firing"), &body(&firing_message));
    notifier.enqueue_notice(&resolved(firing("jobs/nightly"))).await;
    notifier.are(DeliveryState::Delivered).await;
    // An Alertmanager is sent a firing alert again and again.
    let first =
        |received: &ReceivedRequest| received.body.contains("esolved") || kind == ReceiverKind::Alertmanager;
    let all = sink.received();
    let last = all.iter().rev().find(|received| first(received)).unwrap();
    assert_snapshot(&format!("notification-{name}-resolved"), &body(last));
}

#[tokio::test]
async fn messages_of_a_webhook() {
    sent(ReceiverKind::Webhook, "webhook").await;
}

#[tokio::test]
async fn messages_of_slack() {
    sent(ReceiverKind::Slack, "slack").await;
}

#[tokio::test]
async fn messages_of_alertmanager() {
    sent(ReceiverKind::Alertmanager, "alertmanager").await;
}
