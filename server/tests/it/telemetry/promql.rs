//! A real OTLP metrics receiver queried in PromQL, and a real Prometheus that scrapes: rules and dashboards written
//! for one work for the other.

use ::testkit::Throwaway;

use super::otlp_push::{query, scraping, work};
use super::server_process::ServerProcess;
use testkit::eventually;

/// Over the labels that are ours: who scraped, and what a receiver makes of the resource, are their own.
const QUERIES: [(&str, f64); 6] = [
    (
        "sum by (distributed_lock_backend, distributed_lock_prefix, outcome) \
         (distributed_lock_acquire_attempts_total)",
        13.0,
    ),
    (
        "sum by (distributed_lock_backend, outcome) (distributed_lock_release_attempts_total)",
        10.0,
    ),
    (
        "sum by (distributed_lock_backend, end) (distributed_lock_hold_duration_seconds_count)",
        10.0,
    ),
    (
        "sum by (le) (distributed_lock_hold_duration_seconds_bucket{le=\"+Inf\"})",
        10.0,
    ),
    ("sum (distributed_lock_fencing_rejections_total)", 0.0),
    ("sum (distributed_lock_lease_active)", 0.0),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn otlp_and_scraped_metrics_answer_promql_alike() {
    // Would catch a name, a unit, a suffix, a bucket or a temporality that a receiver understands otherwise than we mean it.
    let victoria = Throwaway::victoria().await.unwrap();
    let server = ServerProcess::start(&[
        ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", &victoria.otlp_url()),
        ("OTEL_METRIC_EXPORT_INTERVAL", "500"),
    ])
    .await;
    let prometheus = scraping(&server).await;
    work(&server).await;
    for (promql, sum) in QUERIES {
        eventually(&format!("{promql} is the same by both ways"), async || {
            let (pulled, pushed) = (
                query(&prometheus.url(), promql).await,
                query(&victoria.url(), promql).await,
            );
            pulled == pushed && !pulled.is_empty() && pulled.values().sum::<f64>() == sum
        })
        .await;
    }
    let page = server.text("/backends").await;
    assert!(page.contains("pushes metrics") && page.contains("last arrived at"));
}
