//! A real Prometheus that scrapes a server which also pushes to a collector: both say the same.

use std::collections::BTreeMap;

use ::testkit::{Prometheus, PrometheusOptions, Throwaway};
use serde_json::Value;

use super::server_process::ServerProcess;
use super::sink::Sink;
use testkit::eventually;

/// Values of one metric, by its labels as attributes are written.
pub(super) type Values = BTreeMap<BTreeMap<String, String>, f64>;

async fn scraped(prometheus: &Prometheus, name: &str) -> Values {
    query(&prometheus.url(), name).await
}

/// What PromQL answers there.
pub(super) async fn query(base: &str, promql: &str) -> Values {
    let url = format!("{base}/api/v1/query");
    let request = reqwest::Client::new().get(url).query(&[("query", promql)]);
    let answer: Value = request.send().await.unwrap().json().await.unwrap();
    let rows = answer["data"]["result"].as_array().cloned().unwrap_or_default();
    let of = |row: &Value| {
        let labels = row["metric"].as_object().unwrap();
        let own = labels
            .iter()
            .filter(|(name, _)| !["__name__", "instance", "job"].contains(&name.as_str()));
        let own = own.map(|(name, value)| (name.clone(), value.as_str().unwrap().to_owned()));
        (own.collect(), row["value"][1].as_str().unwrap().parse().unwrap())
    };
    rows.iter().map(of).collect()
}

fn pushed(sink: &Sink, name: &str) -> Values {
    let all = sink.values().into_iter().filter(|((of, _), _)| of == name);
    let written = |(name, value): (String, String)| (name.replace('.', "_"), value);
    all.map(|((_, attributes), value)| (attributes.into_iter().map(written).collect(), value))
        .collect()
}

/// A Prometheus that scrapes it each second.
pub(super) async fn scraping(server: &ServerProcess) -> Prometheus {
    let config = format!(
        "global: {{scrape_interval: 1s}}\nscrape_configs:\n- job_name: leasehold\n  authorization: {{credentials: {}}}\n  \
         static_configs: [{{targets: ['127.0.0.1:{}']}}]\n",
        server.token, server.port
    );
    let options = PrometheusOptions {
        config,
        files: Vec::new(),
    };
    Throwaway::prometheus(options).await.unwrap()
}

/// Ten grants, three refusals, ten releases.
pub(super) async fn work(server: &ServerProcess) {
    for number in 0..10 {
        let resource = format!("jobs:{number}");
        let lease = server.acquire(&resource, None).await;
        if number < 3 {
            let body = serde_json::json!({"resource": resource, "ownerId": "b", "ttlSeconds": 9});
            let (_, acquired) = server.post("/v1/locks/acquire", &body, None).await;
            assert_eq!(acquired["acquired"], false);
        }
        server.release(&lease, None).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pushed_and_scraped_metrics_are_equal() {
    // Ten grants, three refusals, ten releases: counted alike by both ways, under the same names and labels.
    let sink = Sink::open().await;
    let server = ServerProcess::start(&[
        ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", &sink.url),
        ("OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", "grpc"),
        ("OTEL_METRIC_EXPORT_INTERVAL", "500"),
    ])
    .await;
    let prometheus = scraping(&server).await;
    work(&server).await;
    for (name, in_prometheus, sum) in [
        (
            "distributed_lock.acquire.attempts",
            "distributed_lock_acquire_attempts_total",
            13.0,
        ),
        (
            "distributed_lock.hold.duration",
            "distributed_lock_hold_duration_seconds_count",
            10.0,
        ),
        (
            "distributed_lock.release.attempts",
            "distributed_lock_release_attempts_total",
            10.0,
        ),
        (
            "distributed_lock.fencing.rejections",
            "distributed_lock_fencing_rejections_total",
            0.0,
        ),
    ] {
        eventually(&format!("{name} is the same by both ways"), async || {
            let (scraped, pushed) = (scraped(&prometheus, in_prometheus).await, pushed(&sink, name));
            scraped == pushed && !scraped.is_empty() && scraped.values().sum::<f64>() == sum
        })
        .await;
    }
    let page = server.text("/backends").await;
    assert!(page.contains("pushes metrics") && page.contains("last arrived at"));
}
