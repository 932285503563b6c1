//! An idle server does not read its store.

use crate::support::TestServer;
use std::time::Duration;

use serde_json::json;

use testkit::eventually;

/// Longer than any task's pause but the outbox's, which is read at least every 10 s.
const WINDOW: Duration = Duration::from_secs(9);

/// Reads of the store so far: alert rules and their events, outbox, forced unlocks.
fn read_counts(console: &TestServer) -> [u64; 3] {
    let serving = &console.serving;
    [
        serving.alerts.query_count(),
        serving.notifier.query_count(),
        serving.unlocks.rounds(),
    ]
}

/// Waits until a second passes without a read, then counts over one window.
async fn idle_reads(console: &TestServer) -> [u64; 3] {
    eventually("the server is idle", async || {
        let before = read_counts(console);
        // A read may be under way; it has ended when a second passes without a new one.
        tokio::time::sleep(Duration::from_secs(1)).await;
        read_counts(console) == before
    })
    .await;
    let before = read_counts(console);
    // Real time is under test: the pauses of the tasks on a running server.
    tokio::time::sleep(WINDOW).await;
    let after = read_counts(console);
    std::array::from_fn(|at| after[at] - before[at])
}

fn assert_idle([alerts, outbox, unlocks]: [u64; 3]) {
    assert_eq!((alerts, unlocks), (0, 0), "reads of alerts and unlocks");
    assert!(outbox <= 1, "{outbox} reads of the outbox");
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_server_reads_nothing_and_still_fires_an_alert() {
    let console = TestServer::builder().operator().start().await;
    assert_idle(idle_reads(&console).await);
    let before = read_counts(&console);
    let report = json!({"resource": "jobs/1", "fencingToken": 3, "highestToken": 5, "source": "test"});
    let sent = console
        .client
        .post(console.url("/v1/fencing/rejections"))
        .json(&report);
    assert!(sent.send().await.unwrap().status().is_success());
    eventually("the rejected write fires", async || {
        let alerts = console.json("/v1/alerts").await;
        let all = alerts["alerts"].as_array().unwrap();
        all.iter().any(|alert| alert["rule"] == "fencing_rejections")
    })
    .await;
    // The counter does count reads.
    assert!(
        read_counts(&console)[0] > before[0],
        "the rejected write was read"
    );
    assert_idle(idle_reads(&console).await);
}
