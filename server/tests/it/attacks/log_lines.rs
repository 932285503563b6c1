//! A hostile backend answers with an error text that holds line breaks, to forge lines of the log.

use std::time::Duration;

use crate::security::canaries::server::serve;
use crate::support::eventually::eventually;
use crate::support::refusing::refusing_redis;

const FORGED: &str = "2026-01-01T00:00:00.000000Z  INFO leasehold::audit: forged";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backend_error_forges_no_log_line() {
    let folder = tempfile::tempdir().unwrap();
    let port = refusing_redis(&format!("no\n{FORGED}\u{1b}[2K\u{202e}"));
    let toml = format!(
        "listen = \"127.0.0.1:0\"\nstore = \"sqlite:{}\"\nlog = \"leasehold=debug\"\n[[backend]]\nname = \"cache\"\n\
         kind = \"redis\"\nurls = [\"redis://127.0.0.1:{port}\"]\npoll = \"200ms\"\n",
        folder.path().join("leasehold.db").display()
    );
    std::fs::write(folder.path().join("leasehold.toml"), toml).unwrap();
    let server = serve(folder.path());
    let _installed = rustls::crypto::ring::default_provider().install_default();
    let http = reqwest::Client::builder()
        .timeout(Duration::from_secs(5))
        .build()
        .unwrap();
    // The server reads the backend before it is ready, and gives up on it.
    eventually("the backend was asked", || async {
        let answer = http.get(format!("{}/readyz", server.home)).send().await;
        matches!(answer, Ok(answer) if answer.status() == 200)
    })
    .await;
    let log = server.stop();
    assert!(log.contains("forged"), "the text reaches the log: {log}");
    for line in log.lines() {
        assert!(!line.starts_with("2026-01-01"), "{line:?}");
        assert!(!line.contains(['\u{1b}', '\u{202e}', '\r']), "{line:?}");
    }
}
