//! Nothing is sent to where nobody declared it, and nobody keeps us busy.

use std::time::Duration;

use leasehold::clock::Clock;
use leasehold::config::NotifyConfig;
use leasehold::notify::{DeliveryState, Kind};

use super::stage::{Stage, Store, firing};
use crate::support::ear::{Ear, Reply};

/// Past the check at saving, as if the name had led elsewhere then.
async fn pretend(stage: &Stage, url: &str) {
    let statement = format!("UPDATE receivers SET urls = '[\"{url}\"]'");
    stage.sql(&statement).await;
}

#[tokio::test]
async fn an_inner_address_is_refused_at_the_connection_too() {
    // Saved as an open address; then a literal, a name that leads to this machine, and clear text: none is connected to.
    let ear = Ear::open().await;
    let port = ear.url.rsplit(':').next().unwrap().to_owned();
    for (url, why) in [
        (format!("https://127.0.0.1:{port}/"), "loopback"),
        (format!("http://127.0.0.1:{port}/"), "loopback"),
        (format!("http://localhost:{port}/"), "loopback"),
        (format!("https://localhost:{port}/"), "loopback"),
        (format!("http://[::ffff:127.0.0.1]:{port}/"), "loopback"),
        ("http://169.254.169.254/latest".to_owned(), "metadata"),
        ("http://1.1.1.1/".to_owned(), "plain http"),
    ] {
        let stage = Stage::on(Store::sqlite(), NotifyConfig::default()).await;
        stage.add("hook", Kind::Webhook, &["https://1.1.1.1/"]).await;
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
    // From a declared place to another that would hear it.
    let (ear, elsewhere) = (Ear::open().await, Ear::open().await);
    ear.answers([Reply::With(307, "location", elsewhere.url.clone())]);
    let stage = Stage::start().await;
    stage.add("hook", Kind::Webhook, &[&ear.url]).await;
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
async fn who_does_not_answer_is_cut_after_five_seconds_and_holds_up_nobody_else() {
    // One says nothing; the other hears its message meanwhile.
    let (mute, ear) = (Ear::open().await, Ear::open().await);
    mute.answers([Reply::Silence]);
    let stage = Stage::start().await;
    stage.add("mute", Kind::Webhook, &[&mute.url]).await;
    stage.add("hook", Kind::Webhook, &[&ear.url]).await;
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
async fn an_answer_without_an_end_is_cut() {
    // Taken all the same, and long before it could have been read.
    let ear = Ear::open().await;
    ear.answers([Reply::Flood]);
    let stage = Stage::start().await;
    stage.add("hook", Kind::Webhook, &[&ear.url]).await;
    let delivered = tokio::time::timeout(Duration::from_secs(4), async {
        stage.tell(&firing("a")).await;
        stage.are(DeliveryState::Delivered).await
    });
    assert_eq!(
        delivered.await.unwrap()[0].answer.as_deref(),
        Some("answered 200")
    );
}
