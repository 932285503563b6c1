//! A real Alertmanager, with a webhook receiver behind it that shows the notifications it derives from ours.

use ::testkit::{Alertmanager, AlertmanagerOptions, Throwaway};
use leasehold::notify::{DeliveryState, ReceiverKind};
use serde_json::Value;

use super::notifier::{HOME, Store, TestNotifier, config, firing, resolved};
use crate::support::webhook_sink::WebhookSink;
use testkit::eventually;

async fn manager(behind: &WebhookSink) -> Alertmanager {
    let config = format!(
        "route: {{receiver: r, group_by: [resource], group_wait: 0s, group_interval: 1s, repeat_interval: 1h}}\n\
         receivers: [{{name: r, webhook_configs: [{{url: '{}', send_resolved: true}}]}}]\n",
        behind.url
    );
    Throwaway::alertmanager(AlertmanagerOptions { config })
        .await
        .unwrap()
}

/// Its active alerts.
async fn held(manager: &Alertmanager) -> Vec<Value> {
    let url = format!("{}/api/v2/alerts", manager.url());
    let answer = reqwest::get(url).await.unwrap();
    answer.json().await.unwrap()
}

/// Notifications that it sent on: resource and status.
fn statuses(behind: &WebhookSink) -> Vec<String> {
    let status = |body: Value| format!("{} {}", body["alerts"][0]["labels"]["resource"], body["status"]);
    behind
        .received()
        .iter()
        .map(|received| status(received.json()))
        .collect()
}

async fn survives_a_restart(store: Store) {
    let behind = WebhookSink::open().await;
    let manager = manager(&behind).await;
    let notifier = TestNotifier::on(store, config()).await;
    notifier
        .add("am", ReceiverKind::Alertmanager, &[&manager.url()])
        .await;
    notifier.enqueue_notice(&firing("a")).await;
    notifier.are(DeliveryState::Delivered).await;
    behind.wait_for(1).await;
    let first = held(&manager).await;
    assert_eq!(first[0]["labels"]["resource"], "a");
    assert_eq!(first[0]["generatorURL"], format!("{HOME}/locks/builtin/jobs"));
    let notifier = notifier.again().await;
    // Sent again before it expires, four seconds after the last time.
    eventually("it is renewed", async || {
        let now = held(&manager).await;
        assert_eq!(now.len(), 1, "it lapsed");
        assert_eq!(now[0]["startsAt"], first[0]["startsAt"]);
        now[0]["endsAt"].as_str() > first[0]["endsAt"].as_str()
    })
    .await;
    let until = first[0]["endsAt"].as_str().unwrap().to_owned();
    eventually("it outlives what was status before the restart", async || {
        let now = held(&manager).await;
        assert_eq!(now.len(), 1, "it lapsed");
        now[0]["updatedAt"].as_str().unwrap() > until.as_str()
    })
    .await;
    notifier.enqueue_notice(&resolved(firing("a"))).await;
    behind.wait_for(2).await;
    eventually("it is gone", async || held(&manager).await.is_empty()).await;
    // The resolution is sent several times, and then no more.
    eventually("no alert is active", async || {
        let count = "SELECT count(*) FROM active_alerts";
        let left: i64 = match &notifier.db {
            runtime::db::Db::Sqlite(pool) => sqlx::query_scalar(count).fetch_one(pool).await.unwrap(),
            runtime::db::Db::Postgres(pool) => sqlx::query_scalar(count).fetch_one(pool).await.unwrap(),
        };
        left == 0
    })
    .await;
    assert_eq!(statuses(&behind), ["\"a\" \"firing\"", "\"a\" \"resolved\""]);
}

#[tokio::test]
async fn an_alert_survives_a_restart_without_loss_or_repeat() {
    // Sent, repeated by another server, resolved; Alertmanager sends on one firing and one resolution. On both stores.
    survives_a_restart(Store::sqlite()).await;
    survives_a_restart(Store::postgres().await).await;
}

#[tokio::test]
async fn every_alertmanager_peer_is_notified_also_after_an_outage() {
    // Two servers with separate stores: the first is killed before, and started again.
    let behind = WebhookSink::open().await;
    let (one, two) = (manager(&behind).await, manager(&behind).await);
    two.kill().await.unwrap();
    let notifier = TestNotifier::start().await;
    notifier
        .add("am", ReceiverKind::Alertmanager, &[&one.url(), &two.url()])
        .await;
    notifier.enqueue_notice(&firing("a")).await;
    let delivered = notifier.are(DeliveryState::Delivered).await;
    let status = delivered[0].answer.as_deref().unwrap();
    assert!(
        status.starts_with("1 of 2 accepted it; http://127.0.0.1:"),
        "{status}"
    );
    assert_eq!(held(&one).await.len(), 1);
    two.restart().await.unwrap();
    eventually("the second Alertmanager has the alert", async || {
        held(&two).await.len() == 1
    })
    .await;
}

#[tokio::test]
async fn alerts_of_a_dead_console_expire() {
    // No server repeats the alert: four intervals later it expires in Alertmanager.
    let behind = WebhookSink::open().await;
    let manager = manager(&behind).await;
    let notifier = TestNotifier::start().await;
    notifier
        .add("am", ReceiverKind::Alertmanager, &[&manager.url()])
        .await;
    notifier.enqueue_notice(&firing("a")).await;
    notifier.are(DeliveryState::Delivered).await;
    behind.wait_for(1).await;
    let _left = notifier.stopped().await;
    eventually("it lapses", async || held(&manager).await.is_empty()).await;
    eventually("the resolution is sent", async || {
        statuses(&behind).last().unwrap() == "\"a\" \"resolved\""
    })
    .await;
}
