//! A real backend that is down when the server starts.

use ::testkit::free_port;
use domain::alerts::{AlertPhase, Draft, Subject};
use domain::names::{BackendName, LockId, Resource, Source};
use leasehold::identity::Principal;
use leasehold::serve::Serving;
use runtime::clock::Clock;
use serde_json::json;

use crate::support::{Store, TestServer};
use testkit::eventually;

const RULE: &str = "backend_unreachable";

async fn start(store: &Store, toml: &str) -> TestServer {
    TestServer::builder().config(toml).start_on(store.shared()).await
}

/// A backend at which there is no server.
fn away() -> String {
    let port = free_port().unwrap();
    format!(
        "[[backend]]\nname = \"away\"\nkind = \"postgres\"\nurl = \"postgres://watch@127.0.0.1:{port}/orders\"\npoll_interval = \"1s\"\n"
    )
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
    let away = away();
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

#[tokio::test(flavor = "multi_thread")]
async fn downtime_before_an_unknown_result_does_not_count() {
    // An alert about a lock is pending since a minute before the server stopped; an hour later its backend does not answer.
    let store = Store::sqlite();
    start(&store, "").await.stop().await;
    let stopped_at = Clock::start().now().wall.timestamp_millis() - 3_600_000;
    let since = stopped_at - 60_000;
    let subject = Subject::Lock(LockId {
        backend: BackendName::parse("away").unwrap(),
        source: Source::fixed("advisory"),
        resource: Resource::from("jobs/1"),
    });
    let body = json!({"owner": "w", "holding": "", "measure": 0, "why": "", "notified": null, "silenced_by": null,
        "phase": {"pending": {"since": since, "unknown_since": null}}});
    let subject_json = serde_json::to_string(&subject).unwrap();
    let pending = format!(
        "UPDATE alert_evaluator SET evaluated_at = {stopped_at};
        INSERT INTO alerts (rule_id, subject, subject_id, is_open, body)
        VALUES ('long_held', '{subject_json}', 'away', 1, '{body}')"
    );
    store.sql(&pending).await;
    let server = start(&store, &away()).await;
    let frozen = AlertPhase::Pending {
        since,
        unknown_since: Some(stopped_at),
    };
    eventually("it is unknown since the last evaluation", async || {
        let open = server.serving.alerts.open(&Default::default()).await.unwrap();
        let found = open.iter().find(|open| open.kept.alert.subject == subject);
        found.is_some_and(|open| open.kept.alert.phase == frozen)
    })
    .await;
    server.stop().await;
}
