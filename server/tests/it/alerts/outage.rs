//! A real backend that is down when the server starts.

use ::testkit::free_port;
use domain::alerts::Draft;
use leasehold::identity::Principal;
use leasehold::serve::Serving;

use crate::support::{Store, TestServer};
use testkit::eventually;

const RULE: &str = "backend_unreachable";

async fn start(store: &Store, toml: &str) -> TestServer {
    TestServer::builder().config(toml).start_on(store.shared()).await
}

/// Which alert on the outage there is, since when, and whether it fires.
async fn alert(serving: &Serving) -> Option<(i64, i64, bool)> {
    let open = serving.alerts.open(&Default::default()).await.unwrap();
    let found = open.iter().find(|open| open.rule.id.as_str() == RULE);
    let alert = &found?.kept.alert;
    Some((alert.id, alert.since(), alert.is_firing()))
}

async fn fires_after(serving: &Serving, for_: &str) {
    let kept = serving.alerts.rule(RULE).await.unwrap();
    let mut draft = Draft::from(&kept.rule);
    draft.for_ = Some(for_.to_owned());
    let who = Principal::system("test");
    serving
        .alerts
        .save_rule(&who, draft, Some(kept.version), false)
        .await
        .unwrap();
}

/// Waits for this number of passes, all of which fail.
async fn failed(serving: &Serving, passes: usize) {
    eventually("it was looked at", async || {
        let views = serving.inventory.backends(serving.clock.now());
        views
            .iter()
            .any(|view| view.name.as_str() == "away" && view.answers_ms.len() >= passes)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn backend_down_at_start_fires_once_over_a_restart() {
    // Fails if an outage at the start fires before the rule's `for`, is notified again after a
    // restart, or is resolved by one.
    let store = Store::sqlite();
    let first = start(&store, "").await;
    fires_after(&first.serving, "1h").await;
    first.stop().await;
    let port = free_port().unwrap();
    let away = format!(
        "[[backend]]\nname = \"away\"\nkind = \"postgres\"\nurl = \"postgres://watch@127.0.0.1:{port}/orders\"\npoll_interval = \"1s\"\n"
    );
    let second = start(&store, &away).await;
    eventually("it is pending", async || alert(&second.serving).await.is_some()).await;
    failed(&second.serving, 5).await;
    assert!(
        !alert(&second.serving).await.unwrap().2,
        "it fired before the hour was over"
    );
    fires_after(&second.serving, "1s").await;
    eventually("it fires", async || {
        alert(&second.serving)
            .await
            .is_some_and(|(.., is_firing)| is_firing)
    })
    .await;
    let before = alert(&second.serving).await;
    second.stop().await;
    let third = start(&store, &away).await;
    failed(&third.serving, 5).await;
    assert_eq!(alert(&third.serving).await, before);
    assert!(
        third
            .serving
            .alerts
            .resolved(&Default::default(), 10)
            .await
            .unwrap()
            .is_empty()
    );
    third.stop().await;
}
