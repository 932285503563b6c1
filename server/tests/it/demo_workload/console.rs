//! The console on the demo shows what the demo promises.

use crate::support::{Store, TestServer, client, token};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use ::demo::Demo;

use super::start;
use domain::access::Role;
use serde_json::Value;
use sqlx::ConnectOptions as _;
use sqlx::sqlite::SqliteConnectOptions;
use tokio_util::sync::CancellationToken;

use testkit::within;

use super::MINUTE;

const STATES: [&str; 11] = [
    "split",
    "quorum_lost",
    "expired",
    "orphaned",
    "not_renewing",
    "near_expiry",
    "no_ttl",
    "contended",
    "stale",
    "unknown",
    "healthy",
];

/// Fencing rejections in the console's own file.
async fn refusals(demo: &Demo) -> i64 {
    let file = demo.folder().join("leasehold.db");
    let options = SqliteConnectOptions::new().filename(file).read_only(true);
    let mut store = options.connect().await.unwrap();
    let count = "SELECT count(*) FROM fencing_rejections WHERE source = 'ledger-db' AND reason = 'stale'";
    sqlx::query_scalar(count).fetch_one(&mut store).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_console_shows_every_state_within_a_minute() {
    // The worst state of each row during the first minute, with 60 to 130 locks. On the lease service too: held,
    // contended, and a fencing rejection of a stale holder. And the deadlock of two workers in two systems.
    let stop = CancellationToken::new();
    let mut demo = start(stop.clone()).await;
    let store = demo.folder().join("leasehold.db");
    let server = TestServer::builder()
        .backends(demo.backends())
        .identity_rules(demo.identity_rules())
        .start_on(Store::at(&format!("sqlite:{}", store.display())))
        .await;
    let serving = &server.serving;
    let workers = token(serving, Role::Client).await;
    demo.work_on(&format!("http://{}", serving.address), workers.expose())
        .unwrap();
    let viewer = token(serving, Role::Viewer).await;
    let viewer = client(viewer.expose(), Duration::from_secs(10));
    let url = format!("http://{}/v1/inventory?limit=1000", serving.address);
    let waits = format!("http://{}/v1/waits", serving.address);
    let mut seen: BTreeMap<String, String> = BTreeMap::new();
    let mut most = 0;
    let mut ours: BTreeSet<String> = BTreeSet::new();
    let targets = Demo::tour_targets();
    let mut toured: BTreeSet<String> = BTreeSet::new();
    within(MINUTE, "every state", async || {
        let page: Value = viewer.get(&url).send().await.unwrap().json().await.unwrap();
        let locks = page["locks"].as_array().unwrap();
        most = most.max(locks.len());
        for lock in locks {
            let (state, resource) = (
                lock["state"].as_str().unwrap(),
                lock["resource"].as_str().unwrap(),
            );
            seen.entry(state.to_owned())
                .or_insert_with(|| resource.to_owned());
            if lock["backend"] == "builtin" {
                toured.insert(resource.to_owned());
                ours.insert(lock["state"].as_str().unwrap().to_owned());
            }
        }
        STATES.iter().all(|state| seen.contains_key(*state))
            && ["contended", "healthy"].iter().all(|state| ours.contains(*state))
            && [targets.queue, targets.held]
                .iter()
                .all(|lock| toured.contains(*lock))
            && toured.iter().any(|lock| lock.contains(targets.search))
            && refusals(&demo).await > 0
    })
    .await;
    within(MINUTE, "a certain deadlock of two systems", async || {
        let page: Value = viewer.get(&waits).send().await.unwrap().json().await.unwrap();
        page["deadlocks"][0]["isCertain"] == true
            && page["title"] == "One deadlock across 2 systems blocks 2 owners"
    })
    .await;
    assert!(Demo::rules().iter().any(|rule| rule.id == targets.rule));
    assert!((60..=130).contains(&most), "{most} locks");
    server.stop().await;
    stop.cancel();
    demo.end().await;
}
