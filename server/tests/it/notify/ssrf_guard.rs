//! Messages go to declared addresses only, and a slow receiver does not block the others.

use std::time::Duration;

use ::config::NotifyConfig;
use leasehold::notify::{DeliveryState, ReceiverKind};
use runtime::clock::Clock;

use super::notifier::{Store, TestNotifier, firing};
use crate::support::webhook_sink::{Ear, Reply};

/// Past the check at saving, as if the name had led elsewhere then.
async fn pretend(stage: &TestNotifier, url: &str) {
    let statement = format!("UPDATE receivers SET urls = '[\"{url}\"]'");
    stage.sql(&statement).await;
}

#[tokio::test]
async fn an_internal_address_is_refused_at_the_connection() {
    // Saved as a public address; then a literal, a name that resolves to this machine, and plain HTTP: no connection
    // is opened.
    let ear = Ear::open().await;
    let port = ear.url.rsplit(':').next().unwrap().to_owned();
    for (url, why) in [
        (format!("https://127.0.0.1:{port}/"), "loopback"),
        (format!("http://127.0.0.1:{port}/"), "loopback"),
        (format!("http://localhost:{port}/"), "loopback"),
        (format!("https://localhost:{port}/"), "loopback"),
        (format!("http://[::ffff:127.0.0.1]:{port}/"), "loopback"),
        ("http://169.254.169.254/latest".to_owned(), "metadata"),
        ("http://1.1.1.1/".to_owned(), "plain HTTP"),
    ] {
        let stage = TestNotifier::on(Store::sqlite(), NotifyConfig::default()).await;
        stage
            .add("hook", ReceiverKind::Webhook, &["https://1.1.1.1/"])
            .await;
        pretend(&stage, &url).await;
        stage.tell(&firing("a")).await;
        let dead = stage.are(DeliveryState::Dead).await;
        let said = dead[0].answer.as_deref().unwrap();
        assert!(
            said.starts_with("not sent: ") && said.contains(why),
            "{url}: {said}"
        );
    }
    assert_eq!(ear.heard().len(), 0);
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    // A redirect from a declared address to another one that would accept it.
    let (ear, elsewhere) = (Ear::open().await, Ear::open().await);
    ear.answers([Reply::With(307, "location", elsewhere.url.clone())]);
    let stage = TestNotifier::start().await;
    stage.add("hook", ReceiverKind::Webhook, &[&ear.url]).await;
    stage.tell(&firing("a")).await;
    let dead = stage.are(DeliveryState::Dead).await;
    assert!(
        dead[0]
            .answer
            .as_deref()
            .unwrap()
            .contains("redirects are not followed")
    );
    assert_eq!((ear.heard().len(), elsewhere.heard().len()), (1, 0));
}

#[tokio::test]
async fn a_silent_receiver_times_out_without_delaying_others() {
    // One never answers; the other receives its message meanwhile.
    let (mute, ear) = (Ear::open().await, Ear::open().await);
    mute.answers([Reply::Silence]);
    let stage = TestNotifier::start().await;
    stage.add("mute", ReceiverKind::Webhook, &[&mute.url]).await;
    stage.add("hook", ReceiverKind::Webhook, &[&ear.url]).await;
    let clock = Clock::start();
    stage.tell(&firing("a")).await;
    ear.hears(1).await;
    assert!(clock.tick().0 < 4_000, "{:?}", clock.tick());
    let heard = mute.hears(2).await;
    let pause = heard[1].at - heard[0].at;
    assert!((5_000..12_000).contains(&pause), "{pause} ms");
    stage.are(DeliveryState::Delivered).await;
}

#[tokio::test]
async fn an_endless_response_is_cut() {
    // Taken all the same, and long before it could have been read.
    let ear = Ear::open().await;
    ear.answers([Reply::Flood]);
    let stage = TestNotifier::start().await;
    stage.add("hook", ReceiverKind::Webhook, &[&ear.url]).await;
    let delivered = tokio::time::timeout(Duration::from_secs(4), async {
        stage.tell(&firing("a")).await;
        stage.are(DeliveryState::Delivered).await
    });
    assert_eq!(
        delivered.await.unwrap()[0].answer.as_deref(),
        Some("answered 200")
    );
}
