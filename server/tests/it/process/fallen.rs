//! Panics in background tasks, injected, through the real server.

use std::sync::atomic::Ordering;
use std::time::Duration;

use domain::access::Role;
use leasehold::tasks;
use leasehold::throwaway::{PostgresOptions, Throwaway};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::support::console::{Console, client, token};
use crate::support::eventually::eventually;
use crate::support::serving::serve_on;

/// Of what `/healthz` says of this task.
async fn restarts(console: &Console, task: &str) -> u64 {
    let health = console.json("/healthz").await;
    let tasks = health["tasks"].as_array().unwrap();
    let it = tasks
        .iter()
        .find(|it| it["name"] == task && it["runningSince"].is_string());
    it.map_or(0, |it| it["restarts"].as_u64().unwrap())
}

async fn acquire(console: &Console, name: &str) -> Value {
    let body = json!({"resource": name, "ownerId": "w", "ttlSeconds": 600});
    let request = console.client.post(console.url("/v1/locks/acquire")).json(&body);
    request.send().await.unwrap().json().await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_kept_task_that_panics_runs_again_and_the_backends_page_says_so() {
    // Would catch a task that stays dead in silence: a view that looks live and is not, rules that nobody evaluates.
    let console = Console::start("").await;
    console.ready().await;
    let kept = [
        "observe builtin",
        "refresh builtin",
        "watch builtin",
        "probe builtin",
        "history",
        "alerts",
        "notifications",
        "directory of people and tokens",
        "eye on the audit record",
        "forced unlocks",
        "note expiries",
        "tend the lease store",
        "follow leases",
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
    // What runs again does its work: a change is seen, as it was before.
    acquire(&console, "jobs:after").await;
    console
        .inventory_where("prefix=jobs:", |page| page["total"] == 1)
        .await;
    let backends = console.json("/v1/backends").await;
    let told = backends.to_string();
    for words in ["observe builtin", "alerts", "2 restarts", "a drill"] {
        assert!(told.contains(words), "{words}: {told}");
    }
    let page = console.get("/backends").await.text().await.unwrap();
    assert!(
        page.contains("history") && page.contains("panicked: a drill"),
        "{page}"
    );
    // Whoever may not sign in does not read what a panic said.
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
    let serving = serve_on(store, &CancellationToken::new()).await;
    let client = client(
        token(&serving, Role::Client).await.expose(),
        Duration::from_secs(10),
    );
    let home = format!("http://{}", serving.address);
    let acquire = async |name: &str| {
        let body = json!({"resource": name, "ownerId": "w", "ttlSeconds": 600});
        let asked = client.post(format!("{home}/v1/locks/acquire")).json(&body);
        let answer = asked.send().await.ok()?;
        let status = answer.status().as_u16();
        Some((status, answer.json::<Value>().await.ok()?))
    };
    let (status, held) = acquire("jobs:before").await.unwrap();
    assert!(status < 300, "{held}");

    // A batch in the middle: who asked is told that nobody knows, and the next one is served.
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

    // The lanes: nothing is granted from here on, and the process ends by itself.
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
    let why = serving.ended().await.unwrap();
    assert!(why.contains("the writer of leases died: a drill"), "{why}");

    // The next process begins from the store: the lease is held, and its token is not given out again.
    let serving = serve_on(store, &CancellationToken::new()).await;
    let client = self::client(
        token(&serving, Role::Operator).await.expose(),
        Duration::from_secs(10),
    );
    let path = format!("http://{}/v1/resources/jobs:before", serving.address);
    let still: Value = client.get(path).send().await.unwrap().json().await.unwrap();
    assert_eq!(still["holder"]["fencingToken"], held["fencingToken"], "{still}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_whose_writer_of_leases_died_ends_on_sqlite() {
    // Would catch a process that answers as if its leases lived, and a batch whose panic ends more than itself.
    let folder = tempfile::tempdir().unwrap();
    let store = format!("sqlite:{}", folder.path().join("leasehold.db").display());
    lanes_that_die(&store, "lease writer").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_whose_lanes_of_leases_died_ends_on_postgres() {
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
async fn a_process_that_can_tell_nobody_what_became_of_leases_ends() {
    // Would catch lanes that go on to grant what nobody hears of.
    let folder = tempfile::tempdir().unwrap();
    let store = format!("sqlite:{}", folder.path().join("leasehold.db").display());
    lanes_that_die(&store, "lease answers").await;
}
