//! Pushing by TLS, over gRPC and HTTP: with the authority that `OTEL_EXPORTER_OTLP_CERTIFICATE` names, and without it.

use serde_json::json;

use super::server_process::ServerProcess;
use super::sink::Sink;
use testkit::Certs;
use testkit::eventually;

const PROTOCOLS: [&str; 2] = ["grpc", "http/protobuf"];

async fn exporting(sink: &Sink, protocol: &str, files: &[(&str, String)]) -> ServerProcess {
    let mut variables = vec![
        ("OTEL_EXPORTER_OTLP_ENDPOINT", sink.url.as_str()),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", protocol),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "5000"),
        ("OTEL_METRIC_EXPORT_INTERVAL", "200"),
        ("OTEL_BSP_SCHEDULE_DELAY", "100"),
        ("OTEL_BLRP_SCHEDULE_DELAY", "100"),
        ("LEASEHOLD_LOG", "info,leasehold::lock=debug"),
    ];
    variables.extend(files.iter().map(|(name, file)| (*name, file.as_str())));
    ServerProcess::start(&variables).await
}

fn authority(certs: &Certs) -> (&'static str, String) {
    ("OTEL_EXPORTER_OTLP_CERTIFICATE", certs.ca().display().to_string())
}

fn shown(certs: &Certs) -> [(&'static str, String); 2] {
    let (cert, key) = (certs.client_cert(), certs.client_key());
    [
        (
            "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE",
            cert.display().to_string(),
        ),
        ("OTEL_EXPORTER_OTLP_CLIENT_KEY", key.display().to_string()),
    ]
}

/// All three signals arrive, and the page reports it.
async fn arrives(server: &mut ServerProcess, sink: &Sink, protocol: &str) {
    let lease = server.acquire("jobs:1", None).await;
    server.release(&lease, None).await;
    eventually(&format!("metrics, traces and logs over {protocol}"), async || {
        !sink.values().is_empty() && !sink.spans().is_empty() && !sink.logs().is_empty()
    })
    .await;
    eventually("the page says when", async || {
        let page = server.text("/backends").await;
        page.matches("last arrived at").count() == 3 && !page.contains("pushes failed")
    })
    .await;
    assert_eq!(server.stop().await, Some(0), "{}", server.log());
}

/// No signal arrives, the page reports it, and leases, scans and the shutdown still work.
async fn fails(server: &mut ServerProcess, sink: &Sink, protocol: &str) {
    for number in 0..20 {
        let lease = server.acquire(&format!("jobs:{number}"), None).await;
        server.release(&lease, None).await;
    }
    eventually(&format!("the page says that {protocol} fails"), async || {
        let page = server.text("/backends").await;
        ["metrics", "traces", "logs"].iter().all(|signal| {
            page.split(&format!("pushes {signal}"))
                .nth(1)
                .is_some_and(|rest| rest.split("</tr>").next().unwrap().contains("pushes failed"))
        })
    })
    .await;
    assert!(server.text("/backends").await.contains("nothing has arrived yet"));
    assert!(sink.values().is_empty() && sink.spans().is_empty() && sink.logs().is_empty());
    eventually("the backend is live", async || {
        server.json("/v1/backends").await[0]["status"] == json!("live")
    })
    .await;
    assert_eq!(server.stop().await, Some(0), "{}", server.log());
    assert!(server.log().contains("cannot be pushed to"), "{}", server.log());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_collector_is_trusted_only_with_its_authority() {
    // Would catch a certificate that is not checked, or an authority that is not read: by the variable, by the system's own
    // roots, which SSL_CERT_FILE names here, and by another's, which signed nothing of it.
    let (certs, others) = (Certs::make(), Certs::make());
    for protocol in PROTOCOLS {
        let sink = Sink::open_with_tls(&certs.server()).await;
        let mut named = exporting(&sink, protocol, &[authority(&certs)]).await;
        arrives(&mut named, &sink, protocol).await;
        let sink = Sink::open_with_tls(&certs.server()).await;
        let roots = ("SSL_CERT_FILE", certs.ca().display().to_string());
        let mut trusted = exporting(&sink, protocol, &[roots]).await;
        arrives(&mut trusted, &sink, protocol).await;
        let sink = Sink::open_with_tls(&certs.server()).await;
        let mut wrong = exporting(&sink, protocol, &[authority(&others)]).await;
        fails(&mut wrong, &sink, protocol).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn collector_with_client_auth_requires_our_certificate() {
    // With certificate and key, with another authority's, and with none.
    let (certs, others) = (Certs::make(), Certs::make());
    for protocol in PROTOCOLS {
        let sink = Sink::open_with_tls(&certs.mutual()).await;
        let [cert, key] = shown(&certs);
        let mut known = exporting(&sink, protocol, &[authority(&certs), cert, key]).await;
        arrives(&mut known, &sink, protocol).await;
        let sink = Sink::open_with_tls(&certs.mutual()).await;
        let [cert, key] = shown(&others);
        let mut stranger = exporting(&sink, protocol, &[authority(&certs), cert, key]).await;
        fails(&mut stranger, &sink, protocol).await;
        let mut uncertified = exporting(&sink, protocol, &[authority(&certs)]).await;
        fails(&mut uncertified, &sink, protocol).await;
    }
}
