//! A group whose rule gets other receivers while it fires.

use domain::notification::{Notice, NoticeAlert, NoticeStatus};
use leasehold::notify::{Occasion, Pacing, ReceiverKind, enqueue_at};
use runtime::clock::Clock;
use runtime::db::Db;

use super::notifier::{Store, TestNotifier, config, firing};
use crate::support::webhook_sink::WebhookSink;
use testkit::eventually;

const HOUR: i64 = 3_600_000;
const FIRING: NoticeStatus = NoticeStatus::Firing;
const RESOLVED: NoticeStatus = NoticeStatus::Resolved;

/// What one receiver is sent: locks and their states.
type Message = (String, Vec<(String, NoticeStatus)>);

/// A group of these locks, for these receivers.
fn notice(receivers: &[&str], locks: &[(&str, NoticeStatus)]) -> Notice {
    let one = firing("jobs/nightly");
    let alert = |(lock, status): &(&str, NoticeStatus)| NoticeAlert {
        status: *status,
        ends_at: (*status == RESOLVED).then_some(1),
        fingerprint: (*lock).to_owned(),
        ..one.alerts[0].clone()
    };
    Notice {
        receivers: receivers.iter().map(|name| (*name).to_owned()).collect(),
        alerts: locks.iter().map(alert).collect(),
        ..one.clone()
    }
}

struct Group {
    notifier: TestNotifier,
    pacing: Pacing,
    /// In the future, so that no message is sent: each counts as delivered before the next one.
    now: i64,
}

impl Group {
    async fn new(store: Store, pacing: Pacing) -> Self {
        Self {
            notifier: TestNotifier::on(store, config()).await,
            pacing,
            now: Clock::start().now().wall.timestamp_millis() + HOUR,
        }
    }

    /// Enqueues an hour later than before; returns the new messages.
    async fn enqueue(&mut self, occasion: Occasion, notice: &Notice) -> Vec<Message> {
        let delivered =
            "UPDATE deliveries SET state = 'delivered', ended_at = next_at WHERE state = 'pending'";
        self.notifier.sql(delivered).await;
        self.now += HOUR;
        let before = self.notifier.outbox().await.len();
        let mut tx = self.notifier.db.begin().await.unwrap();
        let enqueued = enqueue_at(&mut tx, notice, occasion, self.pacing, self.now).await;
        tx.commit().await.unwrap();
        let all = self.notifier.outbox().await.split_off(before);
        assert_eq!(all.len() as u64, enqueued.unwrap());
        let messages = all.into_iter().map(|delivery| {
            let alerts = delivery.notice.unwrap().alerts.into_iter();
            let alerts = alerts.map(|alert| (alert.fingerprint, alert.status));
            (delivery.receiver, alerts.collect())
        });
        messages.collect()
    }
}

fn message(receiver: &str, locks: &[(&str, NoticeStatus)]) -> Message {
    let locks = locks.iter().map(|(lock, status)| ((*lock).to_owned(), *status));
    (receiver.to_owned(), locks.collect())
}

