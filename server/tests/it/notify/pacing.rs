//! Changes of a group within its interval are one message, for all receivers but an Alertmanager.

use domain::notification::{Notice, NoticeAlert, NoticeStatus};
use leasehold::notify::{Delivery, DeliveryState, Occasion, Pacing, ReceiverKind, enqueue_at};
use runtime::clock::Clock;

use super::notifier::{Store, TestNotifier, config, firing};
use crate::support::webhook_sink::WebhookSink;

const MINUTE: i64 = 60_000;
const PACING: Pacing = Pacing {
    growth_factor: 2,
    group_interval_ms: 5 * MINUTE,
};

/// Locks that fire, each since its time, and locks that have resolved.
fn notice(fires: &[(&str, i64)], resolved: &[(&str, i64)], now: i64) -> Notice {
    let one = firing("jobs/nightly");
    let alert = |(lock, since): &(&str, i64), status| NoticeAlert {
        status,
        starts_at: *since,
        ends_at: (status == NoticeStatus::Resolved).then_some(now),
        fingerprint: (*lock).to_owned(),
        ..one.alerts[0].clone()
    };
    let resolved = resolved.iter().map(|one| alert(one, NoticeStatus::Resolved));
    let fires = fires.iter().map(|one| alert(one, NoticeStatus::Firing));
    Notice {
        alerts: resolved.chain(fires).collect(),
        ..one.clone()
    }
}

async fn enqueue(test_notifier: &TestNotifier, notice: &Notice, now: i64) -> u64 {
    let mut tx = test_notifier.db.begin().await.unwrap();
    let enqueued = enqueue_at(&mut tx, notice, Occasion::Change, PACING, now)
        .await
        .unwrap();
    tx.commit().await.unwrap();
    test_notifier.notifier.wake();
    enqueued
}

fn waiting(all: &[Delivery]) -> Vec<&Delivery> {
    all.iter()
        .filter(|one| one.state == DeliveryState::Pending)
        .collect()
}

fn alerts(delivery: &Delivery) -> Vec<(&str, NoticeStatus)> {
    let alerts = &delivery.notice.as_ref().unwrap().alerts;
    alerts
        .iter()
        .map(|alert| (alert.fingerprint.as_str(), alert.status))
        .collect()
}

