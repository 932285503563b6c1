//! Collectors that are dead or hang.

use serde_json::json;
use tokio::net::TcpListener;

use super::server_process::ServerProcess;
use testkit::eventually;

async fn changes_nothing(endpoint: &str, protocol: &str) {
    let mut server = ServerProcess::start(&[
        ("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", protocol),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "1000"),
        ("OTEL_METRIC_EXPORT_INTERVAL", "200"),
        ("OTEL_BSP_SCHEDULE_DELAY", "100"),
        ("OTEL_BLRP_SCHEDULE_DELAY", "100"),
        ("LEASEHOLD_LOG", "info,leasehold::lock=debug"),
    ])
    .await;
    for number in 0..100 {
        let lease = server.acquire(&format!("jobs:{number}"), None).await;
        server.release(&lease, None).await;
    }
    eventually("the page says that it fails", async || {
        let page = server.text("/backends").await;
        ["metrics", "traces", "logs"].iter().all(|signal| {
            page.split(&format!("pushes {signal}"))
                .nth(1)
                .is_some_and(|rest| rest.split("</tr>").next().unwrap().contains("pushes failed"))
        })
    })
    .await;
    let page = server.text("/backends").await;
    assert!(page.contains("nothing has arrived yet"));
    // Scans continue: the service's own backend is live.
    eventually("the backend is live", async || {
        server.json("/v1/backends").await[0]["status"] == json!("live")
    })
    .await;
    assert_eq!(server.stop().await, Some(0), "{}", server.log());
    assert!(server.log().contains("cannot be pushed to"), "{}", server.log());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unreachable_collector_is_reported_without_effect() {
    // The port is closed; leases, pages and the shutdown still work.
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://user:s3cret@{}", closed.local_addr().unwrap());
    drop(closed);
    changes_nothing(&endpoint.replace("user:s3cret@", ""), "http/protobuf").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hanging_collector_is_reported_without_effect() {
    // It accepts connections and never answers, by either protocol.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", silent.local_addr().unwrap());
    let mut held = Vec::new();
    let holding = async {
        loop {
            held.push(silent.accept().await.unwrap());
        }
    };
    tokio::select! {
        () = async {
            changes_nothing(&endpoint, "grpc").await;
            changes_nothing(&endpoint, "http/protobuf").await;
        } => {}
        () = holding => {}
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_invalid_otel_variable_prevents_the_start() {
    // An exporter that we lack: the error names the variable.
    let out = std::process::Command::new(env!("CARGO_BIN_EXE_leasehold"))
        .env_clear()
        .env("OTEL_TRACES_EXPORTER", "zipkin")
        .current_dir(tempfile::tempdir().unwrap().path())
        .args(["serve", "--listen", "127.0.0.1:0"])
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(
        !out.status.success() && errors.contains("OTEL_TRACES_EXPORTER"),
        "{errors}"
    );
}