async fn ends_follow_the_starts(store: Store, group_interval_ms: i64) {
    let hook = WebhookSink::open().await;
    let pacing = Pacing {
        growth_factor: 2,
        group_interval_ms,
    };
    let mut group = Group::new(store, pacing).await;
    for name in ["old", "other", "recent"] {
        group
            .notifier
            .add(name, ReceiverKind::Webhook, &[&hook.url])
            .await;
    }
    let both = [("a", FIRING), ("b", FIRING)];
    let sent = group.enqueue(Occasion::Change, &notice(&["old"], &both)).await;
    assert_eq!(sent, [message("old", &both)]);
    let rerouted = notice(&["recent"], &both);
    let sent = group.enqueue(Occasion::Reroute, &rerouted).await;
    assert_eq!(sent, [message("recent", &both)]);
    assert!(group.enqueue(Occasion::Reroute, &rerouted).await.is_empty());
    // The earlier receiver is not notified of a lock that fires afterwards.
    let three = [("a", FIRING), ("b", FIRING), ("c", FIRING)];
    let sent = group
        .enqueue(Occasion::Change, &notice(&["recent"], &three))
        .await;
    assert_eq!(sent, [message("recent", &three)]);
    let end = [("a", RESOLVED), ("b", FIRING), ("c", FIRING)];
    let sent = group.enqueue(Occasion::Change, &notice(&["recent"], &end)).await;
    assert_eq!(sent, [message("old", &end[..2]), message("recent", &end)]);
    let end = [("b", RESOLVED), ("c", FIRING)];
    let sent = group.enqueue(Occasion::Change, &notice(&["recent"], &end)).await;
    assert_eq!(sent, [message("old", &end[..1]), message("recent", &end)]);
    let end = [("c", RESOLVED)];
    let sent = group.enqueue(Occasion::Change, &notice(&["recent"], &end)).await;
    assert_eq!(sent, [message("recent", &end)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_receiver_of_a_firing_alert_gets_its_end_on_sqlite() {
    Box::pin(ends_follow_the_starts(Store::sqlite(), 0)).await;
    Box::pin(ends_follow_the_starts(Store::sqlite(), HOUR / 2)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_receiver_of_a_firing_alert_gets_its_end_on_postgres() {
    Box::pin(ends_follow_the_starts(Store::postgres().await, 0)).await;
    Box::pin(ends_follow_the_starts(Store::postgres().await, HOUR / 2)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_alertmanager_that_left_a_rule_gets_the_end() {
    // Otherwise the alert would be resent to it as firing, long after its end.
    let hook = WebhookSink::open().await;
    let mut group = Group::new(Store::sqlite(), Pacing::IMMEDIATE).await;
    let kind = ReceiverKind::Alertmanager;
    group.notifier.add("peers", kind, &[&hook.url]).await;
    group
        .notifier
        .add("recent", ReceiverKind::Webhook, &[&hook.url])
        .await;
    let both = [("a", FIRING), ("b", FIRING)];
    group.enqueue(Occasion::Change, &notice(&["peers"], &both)).await;
    assert_eq!(resent(&group).await, ["a", "b"]);
    let rerouted = notice(&["recent"], &both);
    let sent = group.enqueue(Occasion::Reroute, &rerouted).await;
    assert_eq!(sent, [message("recent", &both)]);
    let end = [("a", RESOLVED), ("b", FIRING)];
    group.enqueue(Occasion::Change, &notice(&["recent"], &end)).await;
    assert_eq!(resent(&group).await, ["b"]);
}

/// Alerts that are resent to an Alertmanager as firing.
async fn resent(group: &Group) -> Vec<String> {
    let Db::Sqlite(pool) = &group.notifier.db else {
        unreachable!()
    };
    let select = "SELECT fingerprint FROM active_alerts WHERE sends_left IS NULL ORDER BY fingerprint";
    sqlx::query_scalar(select).fetch_all(pool).await.unwrap()
}

async fn last_messages_stay_while_they_fire(store: Store) {
    // An alert that fires for more than a week, whose rule got another receiver in the meantime.
    let hook = WebhookSink::open().await;
    let mut group = Group::new(store, Pacing::IMMEDIATE).await;
    for name in ["old", "recent"] {
        group
            .notifier
            .add(name, ReceiverKind::Webhook, &[&hook.url])
            .await;
    }
    let of_rule = |receivers: &[&str], locks: &[(&str, NoticeStatus)]| Notice {
        group: "orphaned/1".to_owned(),
        ..notice(receivers, locks)
    };
    let open_alert = "INSERT INTO alerts (rule_id, subject, subject_id, is_open, body, fired_at)
        VALUES ('orphaned', '{}', 'a', 1, '{}', 1)";
    group.notifier.sql(open_alert).await;
    let (one, both) = ([("a", FIRING)], [("a", FIRING), ("b", FIRING)]);
    group.enqueue(Occasion::Change, &of_rule(&["old"], &one)).await;
    group.enqueue(Occasion::Change, &of_rule(&["old"], &both)).await;
    let ten_days_old = "UPDATE deliveries SET state = 'delivered', ended_at = next_at - 864000000";
    group.notifier.sql(ten_days_old).await;
    // It deletes at its start.
    group.notifier = group.notifier.again().await;
    eventually("the earlier message is deleted", async || {
        group.notifier.outbox().await.len() == 1
    })
    .await;
    let end = [("a", RESOLVED), ("b", FIRING)];
    let sent = group.enqueue(Occasion::Change, &of_rule(&["recent"], &end)).await;
    assert_eq!(sent, [message("old", &end), message("recent", &end)]);
    // Without an open alert of the rule no end can follow.
    group.notifier.sql("UPDATE alerts SET is_open = 0").await;
    group.notifier.sql(ten_days_old).await;
    group.notifier = group.notifier.again().await;
    eventually("every message is deleted", async || {
        group.notifier.outbox().await.is_empty()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_message_of_a_firing_group_is_kept_on_sqlite() {
    Box::pin(last_messages_stay_while_they_fire(Store::sqlite())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_message_of_a_firing_group_is_kept_on_postgres() {
    Box::pin(last_messages_stay_while_they_fire(Store::postgres().await)).await;
}
