//! Messages go to declared addresses only, and a slow receiver does not block the others.

use std::time::Duration;

use ::config::NotifyConfig;
use leasehold::notify::{DeliveryState, ReceiverKind};
use runtime::clock::Clock;

use super::notifier::{Store, TestNotifier, firing};
use crate::support::webhook_sink::{Reply, WebhookSink};

/// Past the check at saving, as if the name had led elsewhere then.
async fn pretend(test_notifier: &TestNotifier, url: &str) {
    let statement = format!("UPDATE receivers SET urls = '[\"{url}\"]'");
    test_notifier.sql(&statement).await;
}

#[tokio::test]
async fn an_internal_address_is_refused_at_the_connection() {
    // Saved as a public address; then a literal, a name that resolves to this machine, and plain HTTP: no connection
    // is opened.
    let sink = WebhookSink::open().await;
    let port = sink.url.rsplit(':').next().unwrap().to_owned();
    for (url, why) in [
        (format!("https://127.0.0.1:{port}/"), "loopback"),
        (format!("http://127.0.0.1:{port}/"), "loopback"),
        (format!("http://localhost:{port}/"), "loopback"),
        (format!("https://localhost:{port}/"), "loopback"),
        (format!("http://[::ffff:127.0.0.1]:{port}/"), "loopback"),
        ("http://169.254.169.254/latest".to_owned(), "metadata"),
        ("http://1.1.1.1/".to_owned(), "plain HTTP"),
    ] {
        let notifier = TestNotifier::on(Store::sqlite(), NotifyConfig::default()).await;
        notifier
            .add("hook", ReceiverKind::Webhook, &["https://1.1.1.1/"])
            .await;
        pretend(&notifier, &url).await;
        notifier.enqueue_notice(&firing("a")).await;
        let dead = notifier.are(DeliveryState::Dead).await;
        let fault = dead[0].answer.as_deref().unwrap();
        assert!(
            fault.starts_with("not sent: ") && fault.contains(why),
            "{url}: {fault}"
        );
    }
    assert_eq!(sink.received().len(), 0);
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    // A redirect from a declared address to another one that would accept it.
    let (sink, elsewhere) = (WebhookSink::open().await, WebhookSink::open().await);
    sink.answers([Reply::With(307, "location", elsewhere.url.clone())]);
    let notifier = TestNotifier::start().await;
    notifier.add("hook", ReceiverKind::Webhook, &[&sink.url]).await;
    notifier.enqueue_notice(&firing("a")).await;
    let dead = notifier.are(DeliveryState::Dead).await;
    assert!(
        dead[0]
            .answer
            .as_deref()
            .unwrap()
            .contains("redirects are not followed")
    );
    assert_eq!((sink.received().len(), elsewhere.received().len()), (1, 0));
}

#[tokio::test]
async fn a_silent_receiver_times_out_without_delaying_others() {
    // One never answers; the other receives its message meanwhile.
    let (mute, sink) = (WebhookSink::open().await, WebhookSink::open().await);
    mute.answers([Reply::Silence]);
    let notifier = TestNotifier::start().await;
    notifier.add("mute", ReceiverKind::Webhook, &[&mute.url]).await;
    notifier.add("hook", ReceiverKind::Webhook, &[&sink.url]).await;
    let clock = Clock::start();
    notifier.enqueue_notice(&firing("a")).await;
    sink.wait_for(1).await;
    assert!(clock.tick().0 < 4_000, "{:?}", clock.tick());
    let received = mute.wait_for(2).await;
    let pause = received[1].at - received[0].at;
    assert!((5_000..12_000).contains(&pause), "{pause} ms");
    notifier.are(DeliveryState::Delivered).await;
}

#[tokio::test]
async fn an_endless_response_is_cut() {
    // Taken all the same, and long before it could have been read.
    let sink = WebhookSink::open().await;
    sink.answers([Reply::Flood]);
    let notifier = TestNotifier::start().await;
    notifier.add("hook", ReceiverKind::Webhook, &[&sink.url]).await;
    let delivered = tokio::time::timeout(Duration::from_secs(4), async {
        notifier.enqueue_notice(&firing("a")).await;
        notifier.are(DeliveryState::Delivered).await
    });
    assert_eq!(
        delivered.await.unwrap()[0].answer.as_deref(),
        Some("answered 200")
    );
}
