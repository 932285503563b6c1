//! A server on which nothing happens: its store is left in peace.

use std::time::Duration;

use serde_json::json;

use crate::support::console::Console;
use crate::support::eventually::eventually;

/// How often rules, history, refusals, the outbox and open unlocks were looked for in the store.
fn asked(console: &Console) -> [u64; 3] {
    let serving = &console.serving;
    [
        serving.alerts.asked(),
        serving.notifier.looks(),
        serving.unlocks.rounds(),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_console_reads_nothing_and_still_hears_of_what_happens() {
    // Would catch a look at the store each second for nothing, and news that are missed because nobody looks.
    let console = Console::start("").await;
    let at_rest = async || {
        let before = asked(&console);
        // Of each task several rounds.
        tokio::time::sleep(Duration::from_secs(3)).await;
        asked(&console) == before
    };
    eventually("nothing is read", at_rest).await;
    let report = json!({"resource": "jobs/1", "fencingToken": 3, "highestToken": 5, "source": "test"});
    let sent = console
        .client
        .post(console.url("/v1/fencing/rejections"))
        .json(&report);
    assert!(sent.send().await.unwrap().status().is_success());
    eventually("the refused write fires", async || {
        let alerts = console.json("/v1/alerts").await;
        let all = alerts["alerts"].as_array().unwrap();
        all.iter().any(|alert| alert["rule"] == "fencing_rejections")
    })
    .await;
    eventually("nothing is read again", at_rest).await;
}
