//! `GET /metrics`: clean for promtool, complete, documented, and restricted.

use crate::support::{TestServer, client, token};
use std::collections::BTreeSet;
use std::time::Duration;

use domain::access::{Grant, Role};
use leasehold::identity::{NewToken, Principal};
use runtime::telemetry::metric_names::{ALL, Metric, MetricKind};
use serde_json::{Value, json};

use crate::support::promtool::check_metrics;
use crate::wire::metrics::assert_metrics_snapshot;
use testkit::eventually;

const DOCUMENT: &str = include_str!("../../../../docs/monitoring.md");

/// As Prometheus writes it.
fn scraped_name(metric: &Metric) -> String {
    let name = metric.name.replace('.', "_");
    match (metric.kind, metric.unit) {
        (MetricKind::Counter, _) => format!("{name}_total"),
        (_, "s") => format!("{name}_seconds"),
        (_, "1") => format!("{name}_ratio"),
        _ => name,
    }
}

async fn post_json(client: &reqwest::Client, url: String, body: Value) -> Value {
    let answer = client.post(url).json(&body).send().await.unwrap();
    answer.json().await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_late_renewal_of_a_lost_lease_is_measured_once() {
    // A lease expires and its owner tries to renew it, twice. Detects a loss that is not counted, one that is counted
    // for each renewal, and one that replaces the expiry.
    let console = TestServer::builder().operator().start().await;
    let lock_client = client(
        token(&console.serving, Role::Client).await.expose(),
        Duration::from_secs(30),
    );
    let body = json!({"resource": "a:1", "ownerId": "w", "ttlSeconds": 1});
    let lease = post_json(&lock_client, console.url("/v1/locks/acquire"), body).await;
    let renew = console.url(&format!("/v1/locks/{}/renew", lease["leaseId"].as_str().unwrap()));
    let count = async |end: &str| {
        let page = console.get("/metrics").await.text().await.unwrap();
        let is_its = |line: &&str| {
            line.starts_with("distributed_lock_hold_duration_seconds_count{")
                && line.contains(&format!("end=\"{end}\""))
        };
        let line = page.lines().find(is_its).map(str::to_owned);
        line.map_or(0, |line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap())
    };
    eventually("it has run out", async || count("expired").await == 1).await;
    for _ in 0..2 {
        assert_eq!(lock_client.post(&renew).send().await.unwrap().status(), 410);
    }
    eventually("the loss is counted", async || count("lost").await >= 1).await;
    // Events after both renewals are counted after both.
    let body = json!({"resource": "a:2", "ownerId": "w", "ttlSeconds": 60});
    let after = post_json(&lock_client, console.url("/v1/locks/acquire"), body).await;
    let url = console.url(&format!("/v1/locks/{}", after["leaseId"].as_str().unwrap()));
    assert_eq!(lock_client.delete(url).send().await.unwrap().status(), 200);
    eventually("the release is counted", async || count("released").await == 1).await;
    assert_eq!((count("lost").await, count("expired").await), (1, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn promtool_accepts_the_metrics_and_all_exist() {
    // A grant, a refusal, a wait in vain, a renewal, a release and a refused write: then every metric has a series.
    let console = TestServer::builder().operator().start().await;
    let lock_client = client(
        token(&console.serving, Role::Client).await.expose(),
        Duration::from_secs(30),
    );
    let acquire = |wait: u32| {
        let body = json!({"resource": "a:1", "ownerId": "w", "ttlSeconds": 60, "waitSeconds": wait});
        post_json(&lock_client, console.url("/v1/locks/acquire"), body)
    };
    let lease = acquire(0).await;
    let id = lease["leaseId"].as_str().unwrap();
    acquire(0).await;
    acquire(1).await;
    let renewed = lock_client
        .post(console.url(&format!("/v1/locks/{id}/renew")))
        .send();
    assert_eq!(renewed.await.unwrap().status(), 200);
    let write = json!({"resource": "a:1", "token": 0, "source": "db"});
    lock_client
        .post(console.url("/v1/fencing/check"))
        .json(&write)
        .send()
        .await
        .unwrap();
    let released = lock_client.delete(console.url(&format!("/v1/locks/{id}"))).send();
    assert_eq!(released.await.unwrap().status(), 200);
    let names: Vec<String> = ALL.iter().map(scraped_name).collect();
    let page = std::cell::RefCell::new(String::new());
    let missing = || {
        let page = page.borrow();
        let is_missing = |name: &&String| !page.contains(&format!("# TYPE {name} "));
        names.iter().filter(is_missing).cloned().collect::<Vec<_>>()
    };
    let all = tokio::time::timeout(Duration::from_secs(30), async {
        loop {
            page.replace(console.get("/metrics").await.text().await.unwrap());
            if missing().is_empty() {
                return;
            }
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert!(all.is_ok(), "missing: {:?}", missing());
    let page = page.into_inner();
    assert_eq!(check_metrics(&page), "");
    assert_metrics_snapshot(&page);
    // Texts that may not be in the metrics.
    for never in [
        "a:1",
        "ownerId",
        "otel_scope",
        "otel_metric_overflow",
        "_ratio_ratio",
    ] {
        assert!(!page.contains(never), "{never} in\n{page}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn metrics_are_for_readers_of_everything() {
    // No session; a reader of one prefix, who must not see other names; a reader of everything.
    let console = TestServer::builder().operator().start().await;
    let url = console.url("/metrics");
    assert_eq!(reqwest::get(&url).await.unwrap().status(), 401);
    let new = NewToken {
        name: "narrow".to_owned(),
        grants: vec![Grant {
            prefix: Some("tenant_1:".to_owned()),
            ..Grant::everywhere(Role::Viewer)
        }],
        expires_in: None,
    };
    let narrow = console
        .serving
        .identity()
        .create_token(&Principal::system("test"), new)
        .await
        .unwrap();
    let of = |token: &str| client(token, Duration::from_secs(30)).get(&url).send();
    assert_eq!(of(narrow.expose()).await.unwrap().status(), 403);
    let viewer = token(&console.serving, Role::Viewer).await;
    let answer = of(viewer.expose()).await.unwrap();
    assert_eq!(answer.status(), 200);
    let kind = answer.headers()["content-type"].to_str().unwrap();
    assert!(kind.starts_with("text/plain; version=0.0.4"), "{kind}");
}

#[test]
fn the_document_describes_every_metric_and_no_other() {
    // Each row of the table: name, instrument, unit, and its attributes without the common prefix.
    let rows: BTreeSet<String> = DOCUMENT
        .lines()
        .filter(|line| {
            line.starts_with("| `distributed_lock.")
                || line.starts_with("| `leasehold.")
                || line.starts_with("| `http.")
                || line.starts_with("| `db.")
        })
        .map(|line| line.split(" | ").take(3).collect::<Vec<_>>().join(" | "))
        .collect();
    let short = |attribute: &&str| attribute.trim_start_matches("distributed_lock.").to_owned();
    let expected: BTreeSet<String> = ALL
        .iter()
        .map(|metric| {
            let attributes: Vec<_> = metric.attributes.iter().map(short).collect();
            let attributes = if attributes.is_empty() {
                "none".to_owned()
            } else {
                attributes.join(", ")
            };
            format!(
                "| `{}` | {} `{}` | {attributes}",
                metric.name,
                metric.kind.label(),
                metric.unit
            )
        })
        .collect();
    assert_eq!(rows, expected);
    for metric in ALL {
        assert!(
            DOCUMENT.contains(&scraped_name(metric)),
            "{} is not written as Prometheus has it",
            metric.name
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_enabled_rule_has_the_value_0_before_it_fires() {
    // `increase()` and alerts on absence need it.
    let console = TestServer::builder().operator().start().await;
    eventually("rules have samples", async || {
        let page = console.get("/metrics").await.text().await.unwrap();
        page.lines()
            .any(|line| line.starts_with("distributed_lock_alert_active{") && line.ends_with(" 0"))
    })
    .await;
}

#[test]
fn the_documented_scrape_is_valid_and_encrypted() {
    // The server refuses plain HTTP from another machine.
    let (_, rest) = DOCUMENT.split_once("```yaml\n").unwrap();
    let scrape = rest.split("```").next().unwrap();
    assert!(scrape.contains("scheme: https"), "{scrape}");
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("leasehold.token"), "token").unwrap();
    let root = folder.path().display().to_string();
    let file = folder.path().join("prometheus.yml");
    std::fs::write(&file, scrape.replace("/etc/prometheus", &root)).unwrap();
    let checked = std::process::Command::new(::testkit::promtool().unwrap())
        .args(["check", "config"])
        .arg(&file)
        .output()
        .unwrap();
    assert!(checked.status.success(), "{checked:?}");
}
