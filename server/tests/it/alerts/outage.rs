//! A real backend that is down when the server starts.

use std::net::{Ipv4Addr, SocketAddr};

use domain::alerts::Draft;
use leasehold::clock::Clock;
use leasehold::config::{Config, FileSource, Sources};
use leasehold::identity::Who;
use leasehold::serve::{self, Serving, Setup};
use leasehold::throwaway::free_port;
use tokio_util::sync::CancellationToken;

use crate::support::eventually::eventually;

const RULE: &str = "backend_unreachable";

async fn start(folder: &tempfile::TempDir, backend: &str) -> (Serving, CancellationToken) {
    let _installed = rustls::crypto::ring::default_provider().install_default();
    let file = FileSource {
        path: "leasehold.toml".into(),
        text: backend.to_owned(),
    };
    let config = Config::load(&Sources {
        file: Some(file),
        ..Sources::default()
    })
    .unwrap();
    let stop = CancellationToken::new();
    let setup = Setup {
        listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        store: format!("sqlite:{}", folder.path().join("leasehold.db").display()).into(),
        lease: config.lease,
        backends: config.backends,
        access: config.access,
        history: config.history,
        notify: config.notify,
        clock: Clock::start(),
        stop: stop.clone(),
    };
    (serve::start(setup).await.unwrap(), stop)
}

async fn stop((serving, stop): (Serving, CancellationToken)) {
    stop.cancel();
    assert_eq!(serving.ended().await, None);
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
    let who = Who::system("test");
    serving
        .alerts
        .save_rule(&who, draft, Some(kept.version), false)
        .await
        .unwrap();
}

/// Passes that failed, one after the other.
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
async fn a_backend_down_at_the_start_waits_for_the_rule_and_a_restart_changes_nothing() {
    // Would catch an outage at the start that fires past the rule's `for`, is told again by a restart, or is over by one.
    let folder = tempfile::tempdir().unwrap();
    let first = start(&folder, "").await;
    fires_after(&first.0, "1h").await;
    stop(first).await;
    let port = free_port().unwrap();
    let away = format!(
        "[[backend]]\nname = \"away\"\nkind = \"postgres\"\nurl = \"postgres://watch@127.0.0.1:{port}/orders\"\npoll = \"1s\"\n"
    );
    let second = start(&folder, &away).await;
    eventually("it is pending", async || alert(&second.0).await.is_some()).await;
    failed(&second.0, 5).await;
    assert!(
        !alert(&second.0).await.unwrap().2,
        "it fired before the hour was over"
    );
    fires_after(&second.0, "1s").await;
    eventually("it fires", async || {
        alert(&second.0).await.is_some_and(|(.., is_firing)| is_firing)
    })
    .await;
    let before = alert(&second.0).await;
    stop(second).await;
    let third = start(&folder, &away).await;
    failed(&third.0, 5).await;
    assert_eq!(alert(&third.0).await, before);
    assert!(
        third
            .0
            .alerts
            .resolved(&Default::default(), 10)
            .await
            .unwrap()
            .is_empty()
    );
    stop(third).await;
}
