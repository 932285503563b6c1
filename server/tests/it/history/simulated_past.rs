//! A simulated past, as the demo writes it: charts and timelines that contain it are marked, and no others.

use crate::support::{Store, TestServer};

use domain::access::{Grant, Role};
use domain::backend::BackendKind;
use domain::history::simulated_past::{SimulatedBackend, SimulatedHold, SimulatedPast};
use domain::names::{BackendName, Resource, Source};
use leasehold::history::simulation::write_history;
use runtime::clock::Clock;
use runtime::db::Db;

const MINUTE: i64 = 60_000;
const MARK: &str = "simulated before ";
/// With charts of history.
const PAGES: [&str; 4] = [
    "/",
    "/contention",
    "/locks/builtin/jobs:close",
    "/alerts/rules/long_held",
];

/// Three hours of one lock of the lease service: an hour of holds of a minute, each with a waiter.
fn past(until: i64) -> SimulatedPast {
    let from = until - 180 * MINUTE;
    let hold = |number: i64| SimulatedHold {
        backend: BackendName::builtin(),
        source: Source::parse("lease").unwrap(),
        resource: Resource::from("jobs:close"),
        owner: format!("closer-{}", number % 2),
        began: from + (60 + number) * MINUTE,
        ended: from + (61 + number) * MINUTE,
        is_expired: false,
        ttl_ms: Some(30_000),
        renews_every_ms: Some(10_000),
        silent_ms: 0,
        waiters: 1,
    };
    SimulatedPast {
        from,
        until,
        backends: vec![SimulatedBackend {
            name: BackendName::builtin(),
            kind: BackendKind::Builtin,
            reports_waiters: true,
        }],
        holds: (0..60).map(hold).collect(),
    }
}

async fn write(store: &Store) {
    let db = Db::open(&store.url).await.unwrap();
    let history = db.history(&store.url).await.unwrap();
    let until = Clock::start().now().wall.timestamp_millis();
    write_history(&history, &past(until)).await.unwrap();
    history.close().await;
    db.close().await;
}

async fn pages(server: &TestServer) -> Vec<String> {
    server.add_user("ada", vec![Grant::everywhere(Role::Admin)]).await;
    let ada = server.signed_in("ada").await;
    let mut pages = Vec::new();
    for path in PAGES {
        pages.push(ada.get(path).await.text().await.unwrap());
    }
    pages
}

async fn simulated_past_is_shown_and_marked(store: Store) {
    write(&store).await;
    let server = TestServer::builder().operator().start_on(store).await;
    for (path, page) in PAGES.iter().zip(pages(&server).await) {
        assert!(page.contains(MARK), "{path}: {page}");
    }
    let found = server.json("/v1/contention?range=6h").await;
    let row = &found["prefixes"][0];
    assert_eq!(row["prefix"], "jobs:close");
    assert_eq!(row["acquired"], 60);
    assert_eq!(row["heldMs"], 60 * MINUTE);
}

#[tokio::test]
async fn simulated_past_is_shown_and_marked_on_sqlite() {
    simulated_past_is_shown_and_marked(Store::sqlite()).await;
}

#[tokio::test]
async fn simulated_past_is_shown_and_marked_on_postgres() {
    simulated_past_is_shown_and_marked(Store::postgres().await).await;
}

#[tokio::test]
async fn observed_history_is_never_marked() {
    let server = TestServer::builder().operator().start().await;
    for (path, page) in PAGES.iter().zip(pages(&server).await) {
        assert!(!page.contains(MARK), "{path}: {page}");
    }
}
