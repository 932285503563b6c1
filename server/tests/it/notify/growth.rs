//! A storm that grows is notified again with its true count, and only then.

use domain::notification::Notice;
use leasehold::notify::{DeliveryState, Occasion, Pacing, ReceiverKind, enqueue_at};
use runtime::clock::Clock;
use serde_json::json;

use super::notifier::{Store, TestNotifier, config, firing};
use crate::support::webhook_sink::WebhookSink;

async fn enqueue(test_notifier: &TestNotifier, notice: &Notice, occasion: Occasion) -> u64 {
    let mut tx = test_notifier.db.begin().await.unwrap();
    let now = Clock::start().now().wall.timestamp_millis();
    let receivers = enqueue_at(&mut tx, notice, occasion, Pacing::IMMEDIATE, now)
        .await
        .unwrap();
    tx.commit().await.unwrap();
    test_notifier.notifier.wake();
    receivers
}

async fn grows(store: Store) {
    let hook = WebhookSink::open().await;
    let notifier = TestNotifier::on(store, config()).await;
    notifier.add("hook", ReceiverKind::Webhook, &[&hook.url]).await;
    let of_size = |size: u64| Notice {
        truncated: size - 1,
        ..firing("jobs/nightly")
    };
    let steps = [
        (Occasion::Change, 300, 1),
        (Occasion::Growth, 500, 0),
        (Occasion::Change, 599, 0),
        (Occasion::Growth, 600, 1),
        (Occasion::Change, 1_000, 0),
        (Occasion::Change, 1_300, 1),
    ];
    for (occasion, size, receivers) in steps {
        let notified = enqueue(&notifier, &of_size(size), occasion).await;
        assert_eq!(notified, receivers, "{occasion:?} {size}");
    }
    notifier.are(DeliveryState::Delivered).await;
    let mut truncated: Vec<_> = hook
        .received()
        .iter()
        .map(|received| received.json()["truncatedAlerts"].clone())
        .collect();
    truncated.sort_by_key(serde_json::Value::as_u64);
    assert_eq!(truncated, [json!(299), json!(599), json!(1_299)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_is_notified_again_when_it_doubles_on_sqlite() {
    Box::pin(grows(Store::sqlite())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_is_notified_again_when_it_doubles_on_postgres() {
    Box::pin(grows(Store::postgres().await)).await;
}
