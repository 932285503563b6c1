//! The demo's alerts: each of the four situations fires within two minutes, by a rule that its visitor can open.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use domain::access::Role;
use leasehold::clock::Clock;
use leasehold::config::{AccessConfig, HistoryConfig, NotifyConfig};
use leasehold::demo::{self, Demo};
use leasehold::identity::Who;
use leasehold::lease::LeaseConfig;
use leasehold::serve::{self, Setup};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::support::console::{client, token};
use crate::support::eventually::within;

const TWO_MINUTES: Duration = Duration::from_secs(120);
const CONDITIONS: [&str; 4] = ["near_expiry", "long_held", "contention", "fencing_rejections"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_situation_has_its_alert_within_two_minutes_and_what_was_near_expiry_resolves() {
    // By the condition of whatever rule fires; a lease near its expiry that ran out or was taken again is over.
    let _installed = rustls::crypto::ring::default_provider().install_default();
    let stop = CancellationToken::new();
    let mut demo = demo::start(stop.clone()).await.unwrap();
    let setup = Setup {
        listen: "127.0.0.1:0".parse().unwrap(),
        store: format!("sqlite:{}", demo.folder().join("leasehold.db").display()).into(),
        lease: LeaseConfig::default(),
        backends: demo.backends(),
        access: AccessConfig::default(),
        history: HistoryConfig::default(),
        notify: NotifyConfig::default(),
        clock: Clock::start(),
        stop: stop.clone(),
    };
    let serving = serve::start(setup).await.unwrap();
    for rule in Demo::rules() {
        let who = Who::system("demo");
        serving.alerts.save_rule(&who, rule, None, true).await.unwrap();
    }
    let workers = token(&serving, Role::Client).await;
    demo.work_on(&format!("http://{}", serving.address), workers.expose())
        .unwrap();
    let viewer = token(&serving, Role::Viewer).await;
    let viewer = client(viewer.expose(), Duration::from_secs(10));
    let ask = async |path: &str| -> Value {
        let url = format!("http://{}{path}", serving.address);
        viewer.get(url).send().await.unwrap().json().await.unwrap()
    };
    let rules = ask("/v1/rules").await;
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let of: BTreeMap<String, String> = rules["rules"]
        .as_array()
        .unwrap()
        .iter()
        .map(|rule| (text(&rule["id"]), text(&rule["condition"])))
        .collect();
    let mut seen: BTreeSet<String> = BTreeSet::new();
    let mut near: BTreeSet<String> = BTreeSet::new();
    let mut resolves = false;
    within(TWO_MINUTES, "every situation fires", async || {
        let alerts = ask("/v1/alerts").await;
        let firing = alerts["alerts"].as_array().unwrap().iter();
        let firing: Vec<&Value> = firing.filter(|alert| alert["state"] == "firing").collect();
        seen.extend(
            firing
                .iter()
                .map(|alert| of[alert["rule"].as_str().unwrap()].clone()),
        );
        let now: BTreeSet<String> = firing
            .iter()
            .filter(|alert| alert["rule"] == "near_expiry")
            .map(|alert| text(&alert["id"]))
            .collect();
        resolves |= near.difference(&now).next().is_some();
        near.extend(now);
        resolves && CONDITIONS.iter().all(|condition| seen.contains(*condition))
    })
    .await;
    stop.cancel();
    serving.ended().await;
    demo.end().await;
}
