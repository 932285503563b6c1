//! What docs/monitoring ships for Grafana and Prometheus, requested of a real Prometheus that scrapes a real server.

use std::collections::BTreeSet;

use ::testkit::{Prometheus, PrometheusOptions, Throwaway};
use serde_json::{Value, json};

use super::server_process::ServerProcess;
use testkit::eventually;

const DASHBOARD: &str = include_str!("../../../../docs/monitoring/leasehold.dashboard.json");
const RULES: &str = include_str!("../../../../docs/monitoring/leasehold.rules.yml");

/// Title and query of each panel, with Grafana's variables filled in.
fn panels() -> Vec<(String, String)> {
    let dashboard: Value = serde_json::from_str(DASHBOARD).unwrap();
    let mut queries = Vec::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        let title = panel["title"].as_str().unwrap();
        for target in panel["targets"].as_array().into_iter().flatten() {
            let query = target["expr"].as_str().unwrap();
            let query = query
                .replace("$backend", ".*")
                .replace("$__rate_interval", "1m")
                .replace("$__range", "1h");
            assert!(!query.contains('$'), "{title}: {query}");
            queries.push((title.to_owned(), query));
        }
    }
    queries
}

/// Names of our metrics in the rules.
fn named_in_rules() -> BTreeSet<String> {
    let expressions = RULES
        .lines()
        .filter(|line| line.trim_start().starts_with("expr:"));
    let words =
        expressions.flat_map(|line| line.split(|one: char| !(one.is_ascii_alphanumeric() || one == '_')));
    let is_label = |word: &str| ["distributed_lock_backend", "distributed_lock_prefix"].contains(&word);
    let metrics = words.filter(|word| word.starts_with("distributed_lock_") && !is_label(word));
    metrics.map(str::to_owned).collect()
}

async fn has_data(prometheus: &Prometheus, query: &str) -> bool {
    let url = format!("{}/api/v1/query", prometheus.url());
    let request = reqwest::Client::new().get(url).query(&[("query", query)]);
    let answer: Value = request.send().await.unwrap().json().await.unwrap();
    assert_eq!(answer["status"], "success", "{query}: {answer}");
    !answer["data"]["result"].as_array().unwrap().is_empty()
}

/// A grant, a refusal, a wait in vain, a renewal, a refused write, a release.
async fn live(server: &ServerProcess) {
    let lease = server.acquire("jobs:1", None).await;
    for wait in [0, 1] {
        let body = json!({"resource": "jobs:1", "ownerId": "b", "ttlSeconds": 9, "waitSeconds": wait});
        let (_, answer) = server.post("/v1/locks/acquire", &body, None).await;
        assert_eq!(answer["acquired"], false);
    }
    let renew = format!("/v1/locks/{}/renew", lease["leaseId"].as_str().unwrap());
    assert_eq!(server.post(&renew, &json!({}), None).await.0, 200);
    let write = json!({"resource": "jobs:1", "token": 0, "source": "db"});
    server.post("/v1/fencing/check", &write, None).await;
    server.release(&lease, None).await;
    // Held from now on, so that something is.
    server.acquire("jobs:2", None).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dashboard_queries_and_rule_metrics_have_data() {
    // A query with a name or a label that is not ours draws an empty panel, and a rule that never fires.
    let server = ServerProcess::start(&[]).await;
    let config = format!(
        "global: {{scrape_interval: 1s}}\nscrape_configs:\n- job_name: leasehold\n  authorization: {{credentials: {}}}\n  \
         static_configs: [{{targets: ['127.0.0.1:{}']}}]\n",
        server.token, server.port
    );
    let options = PrometheusOptions {
        config,
        files: Vec::new(),
    };
    let prometheus = Throwaway::prometheus(options).await.unwrap();
    live(&server).await;
    let mut queries = panels();
    assert!(queries.len() > 20);
    queries.extend(
        named_in_rules()
            .into_iter()
            .map(|name| (format!("rules: {name}"), name)),
    );
    for (title, query) in queries {
        let what = format!("{title} has data: {query}");
        eventually(&what, async || has_data(&prometheus, &query).await).await;
    }
}
