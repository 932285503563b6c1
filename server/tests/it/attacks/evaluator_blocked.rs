//! The lease that decides which server evaluates alert rules is held by somebody who does not evaluate: every server says so.

use std::time::Duration;

use domain::access::Role;
use domain::alerts::OVERDUE;
use domain::lease::{Metadata, Ttl};
use domain::names::{OwnerId, Resource};
use leasehold::clock::Clock;
use leasehold::identity::{NewToken, Secret, Who};
use leasehold::lease::{AcquireRequest, Acquired, Caller, LeaseConfig, LeaseService};
use leasehold::serve::Serving;
use leasehold::throwaway::{Postgres, PostgresOptions, Throwaway};
use reqwest::{Client, StatusCode};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::people::stage::on;
use crate::support::eventually::within;
use crate::support::serving::serve_on;

/// 60 s, what two checks take, and as much again for a busy machine; below the limit of a test.
const OVERDUE_WITHIN: Duration = Duration::from_secs(100);

async fn fast_postgres() -> Postgres {
    let options = PostgresOptions {
        fast: true,
        ..PostgresOptions::default()
    };
    Throwaway::postgres(options).await.unwrap()
}

async fn ready(server: &Serving) -> (StatusCode, Value) {
    let answer = reqwest::get(format!("http://{}/readyz", server.address)).await;
    let answer = answer.unwrap();
    (answer.status(), answer.json().await.unwrap())
}

async fn page(server: &Serving, token: &Secret, path: &str) -> String {
    let url = format!("http://{}{path}", server.address);
    let answer = Client::new().get(url).bearer_auth(token.expose()).send().await;
    answer.unwrap().text().await.unwrap()
}

/// The first event of the stream that live pages follow.
async fn first_event(server: &Serving, token: &Secret) -> String {
    let url = format!("http://{}/v1/events", server.address);
    let answer = Client::new().get(url).bearer_auth(token.expose()).send().await;
    let chunk = answer.unwrap().chunk().await.unwrap().unwrap();
    String::from_utf8(chunk.to_vec()).unwrap()
}

/// What people and programs see of it at one server.
async fn says_so(server: &Serving, token: &Secret, expected: bool) {
    let (status, health) = ready(server).await;
    assert_eq!(status, StatusCode::OK, "leases are served all the same: {health}");
    assert_eq!(health["errors"].is_array(), expected, "{health}");
    let live = page(server, token, "/").await;
    assert_eq!(live.contains("data-alerts=\"overdue\""), expected, "{live}");
    assert!(live.contains(OVERDUE));
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
    let Ok(Acquired::Granted { lease, .. }) = thief.acquire(&Caller::server(), request).await else {
        panic!("nobody holds it yet");
    };
    let servers = [serve_on(&store, &stop).await, serve_on(&store, &stop).await];
    let new = NewToken {
        name: "admin".to_owned(),
        grants: on(Role::Admin, None, None),
        expires_in: None,
    };
    let who = Who::system("test");
    let token = servers[0].identity.create_token(&who, new).await.unwrap();
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
        within(OVERDUE_WITHIN, "nobody has evaluated for a minute", || async {
            ready(server).await.1["status"] == "degraded"
        })
        .await;
        says_so(server, &token, true).await;
    }
    thief.release(&Caller::server(), lease.id).await.unwrap();
    for server in &servers {
        within(OVERDUE_WITHIN, "one of them evaluates again", || async {
            ready(server).await.1["status"] == "ok"
        })
        .await;
    }
    says_so(&servers[0], &token, false).await;
    stop.cancel();
    for server in servers {
        server.ended().await;
    }
    thief.close().await;
}
