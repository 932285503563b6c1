//! The examples of docs/notifications.md: the Python runs unchanged, a real Alertmanager reads the route.

use std::process::Stdio;

use ::testkit::{AlertmanagerOptions, Throwaway};
use leasehold::notify::{DeliveryState, ReceiverKind};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;

use super::notifier::{HOME, SECRET, TestNotifier, firing};

const PAGE: &str = include_str!("../../../../docs/notifications.md");

fn block(language: &str) -> &'static str {
    let (_, rest) = PAGE.split_once(&format!("```{language}\n")).unwrap();
    rest.split("```").next().unwrap()
}

#[tokio::test]
async fn the_documented_python_verifies_the_signature() {
    // Our message is printed; a request without a signature, or with a wrong one, is 403.
    let mut python = Command::new("python3")
        .args(["-c", block("python")])
        .env("LEASEHOLD_WEBHOOK_SECRET", SECRET)
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("python3 is not installed; install it with: apt-get install -y python3");
    let mut lines = BufReader::new(python.stdout.take().unwrap()).lines();
    let url = lines.next_line().await.unwrap().unwrap();
    let notifier = TestNotifier::start().await;
    notifier.add("hook", ReceiverKind::Webhook, &[&url]).await;
    notifier.enqueue_notice(&firing("jobs/nightly")).await;
    let line = lines.next_line().await.unwrap().unwrap();
    assert_eq!(line, format!("firing LongHeld {HOME}/locks/builtin/jobs"));
    assert_eq!(
        notifier.are(DeliveryState::Delivered).await[0].answer.as_deref(),
        Some("answered 204")
    );
    let post = async |signature: &str| {
        let request = reqwest::Client::new().post(&url).body("{}");
        let request = request
            .header("x-timestamp", "1700000000")
            .header("x-signature", signature);
        request.send().await.unwrap().status().as_u16()
    };
    assert_eq!(post("").await, 403);
    assert_eq!(post(&format!("sha256={}", "0".repeat(64))).await, 403);
    python.kill().await.unwrap();
}

#[tokio::test]
async fn alertmanager_reads_the_route_of_the_page() {
    // The file is used unchanged.
    let _installed = rustls::crypto::ring::default_provider().install_default();
    let config = block("yaml").to_owned();
    let manager = Throwaway::alertmanager(AlertmanagerOptions { config })
        .await
        .unwrap();
    let status = reqwest::get(format!("{}/api/v2/status", manager.url()))
        .await
        .unwrap();
    let status: serde_json::Value = status.json().await.unwrap();
    assert!(
        status["config"]["original"]
            .as_str()
            .unwrap()
            .contains("ForcedUnlockBreakGlass")
    );
}
