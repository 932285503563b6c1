//! The throwaway Alertmanager.

use std::time::Duration;

use leasehold_testkit::{AlertmanagerOptions, StartError, Throwaway};

use leasehold_testkit::hangs;

const CONFIG: &str = "route: {receiver: nobody}\nreceivers: [{name: nobody}]\n";

#[tokio::test]
async fn alertmanager_recovers_after_a_kill_and_a_pause() {
    // Only the process must come back: alerts are not written to disk at once.
    let _installed = rustls::crypto::ring::default_provider().install_default();
    let config = CONFIG.to_owned();
    let manager = Throwaway::alertmanager(AlertmanagerOptions { config })
        .await
        .unwrap();
    let ready = async || {
        let answer = reqwest::get(format!("{}/-/ready", manager.url())).await;
        answer.is_ok_and(|answer| answer.status().is_success())
    };
    assert!(ready().await);
    manager.kill().await.unwrap();
    assert!(!ready().await);
    manager.restart().await.unwrap();
    manager.pause().await.unwrap();
    assert!(hangs(Duration::from_millis(200), ready()).await);
    manager.resume().await.unwrap();
    assert!(ready().await);
    manager.stop().await.unwrap();
    assert_eq!(manager.pid(), None);
}

#[tokio::test]
async fn an_invalid_configuration_is_reported_with_the_log() {
    // A route to a receiver that does not exist.
    let config = "route: {receiver: gone}\n".to_owned();
    let error = Throwaway::alertmanager(AlertmanagerOptions { config })
        .await
        .unwrap_err();
    assert!(matches!(error, StartError::Exited { .. }), "{error:?}");
    assert!(error.to_string().contains("gone"), "{error}");
}
