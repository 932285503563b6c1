//! The leader lease of the evaluator is held by a client that does not evaluate: every server
//! reports it.

use std::time::Duration;

use ::lease::{AcquireRequest, Acquired, LeaseCaller, LeaseConfig, LeaseService};
use ::testkit::{Postgres, PostgresOptions, Throwaway};
use domain::access::Role;
use domain::alerts::OVERDUE;
use domain::lease::{Metadata, Ttl};
use domain::names::{OwnerId, Resource};
use reqwest::{Method, StatusCode};
use runtime::clock::Clock;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::support::{Store, TestCaller, TestServer, on};
use testkit::within;

/// 60 s, the time of two checks, and as much again for a busy machine; below the limit of a
/// test.
const OVERDUE_WITHIN: Duration = Duration::from_secs(100);

async fn fast_postgres() -> Postgres {
    let options = PostgresOptions {
        fast: true,
        ..PostgresOptions::default()
    };
    Throwaway::postgres(options).await.unwrap()
}

async fn ready(server: &TestServer) -> (StatusCode, Value) {
    let answer = server.get("/readyz").await;
    (answer.status(), answer.json().await.unwrap())
}

async fn page(server: &TestServer, token: &TestCaller, path: &str) -> String {
    server.as_user(token).text(path).await.1
}

/// The first event of the stream that live pages follow.
async fn first_event(server: &TestServer, token: &TestCaller) -> String {
    let mut answer = server.as_user(token).send(Method::GET, "/v1/events").await;
    let chunk = answer.chunk().await.unwrap().unwrap();
    String::from_utf8(chunk.to_vec()).unwrap()
}

/// What users and programs see of it at one server.
async fn says_so(server: &TestServer, token: &TestCaller, expected: bool) {
    let (status, health) = ready(server).await;
    assert_eq!(status, 200, "leases are served all the same: {health}");
    assert_eq!(health["errors"].is_array(), expected, "{health}");
    let live = page(server, token, "/").await;
    assert_eq!(live.contains(OVERDUE), expected, "{live}");
    let event = first_event(server, token).await;
    assert!(
        event.contains(&format!("\"alertsOverdue\":{expected}")),
        "{event}"
    );
    for path in ["/settings", "/alerts", "/audit", "/contention", "/docs"] {
        let form = page(server, token, path).await;
        assert_eq!(form.contains(OVERDUE), expected, "{path}: {form}");
    }
    let metrics = page(server, token, "/metrics").await;
    let age = metrics
        .lines()
        .find_map(|line| line.strip_prefix("distributed_lock_alert_evaluation_age_seconds"));
    let age: f64 = age.unwrap().rsplit(' ').next().unwrap().parse().unwrap();
    assert_eq!(age > 60.0, expected, "{age}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn blocked_evaluator_is_reported_by_every_server() {
    let postgres = fast_postgres().await;
    let (store, stop) = (postgres.superuser_url(), CancellationToken::new());
    let thief = LeaseService::open(&store, LeaseConfig::default(), Clock::start(), stop.clone());
    let thief = thief.await.unwrap();
    let request = AcquireRequest {
        resource: Resource::from("leasehold/alerts"),
        owner: OwnerId::new("hung"),
        ttl: Ttl::parse(3_600, 3_600).unwrap(),
        wait: Duration::ZERO,
        metadata: Metadata::default(),
        idempotency_key: None,
    };
    let Ok(Acquired::Granted { lease, .. }) = thief.acquire(&LeaseCaller::server(), request).await else {
        panic!("no holder yet");
    };
    let store = Store::at(&store);
    let servers = [
        TestServer::builder().start_on(store.shared()).await,
        TestServer::builder().start_on(store.shared()).await,
    ];
    let token = servers[0].token("admin", on(Role::Admin, None, None)).await;
    within(OVERDUE_WITHIN, "the other server knows the token", || async {
        !page(&servers[1], &token, "/v1/me")
            .await
            .contains("unauthenticated")
    })
    .await;
    for server in &servers {
        says_so(server, &token, false).await;
    }
    for server in &servers {
        within(OVERDUE_WITHIN, "no evaluation for a minute", || async {
            ready(server).await.1["status"] == "degraded"
        })
        .await;
    }
    // Both servers are in one process, whose metrics show the age at one of them.
    for server in &servers {
        says_so(server, &token, true).await;
    }
    thief.release(&LeaseCaller::server(), lease.id).await.unwrap();
    for server in &servers {
        within(OVERDUE_WITHIN, "one of them evaluates again", || async {
            ready(server).await.1["status"] == "ok"
        })
        .await;
    }
    says_so(&servers[0], &token, false).await;
    for server in servers {
        server.stop().await;
    }
    stop.cancel();
    thief.close().await;
}
