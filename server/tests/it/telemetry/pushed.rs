//! A real Prometheus that is pushed to by OTLP and scrapes the same server: both say the same.

use leasehold::throwaway::{Prometheus, PrometheusOptions, Throwaway};
use serde_json::Value;

use super::stage::Stage;
use crate::support::eventually::eventually;

async fn query(prometheus: &Prometheus, query: &str) -> Vec<(String, f64)> {
    let url = format!("{}/api/v1/query", prometheus.url());
    let asked = reqwest::Client::new().get(url).query(&[("query", query)]);
    let answer: Value = asked.send().await.unwrap().json().await.unwrap();
    let rows = answer["data"]["result"].as_array().cloned().unwrap_or_default();
    let mut rows: Vec<_> = rows
        .iter()
        .map(|row| {
            let value = row["value"][1].as_str().unwrap().parse().unwrap();
            (row["metric"].to_string(), value)
        })
        .collect();
    rows.sort_by(|a: &(String, f64), b| a.0.cmp(&b.0));
    rows
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_pushed_and_what_is_scraped_are_the_same() {
    // Ten grants, three refusals, ten releases: counted alike by both ways, with the same names and labels.
    let config =
        "global: {scrape_interval: 1s}\notlp: {promote_resource_attributes: [service.name]}\n".to_owned();
    let pushed_to = Throwaway::prometheus(PrometheusOptions {
        config,
        files: Vec::new(),
    })
    .await
    .unwrap();
    let endpoint = format!("{}/api/v1/otlp/v1/metrics", pushed_to.url());
    let stage = Stage::start(&[
        ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", &endpoint),
        ("OTEL_METRIC_EXPORT_INTERVAL", "500"),
    ])
    .await;
    let target = stage.url("");
    let target = target.trim_start_matches("http://").trim_end_matches('/');
    let config = format!(
        "global: {{scrape_interval: 1s}}\nscrape_configs:\n- job_name: leasehold\n  authorization: {{credentials: {}}}\n  static_configs: [{{targets: ['{target}']}}]\n",
        stage.token
    );
    let scraping = Throwaway::prometheus(PrometheusOptions {
        config,
        files: Vec::new(),
    })
    .await
    .unwrap();
    for number in 0..10 {
        let lease = stage.acquire(&format!("jobs:{number}"), None).await;
        if number < 3 {
            let body =
                serde_json::json!({"resource": format!("jobs:{number}"), "ownerId": "b", "ttlSeconds": 9});
            let (_, said) = stage.post("/v1/locks/acquire", &body, None).await;
            assert_eq!(said["acquired"], false);
        }
        stage.release(&lease, None).await;
    }
    for (name, by, expected) in [
        (
            "distributed_lock_acquire_attempts_total",
            "distributed_lock_outcome",
            vec![10.0, 3.0],
        ),
        (
            "distributed_lock_hold_duration_seconds_count",
            "distributed_lock_end",
            vec![10.0],
        ),
        (
            "distributed_lock_release_attempts_total",
            "distributed_lock_outcome",
            vec![0.0, 0.0, 0.0, 10.0],
        ),
        (
            "distributed_lock_fencing_rejections_total",
            "distributed_lock_cause",
            vec![0.0, 0.0, 0.0],
        ),
    ] {
        let asked = format!("sum by (distributed_lock_backend, {by}) ({name})");
        let values = |rows: &[(String, f64)]| rows.iter().map(|row| row.1).collect::<Vec<_>>();
        eventually(&format!("{name} is the same by both ways"), async || {
            let (pushed, scraped) = (query(&pushed_to, &asked).await, query(&scraping, &asked).await);
            pushed == scraped && values(&scraped) == expected
        })
        .await;
    }
    let page = stage.text("/backends").await;
    assert!(page.contains("pushes metrics") && page.contains("last arrived at"));
}