async fn changes_wait_and_are_merged(store: Store) {
    let hook = WebhookSink::open().await;
    let notifier = TestNotifier::on(store, config()).await;
    notifier.add("hook", ReceiverKind::Webhook, &[&hook.url]).await;
    let now = Clock::start().now().wall.timestamp_millis();
    assert_eq!(enqueue(&notifier, &notice(&[("a", now)], &[], now), now).await, 1);
    notifier.are(DeliveryState::Delivered).await;

    // A second lock fires: it waits for the rest of the interval.
    let second = now + MINUTE;
    let both = [("a", now), ("b", second)];
    assert_eq!(enqueue(&notifier, &notice(&both, &[], second), second).await, 1);
    let all = notifier.outbox().await;
    let expected = vec![("a", NoticeStatus::Firing), ("b", NoticeStatus::Firing)];
    assert_eq!(waiting(&all).len(), 1);
    assert_eq!(alerts(waiting(&all)[0]), expected);
    assert_eq!(waiting(&all)[0].next_at, now + 5 * MINUTE);

    // It resolves: nothing has changed, and no message is left.
    let third = second + MINUTE;
    let resolved = notice(&[("a", now)], &[("b", second)], third);
    assert_eq!(enqueue(&notifier, &resolved, third).await, 0);
    assert_eq!(waiting(&notifier.outbox().await).len(), 0);

    // The first resolves and a third fires: one message, at the same time as before.
    let fourth = third + MINUTE;
    let resolved = notice(&[], &[("a", now)], fourth);
    assert_eq!(enqueue(&notifier, &resolved, fourth).await, 1);
    let other = notice(&[("c", fourth)], &[], fourth);
    assert_eq!(enqueue(&notifier, &other, fourth).await, 1);
    let all = notifier.outbox().await;
    assert_eq!(waiting(&all).len(), 1);
    let expected = vec![("a", NoticeStatus::Resolved), ("c", NoticeStatus::Firing)];
    assert_eq!(alerts(waiting(&all)[0]), expected);
    assert_eq!(waiting(&all)[0].next_at, now + 5 * MINUTE);

    // After the interval a change is sent at once.
    let later = now + 20 * MINUTE;
    let grown = notice(&[("d", later)], &[], later);
    notifier
        .sql("UPDATE deliveries SET state = 'delivered', ended_at = 1")
        .await;
    assert_eq!(enqueue(&notifier, &grown, later).await, 1);
    assert_eq!(waiting(&notifier.outbox().await)[0].next_at, later);
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_within_the_interval_are_one_message_on_sqlite() {
    Box::pin(changes_wait_and_are_merged(Store::sqlite())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_within_the_interval_are_one_message_on_postgres() {
    Box::pin(changes_wait_and_are_merged(Store::postgres().await)).await;
}

async fn an_end_in_a_dead_letter_is_sent_later(store: Store) {
    // One of two locks resolves, in a message that the receiver never gets; then a third fires.
    let hook = WebhookSink::open().await;
    let notifier = TestNotifier::on(store, config()).await;
    notifier.add("hook", ReceiverKind::Webhook, &[&hook.url]).await;
    let now = Clock::start().now().wall.timestamp_millis();
    let both = notice(&[("a", now), ("b", now)], &[], now);
    assert_eq!(enqueue(&notifier, &both, now).await, 1);
    notifier.are(DeliveryState::Delivered).await;
    let second = now + MINUTE;
    let resolved = notice(&[("b", now)], &[("a", now)], second);
    assert_eq!(enqueue(&notifier, &resolved, second).await, 1);
    notifier
        .sql("UPDATE deliveries SET state = 'dead', ended_at = next_at WHERE state = 'pending'")
        .await;
    let later = now + 20 * MINUTE;
    let third = notice(&[("b", now), ("c", later)], &[], later);
    assert_eq!(enqueue(&notifier, &third, later).await, 1);
    let all = notifier.outbox().await;
    let (firing, resolved) = (NoticeStatus::Firing, NoticeStatus::Resolved);
    assert_eq!(
        alerts(waiting(&all)[0]),
        [("a", resolved), ("b", firing), ("c", firing)]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_end_in_a_dead_letter_is_sent_later_on_sqlite() {
    Box::pin(an_end_in_a_dead_letter_is_sent_later(Store::sqlite())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_end_in_a_dead_letter_is_sent_later_on_postgres() {
    Box::pin(an_end_in_a_dead_letter_is_sent_later(Store::postgres().await)).await;
}

async fn an_alert_that_waited_for_a_dead_letter_is_sent(store: Store) {
    // The first message becomes a dead letter while a second lock waits, which is silenced then; a third fires.
    let hook = WebhookSink::open().await;
    let notifier = TestNotifier::on(store, config()).await;
    notifier.add("hook", ReceiverKind::Webhook, &[&hook.url]).await;
    let now = Clock::start().now().wall.timestamp_millis();
    assert_eq!(enqueue(&notifier, &notice(&[("a", now)], &[], now), now).await, 1);
    notifier.are(DeliveryState::Delivered).await;
    let second = now + MINUTE;
    let both = notice(&[("a", now), ("b", second)], &[], second);
    assert_eq!(enqueue(&notifier, &both, second).await, 1);
    notifier
        .sql("UPDATE deliveries SET state = 'dead' WHERE state = 'delivered'")
        .await;
    let third = second + MINUTE;
    let other = notice(&[("a", now), ("c", third)], &[], third);
    assert_eq!(enqueue(&notifier, &other, third).await, 1);
    let all = notifier.outbox().await;
    let expected = ["b", "a", "c"].map(|lock| (lock, NoticeStatus::Firing));
    assert_eq!(waiting(&all).len(), 1);
    assert_eq!(alerts(waiting(&all)[0]), expected);
    assert_eq!(waiting(&all)[0].next_at, third);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_waiting_alert_outlives_a_dead_letter_on_sqlite() {
    Box::pin(an_alert_that_waited_for_a_dead_letter_is_sent(Store::sqlite())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_waiting_alert_outlives_a_dead_letter_on_postgres() {
    Box::pin(an_alert_that_waited_for_a_dead_letter_is_sent(
        Store::postgres().await,
    ))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_alertmanager_gets_every_change_at_once() {
    let sink = WebhookSink::open().await;
    let notifier = TestNotifier::on(Store::sqlite(), config()).await;
    notifier
        .add("peers", ReceiverKind::Alertmanager, &[&sink.url])
        .await;
    let now = Clock::start().now().wall.timestamp_millis();
    for (lock, at) in [("a", now), ("b", now + 1)] {
        assert_eq!(enqueue(&notifier, &notice(&[(lock, at)], &[], at), at).await, 1);
    }
    assert!(
        notifier
            .outbox()
            .await
            .iter()
            .all(|one| one.next_at <= now + MINUTE)
    );
}
