//! Names of locks, owners and sources try to add samples to the metrics.

use crate::support::{TestServer, client, token};
use std::time::Duration;

use domain::access::Role;
use reqwest::Method;
use runtime::telemetry::metric_names::ALL;
use serde_json::{Value, json};

use crate::support::promtool::check_metrics;
use testkit::eventually;

/// Without a space: names with one are counted together.
const HOSTILE: &str = "p\"}x\ndistributed_lock_forged{x=\"\\\r\n#HELP\u{2028}\u{85}:end";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_names_add_no_sample_to_the_metrics() {
    let console = TestServer::builder().operator().start().await;
    let operator = token(&console.serving, Role::Operator).await;
    let http = client(operator.expose(), Duration::from_secs(10));
    let send = async |method: Method, path: &str, body: Value| {
        let answer = http
            .request(method, console.url(path))
            .json(&body)
            .send()
            .await
            .unwrap();
        (answer.status(), answer.text().await.unwrap())
    };
    let mut accepted = 0;
    // Unchanged, and without characters that a name may not have.
    for name in [HOSTILE.to_owned(), HOSTILE.replace(|c: char| c.is_control(), "")] {
        let lease = json!({"resource": name, "ownerId": name, "ttlSeconds": 60});
        let (status, why) = send(Method::POST, "/v1/locks/acquire", lease).await;
        assert!(status.is_success() || status == 400, "{status} {why}");
        accepted += u32::from(status.is_success());
        let rejection =
            json!({"resource": name, "ownerId": name, "source": name, "fencingToken": 3, "highestToken": 5});
        let (status, why) = send(Method::POST, "/v1/fencing/rejections", rejection).await;
        assert!(status.is_success() || status == 400, "{status} {why}");
    }
    assert!(accepted > 0);
    let scrape = async || console.get("/metrics").await.text().await.unwrap();
    eventually("the name is a label", async || scrape().await.contains("p\\\"}x")).await;
    let metrics = scrape().await;
    assert_eq!(check_metrics(&metrics), "", "{metrics}");
    let known: Vec<String> = ALL.iter().map(|metric| metric.name.replace('.', "_")).collect();
    for line in metrics.split(['\n', '\r']).filter(|line| !line.is_empty()) {
        let name = line.trim_start_matches("# HELP ").trim_start_matches("# TYPE ");
        let is_known = known.iter().any(|known| name.starts_with(known)) || name.starts_with("target_info");
        assert!(is_known, "{line:?} in\n{metrics}");
    }
}
