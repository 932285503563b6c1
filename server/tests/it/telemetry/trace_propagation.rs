//! Traces and logs, as a collector decodes them: a lock client's trace continues in the store, a forced unlock is one
//! trace.

use serde_json::json;

use super::server_process::ServerProcess;
use super::sink::{Item, Sink};
use testkit::eventually;

const LOCK: &str = "tenant_1:billing-close:2026-04";

async fn server(sink: &Sink) -> ServerProcess {
    ServerProcess::start(&[
        ("OTEL_EXPORTER_OTLP_ENDPOINT", &sink.url),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
        ("OTEL_METRICS_EXPORTER", "none"),
        ("OTEL_BSP_SCHEDULE_DELAY", "100"),
        ("OTEL_BLRP_SCHEDULE_DELAY", "100"),
        ("OTEL_SERVICE_NAME", "locks-of-a-test"),
        ("LEASEHOLD_LOG", "info,leasehold::lock=debug"),
        (
            "LEASEHOLD_TELEMETRY__TRACE_URL",
            "https://tracing.example/t/{trace_id}",
        ),
    ])
    .await
}

fn span_named<'a>(all: &'a [Item], trace: &str, name: &str) -> Option<&'a Item> {
    all.iter().find(|item| item.trace == trace && item.name == name)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_trace_reaches_the_store_and_the_lock_page() {
    // An acquire with a traceparent: its request and the commit are in that trace, with the log record; the page links it.
    let sink = Sink::open().await;
    let server = server(&sink).await;
    let (trace, caller) = ("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331");
    let lease = server
        .acquire(LOCK, Some(&format!("00-{trace}-{caller}-01")))
        .await;
    eventually("both spans are pushed", async || {
        let spans = sink.spans();
        span_named(&spans, trace, "POST /v1/locks/acquire").is_some()
            && span_named(&spans, trace, "lease.commit").is_some()
    })
    .await;
    let spans = sink.spans();
    let request = span_named(&spans, trace, "POST /v1/locks/acquire").unwrap();
    let commit = span_named(&spans, trace, "lease.commit").unwrap();
    assert_eq!((&*request.parent, &commit.parent), (caller, &request.span));
    assert_eq!(commit.attributes["db.system.name"], "sqlite");
    assert_eq!(request.service, "locks-of-a-test");
    let is_it = |item: &Item| {
        item.attributes
            .get("event")
            .is_some_and(|event| event == "lock_acquired")
            && item.trace == trace
    };
    eventually("its log record is pushed", async || sink.logs().iter().any(is_it)).await;
    let record = sink.logs().into_iter().find(is_it).unwrap();
    assert_eq!(record.attributes["resource"], LOCK);
    assert_eq!(record.attributes["leaseId"], lease["leaseId"].as_str().unwrap());
    let link = format!("https://tracing.example/t/{trace}");
    eventually("the page links the trace", async || {
        server
            .text(&format!("/locks/builtin/{LOCK}"))
            .await
            .contains(&link)
    })
    .await;
    let detail = server.json(&format!("/v1/inventory/builtin/{LOCK}")).await;
    assert_eq!(detail["seen"][0]["traceId"], trace, "{detail}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_forced_unlock_is_one_trace_with_its_audit_id() {
    // Confirmed under a traceparent: the act's span, the commit and the log record are in one trace and name one audit entry.
    let sink = Sink::open().await;
    let server = server(&sink).await;
    server.acquire(LOCK, None).await;
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    let caller = format!("00-{trace}-00f067aa0ba902b7-01");
    let generation = std::cell::RefCell::new(String::new());
    eventually("the lock is seen", async || {
        let detail = server.json(&format!("/v1/inventory/builtin/{LOCK}")).await;
        let seen = detail["lock"]["generation"]
            .as_str()
            .or(detail["generation"].as_str());
        generation.replace(seen.unwrap_or_default().to_owned());
        seen.is_some()
    })
    .await;
    let body = json!({"backend": "builtin", "resource": LOCK, "generation": generation.into_inner(),
        "reason": "INC-2291, the host is gone"});
    let intent = std::cell::RefCell::new(String::new());
    eventually("an intent", async || {
        let (status, unlock) = server.post("/v1/unlocks", &body, None).await;
        assert!(
            status == 201 || unlock["code"] == "backend_stale",
            "{status} {unlock}"
        );
        intent.replace(unlock["unlockId"].as_str().unwrap_or_default().to_owned());
        status == 201
    })
    .await;
    let path = format!("/v1/unlocks/{}/confirm", intent.into_inner());
    let (status, unlock) = server
        .post(&path, &json!({"resource": LOCK}), Some(&caller))
        .await;
    assert_eq!(status, 200, "{unlock}");
    eventually("the act's span and the commit", async || {
        let spans = sink.spans();
        span_named(&spans, trace, "forced_unlock").is_some()
            && span_named(&spans, trace, "lease.commit").is_some()
    })
    .await;
    let spans = sink.spans();
    let audit = span_named(&spans, trace, "forced_unlock").unwrap().attributes["audit.id"].clone();
    assert!(audit.parse::<i64>().unwrap() > 0);
    let is_it = |item: &Item| {
        item.attributes
            .get("event")
            .is_some_and(|event| event == "forced_unlock")
    };
    eventually("its log record", async || sink.logs().iter().any(is_it)).await;
    let record = sink.logs().into_iter().find(is_it).unwrap();
    assert_eq!((&*record.trace, &record.attributes["audit.id"]), (trace, &audit));
    // The caller's token is in neither.
    let everything = format!("{:?}{:?}", sink.logs(), sink.spans());
    assert!(!everything.contains(&server.token));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leasehold_run_forwards_only_a_valid_trace() {
    // With a traceparent in its environment; then with an invalid one, which is ignored.
    let sink = Sink::open().await;
    let server = server(&sink).await;
    let trace = "7bf92f3577b34da6a3ce929d0e0e4799";
    for (value, resource) in [
        (format!("00-{trace}-00f067aa0ba902b7-01"), "jobs:traced"),
        ("no such thing".to_owned(), "jobs:untraced"),
    ] {
        let ran = tokio::process::Command::new(env!("CARGO_BIN_EXE_leasehold"))
            .env_clear()
            .env("TRACEPARENT", value)
            .env("LEASEHOLD_TOKEN", &server.token)
            .args([
                "run",
                "--server",
                &server.url(""),
                "--resource",
                resource,
                "--ttl",
                "30s",
                "--",
                "/bin/true",
            ])
            .output()
            .await
            .unwrap();
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    }
    eventually("two grants are pushed, one of them in the trace", async || {
        let spans = sink.spans();
        let acquires = spans.iter().filter(|span| span.name == "POST /v1/locks/acquire");
        acquires.count() == 2 && span_named(&spans, trace, "POST /v1/locks/acquire").is_some()
    })
    .await;
    let acquires = sink
        .spans()
        .into_iter()
        .filter(|span| span.name == "POST /v1/locks/acquire");
    assert_eq!(acquires.filter(|span| span.trace == trace).count(), 1);
}
