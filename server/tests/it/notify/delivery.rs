//! The outbox: each message once, in order, retried until it is accepted, within a limit.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use ::config::NotifyConfig;
use leasehold::identity::Principal;
use leasehold::notify::{DeliveryState, NotifyError, ReceiverKind};
use serde_json::json;

use super::notifier::{SECRET, Store, TestNotifier, config, firing, resolved};
use crate::support::webhook_sink::{ReceivedRequest, Reply, WebhookSink};
use testkit::eventually;

/// By another program than ours.
fn openssl_hmac(secret: &str, text: &str) -> String {
    let mut child = Command::new("openssl")
        .args(["dgst", "-sha256", "-hmac", secret, "-r"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("openssl is not installed; install it with: apt-get install -y openssl");
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap().stdout;
    String::from_utf8(output)
        .unwrap()
        .split(' ')
        .next()
        .unwrap()
        .to_owned()
}

async fn arrives(store: Store) {
    let (hook, chat, other) = (
        WebhookSink::open().await,
        WebhookSink::open().await,
        WebhookSink::open().await,
    );
    let notifier = TestNotifier::on(store, config()).await;
    notifier
        .add("hook", ReceiverKind::Webhook, &[&format!("{}/in", hook.url)])
        .await;
    notifier
        .add(
            "chat",
            ReceiverKind::Slack,
            &[&format!("{}/services/x", chat.url)],
        )
        .await;
    notifier.add("other", ReceiverKind::Webhook, &[&other.url]).await;
    let mut notice = firing("jobs/nightly");
    notice.receivers = vec!["hook".to_owned(), "chat".to_owned()];
    assert_eq!(notifier.enqueue_notice(&notice).await, 2);
    let all = notifier.are(DeliveryState::Delivered).await;
    let received: Vec<ReceivedRequest> = [hook.received(), chat.received()].concat();
    assert_eq!((received.len(), all.len(), other.received().len()), (2, 2, 0));
    let (signed, body) = (&received[0], received[0].json());
    let text = format!("{}.{}", signed.header("x-timestamp"), signed.body);
    assert_eq!(
        signed.header("x-signature"),
        format!("sha256={}", openssl_hmac(SECRET, &text))
    );
    assert_eq!(signed.header("x-notification-id"), all[0].notification_id);
    assert_eq!((signed.path.as_str(), &body["receiver"]), ("/in", &json!("hook")));
    assert_eq!(body["alerts"][0]["labels"]["resource"], "jobs/nightly");
    assert_eq!(received[1].json()["text"], "Firing: LongHeld");
    assert_eq!(received[1].json()["blocks"].as_array().unwrap().len(), 3);
    assert!(received[1].headers.get("x-signature").is_none());
}

#[tokio::test]
async fn a_signed_message_reaches_each_receiver_once() {
    // A webhook and Slack are named, a third is not; the signature is checked by openssl. On both stores.
    arrives(Store::sqlite()).await;
    arrives(Store::postgres().await).await;
}

#[tokio::test]
async fn an_unchanged_group_is_not_resent_after_a_restart() {
    // Twice; after a restart; then a changed alert, which is sent at once; then the same after the repeat interval.
    let sink = WebhookSink::open().await;
    let notifier = TestNotifier::start().await;
    notifier.add("hook", ReceiverKind::Webhook, &[&sink.url]).await;
    let notice = firing("a");
    assert_eq!(notifier.enqueue_notice(&notice).await, 1);
    assert_eq!(notifier.enqueue_notice(&notice).await, 0);
    sink.wait_for(1).await;
    let notifier = notifier.again().await;
    let mut later = notice.clone();
    later.alerts[0].starts_at += 5_000;
    later.alerts[0]
        .annotations
        .insert("summary".to_owned(), "held for 42 m".to_owned());
    assert_eq!(notifier.enqueue_notice(&later).await, 0);
    assert_eq!(notifier.enqueue_notice(&firing("b")).await, 1);
    assert_eq!(notifier.enqueue_notice(&resolved(notice.clone())).await, 1);
    assert_eq!(notifier.enqueue_notice(&notice).await, 1);
    notifier
        .sql("UPDATE notification_groups SET at = at - 301000")
        .await;
    assert_eq!(notifier.enqueue_notice(&notice).await, 1);
    assert_eq!(notifier.are(DeliveryState::Delivered).await.len(), 5);
    assert_eq!(sink.received().len(), 5);
}

#[tokio::test]
async fn an_unreachable_receiver_gets_messages_later_in_order() {
    // Two refusals; meanwhile the group's end waits behind its beginning, and another group does not wait.
    let sink = WebhookSink::open().await;
    sink.answers([Reply::Status(500), Reply::Status(503)]);
    let notifier = TestNotifier::start().await;
    notifier.add("hook", ReceiverKind::Webhook, &[&sink.url]).await;
    notifier.enqueue_notice(&firing("a")).await;
    sink.wait_for(1).await;
    notifier.enqueue_notice(&resolved(firing("a"))).await;
    notifier.enqueue_notice(&firing("b")).await;
    let all = notifier.are(DeliveryState::Delivered).await;
    let status = |received: &ReceivedRequest| {
        let body = received.json();
        let alert = &body["alerts"][0];
        format!("{} {}", alert["labels"]["resource"], alert["status"])
    };
    let received: Vec<String> = sink.received().iter().map(status).collect();
    let of_a: Vec<&String> = received
        .iter()
        .filter(|status| status.contains("\"a\""))
        .collect();
    assert_eq!(
        of_a.last().unwrap().as_str(),
        "\"a\" \"resolved\"",
        "{received:?}"
    );
    let ends = of_a.iter().filter(|status| status.contains("resolved")).count();
    assert_eq!((received.len(), ends), (5, 1), "{received:?}");
    // Attempts of one message carry one id.
    let ids: std::collections::BTreeSet<String> = sink
        .received()
        .iter()
        .map(|received| received.header("x-notification-id").to_owned())
        .collect();
    assert_eq!((ids.len(), all.len()), (3, 3));
}

#[tokio::test]
async fn retry_after_is_respected() {
    // 429 with three seconds: the next attempt comes after them, though our own pause would have been one.
    let sink = WebhookSink::open().await;
    sink.answers([Reply::With(429, "retry-after", "3".to_owned())]);
    let notifier = TestNotifier::start().await;
    notifier.add("chat", ReceiverKind::Slack, &[&sink.url]).await;
    notifier.enqueue_notice(&firing("a")).await;
    let received = sink.wait_for(2).await;
    let pause = received[1].at - received[0].at;
    assert!((2_900..10_000).contains(&pause), "{pause} ms");
    assert_eq!(notifier.are(DeliveryState::Delivered).await[0].attempts, 2);
}

#[tokio::test]
async fn a_refused_message_is_a_dead_letter_to_retry() {
    // 404 is permanent; a retry after the receiver was fixed arrives; a second retry finds no dead letter.
    let sink = WebhookSink::open().await;
    sink.answers([Reply::Status(404)]);
    let test_notifier = TestNotifier::start().await;
    test_notifier
        .add("hook", ReceiverKind::Webhook, &[&sink.url])
        .await;
    test_notifier.enqueue_notice(&firing("a")).await;
    let dead = test_notifier.are(DeliveryState::Dead).await;
    assert_eq!(
        (dead[0].attempts, dead[0].answer.as_deref()),
        (1, Some("answered 404: not accepted"))
    );
    let view = &test_notifier.notifier.receivers().await.unwrap()[0];
    assert_eq!(
        (view.dead, view.waiting, view.fault()),
        (1, 0, Some("answered 404: not accepted"))
    );
    let who = Principal::system("test");
    let firing = BTreeSet::new();
    let retried = test_notifier.notifier.retry(&who, dead[0].id, &firing);
    retried.await.unwrap();
    test_notifier.are(DeliveryState::Delivered).await;
    assert_eq!(sink.received().len(), 2);
    let again = test_notifier.notifier.retry(&who, dead[0].id, &firing).await;
    assert!(
        matches!(again, Err(NotifyError::NotDead { state: "delivered" })),
        "{again:?}"
    );
    let view = &test_notifier.notifier.receivers().await.unwrap()[0];
    assert_eq!((view.dead, view.fault()), (0, None));
}

#[tokio::test]
async fn a_retried_dead_letter_has_the_ends_of_its_alerts() {
    // Two alerts of rules, of which one has ended since; and one without a rule, whose state is not known.
    let sink = WebhookSink::open().await;
    sink.answers([Reply::Status(404)]);
    let test_notifier = TestNotifier::start().await;
    test_notifier
        .add("hook", ReceiverKind::Webhook, &[&sink.url])
        .await;
    let mut notice = firing("a");
    let without_rule = notice.alerts[0].clone();
    notice.alerts[0]
        .labels
        .insert("rule".to_owned(), "long_held".to_owned());
    notice.alerts.push(notice.alerts[0].clone());
    notice.alerts.push(without_rule);
    notice.alerts[0].fingerprint = "ended".to_owned();
    notice.alerts[1].fingerprint = "fires".to_owned();
    test_notifier.enqueue_notice(&notice).await;
    let dead = test_notifier.are(DeliveryState::Dead).await;
    let who = Principal::system("test");
    let firing = BTreeSet::from(["fires".to_owned()]);
    let retried = test_notifier.notifier.retry(&who, dead[0].id, &firing);
    retried.await.unwrap();
    test_notifier.are(DeliveryState::Delivered).await;
    let received = sink.received();
    let statuses = |received: &ReceivedRequest| {
        let body = received.json();
        let alerts = body["alerts"].as_array().unwrap().iter();
        let statuses = alerts.map(|alert| alert["status"].as_str().unwrap().to_owned());
        statuses.collect::<Vec<_>>()
    };
    assert_eq!(statuses(&received[0]), ["firing", "firing", "firing"]);
    assert_eq!(statuses(&received[1]), ["resolved", "firing", "firing"]);
    let ids = received
        .iter()
        .map(|received| received.header("x-notification-id"));
    let ids: BTreeSet<&str> = ids.collect();
    assert_eq!(ids.len(), 2, "another message");
}

#[tokio::test]
async fn delivery_stops_after_the_max_retry_time() {
    // The port is closed, and the message expires after one second.
    let config = NotifyConfig {
        max_retry_time: Duration::from_secs(1),
        ..config()
    };
    let notifier = TestNotifier::on(Store::sqlite(), config).await;
    notifier
        .add("hook", ReceiverKind::Webhook, &["http://127.0.0.1:1/"])
        .await;
    notifier.enqueue_notice(&firing("a")).await;
    let dead = notifier.are(DeliveryState::Dead).await;
    assert!(dead[0].attempts >= 2, "{dead:?}");
    assert!(dead[0].answer.as_deref().unwrap().contains("refused"), "{dead:?}");
}

#[tokio::test]
async fn messages_claimed_by_a_dead_server_are_sent_by_another() {
    // Claimed, and never marked: once the claim is over it is sent, whether or not it was sent before.
    let sink = WebhookSink::open().await;
    let (store, config) = TestNotifier::start().await.stopped().await;
    let notifier = TestNotifier::on(store, config).await;
    notifier.add("hook", ReceiverKind::Webhook, &[&sink.url]).await;
    sink.answers([Reply::Silence]);
    notifier.enqueue_notice(&firing("a")).await;
    sink.wait_for(1).await;
    // As after the end of the sending server: the claim of another server expires.
    notifier
        .sql("UPDATE deliveries SET attempts = 7, next_at = 0")
        .await;
    eventually("it is sent again", async || {
        notifier.outbox().await[0].attempts == 8 && sink.received().len() == 2
    })
    .await;
    notifier.are(DeliveryState::Delivered).await;
}

#[tokio::test]
async fn an_alert_without_an_existing_receiver_goes_to_all() {
    // Its receiver was removed; and without any receiver no message is stored.
    let sink = WebhookSink::open().await;
    let test_notifier = TestNotifier::start().await;
    assert_eq!(test_notifier.enqueue_notice(&firing("a")).await, 0);
    test_notifier
        .add("hook", ReceiverKind::Webhook, &[&sink.url])
        .await;
    let mut notice = firing("a");
    notice.receivers = vec!["gone".to_owned()];
    assert_eq!(test_notifier.enqueue_notice(&notice).await, 1);
    sink.wait_for(1).await;
    test_notifier
        .notifier
        .remove(&Principal::system("test"), "hook")
        .await
        .unwrap();
    assert!(test_notifier.outbox().await.is_empty());
}
