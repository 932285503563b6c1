//! Panics in background tasks, injected, through the real server.

use crate::support::{Store, TestServer, client, token};
use std::sync::atomic::Ordering;
use std::time::Duration;

use ::testkit::{PostgresOptions, Throwaway};
use domain::access::Role;
use runtime::tasks;
use serde_json::{Value, json};

use testkit::eventually;

/// The number of restarts of this task in `/healthz`.
async fn restarts(console: &TestServer, task: &str) -> u64 {
    let health = console.json("/healthz").await;
    let tasks = health["tasks"].as_array().unwrap();
    let it = tasks
        .iter()
        .find(|it| it["name"] == task && it["runningSince"].is_string());
    it.map_or(0, |it| it["restarts"].as_u64().unwrap())
}

async fn acquire(console: &TestServer, name: &str) -> Value {
    let body = json!({"resource": name, "ownerId": "w", "ttlSeconds": 600});
    let request = console.client.post(console.url("/v1/locks/acquire")).json(&body);
    request.send().await.unwrap().json().await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn panicked_tasks_restart_and_the_backends_page_shows_it() {
    // Detects a task that stays dead without a report: a page that looks live but is not, rules without evaluation.
    let console = TestServer::builder().operator().start().await;
    console.ready().await;
    let kept = [
        "observe builtin",
        "refresh builtin",
        "watch builtin",
        "probe builtin",
        "history",
        "alerts",
        "notifications",
        "user and token cache",
        "audit log verifier",
        "forced unlocks",
        "lease expiry recorder",
        "lease store maintenance",
        "lease watchers",
    ];
    let before = tasks::PANICS.load(Ordering::Relaxed);
    for task in kept {
        tasks::drill(task);
    }
    for task in kept {
        eventually(&format!("{task} runs again"), || async {
            restarts(&console, task).await == 1
        })
        .await;
    }
    assert!(tasks::PANICS.load(Ordering::Relaxed) >= before + kept.len() as u64);
    tasks::drill("alerts");
    eventually("alerts run again after the second time", || async {
        restarts(&console, "alerts").await == 2
    })
    .await;
    // The restarted task works: a change is observed again.
    acquire(&console, "jobs:after").await;
    console
        .inventory_where("prefix=jobs:", |page| page["total"] == 1)
        .await;
    let backends = console.json("/v1/backends").await;
    let text = backends.to_string();
    for words in ["observe builtin", "alerts", "2 restarts", "a drill"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let page = console.get("/backends").await.text().await.unwrap();
    assert!(
        page.contains("history") && page.contains("panicked: a drill"),
        "{page}"
    );
    // A caller who is not signed in does not see the panic's message.
    let health = reqwest::get(console.url("/healthz"))
        .await
        .unwrap()
        .text()
        .await
        .unwrap();
    assert!(!health.contains("a drill"), "{health}");
}

/// A batch that panics, then the lanes themselves, on a store of this kind.
async fn lanes_that_die(store: &str, lanes: &str) {
    let server = TestServer::builder().start_on(Store::at(store)).await;
    let serving = &server.serving;
    let client = client(
        token(serving, Role::Client).await.expose(),
        Duration::from_secs(10),
    );
    let home = format!("http://{}", serving.address);
    let acquire = async |name: &str| {
        let body = json!({"resource": name, "ownerId": "w", "ttlSeconds": 600});
        let acquiring = client.post(format!("{home}/v1/locks/acquire")).json(&body);
        let answer = acquiring.send().await.ok()?;
        let status = answer.status().as_u16();
        Some((status, answer.json::<Value>().await.ok()?))
    };
    let (status, held) = acquire("jobs:before").await.unwrap();
    assert!(status < 300, "{held}");

    // A panic within a batch: its callers get an unknown outcome, and the next batch is served.
    tasks::drill(tasks::LEASE_BATCH);
    let mut refused = 0;
    eventually("granted after the panic", async || {
        let (status, answer) = acquire("jobs:next").await.unwrap();
        assert!(status < 300 || status == 503, "{status} {answer}");
        refused += usize::from(status == 503);
        status < 300
    })
    .await;
    assert!(refused <= 1, "{refused}");

    // The lanes: no grant from here on, and the process ends by itself.
    tasks::drill(lanes);
    eventually("the process knows", async || {
        serving.readiness.failure().is_some()
    })
    .await;
    if let Some((status, answer)) = acquire("jobs:late").await {
        assert_eq!(status, 503, "{answer}");
    }
    if let Ok(answer) = client.get(format!("{home}/readyz")).send().await {
        assert_eq!(answer.status(), 503);
    }
    let why = server.ended().await.unwrap();
    assert!(why.contains("the lease writer died: a drill"), "{why}");

    // The next process begins from the store: the lease is held, and its token is not given out again.
    let server = TestServer::builder().start_on(Store::at(store)).await;
    let serving = &server.serving;
    let client = self::client(
        token(serving, Role::Operator).await.expose(),
        Duration::from_secs(10),
    );
    let path = format!("http://{}/v1/resources/jobs:before", serving.address);
    let still: Value = client.get(path).send().await.unwrap().json().await.unwrap();
    assert_eq!(still["holder"]["fencingToken"], held["fencingToken"], "{still}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_with_a_dead_lease_writer_ends_on_sqlite() {
    // Detects a process that answers as if its leases lived, and a batch whose panic affects other batches.
    let folder = tempfile::tempdir().unwrap();
    let store = format!("sqlite:{}", folder.path().join("leasehold.db").display());
    lanes_that_die(&store, "lease writer").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_with_dead_lease_lanes_ends_on_postgres() {
    // The same on the other store, which has several lanes.
    let postgres = Throwaway::postgres(PostgresOptions {
        fast: true,
        ..PostgresOptions::default()
    })
    .await
    .unwrap();
    lanes_that_die(&postgres.superuser_url(), "lease lanes").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_without_lease_replies_ends() {
    // Detects lanes that continue to grant leases without answers.
    let folder = tempfile::tempdir().unwrap();
    let store = format!("sqlite:{}", folder.path().join("leasehold.db").display());
    lanes_that_die(&store, "lease answers").await;
}
