//! The demo's alerts: each of the five situations fires, by a rule that its visitor can open.

use crate::support::{Store, TestServer, client, token};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use ::demo::Demo;

use super::start;
use domain::access::Role;
use leasehold::history::simulation;
use leasehold::identity::Principal;
use runtime::clock::Clock;
use runtime::db::Db;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use testkit::within;

/// Usually a minute.
const PATIENCE: Duration = Duration::from_secs(300);
const CONDITIONS: [&str; 5] = [
    "not_renewing",
    "long_held",
    "contention",
    "fencing_rejections",
    "deadlock",
];

async fn write_history(demo: &Demo, store: &Store) {
    let db = Db::open(&store.url).await.unwrap();
    let history = db.history(&store.url).await.unwrap();
    let until = Clock::start().now().wall.timestamp_millis();
    let past = demo.past(until).unwrap();
    simulation::write_history(&history, &past).await.unwrap();
    history.close().await;
    db.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_demo_situation_fires_and_a_silence_resolves() {
    // By the condition of the rule that fires, with the past that the demo has; an alert on a silent holder resolves
    // when the lease expires or is acquired again.
    let stop = CancellationToken::new();
    let mut demo = start(stop.clone()).await;
    let store = demo.folder().join("leasehold.db");
    let store = Store::at(&format!("sqlite:{}", store.display()));
    write_history(&demo, &store).await;
    let server = TestServer::builder()
        .backends(demo.backends())
        .identity_rules(demo.identity_rules())
        .start_on(store)
        .await;
    let serving = &server.serving;
    for rule in Demo::rules() {
        let who = Principal::system("demo");
        serving.alerts.save_rule(&who, rule, None, true).await.unwrap();
    }
    let workers = token(serving, Role::Client).await;
    demo.work_on(&format!("http://{}", serving.address), workers.expose())
        .unwrap();
    let viewer = token(serving, Role::Viewer).await;
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
    let mut silent: BTreeSet<String> = BTreeSet::new();
    let mut resolves = false;
    within(PATIENCE, "every situation fires", async || {
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
            .filter(|alert| alert["rule"] == "not_renewing")
            .map(|alert| text(&alert["id"]))
            .collect();
        resolves |= silent.difference(&now).next().is_some();
        silent.extend(now);
        resolves && CONDITIONS.iter().all(|condition| seen.contains(*condition))
    })
    .await;
    server.stop().await;
    stop.cancel();
    demo.end().await;
}
