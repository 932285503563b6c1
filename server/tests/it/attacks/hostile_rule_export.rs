//! Names of alert rules try to add rules, comments or templates to the file that is exported for Prometheus.

use crate::support::{TestServer, bearer, token};
use ::testkit::{Prometheus, PrometheusOptions, Throwaway};
use domain::access::Role;
use reqwest::{Client, StatusCode};
use serde_json::{Value, json};

/// U+2028 and U+2029 end a line of YAML 1.1, in comments too.
const NAMES: [&str; 4] = [
    "a\u{2028}      - alert: Forged\u{2028}        expr: vector(1)",
    "b\u{2029}      - alert: Forged\u{2029}        expr: vector(1)",
    "\"' # \\ : - [ { ! & * % @ ` |",
    "{{ .Nothing }} \u{202e}gnp\u{feff}\u{fffe}\u{1f512}",
];

async fn put(console: &TestServer, admin: &str, rule: &Value) -> StatusCode {
    let put = Client::new().put(console.url("/v1/rules")).headers(bearer(admin));
    put.json(rule).send().await.unwrap().status()
}

/// As Prometheus itself reads the file.
async fn loaded(text: &str) -> (Prometheus, Vec<Value>) {
    let options = PrometheusOptions {
        config: "rule_files: [\"rules.yml\"]\n".to_owned(),
        files: vec![("rules.yml".to_owned(), text.to_owned())],
    };
    let prometheus = Throwaway::prometheus(options).await.unwrap();
    let rules = reqwest::get(format!("{}/api/v1/rules", prometheus.url()))
        .await
        .unwrap();
    let rules: Value = rules.json().await.unwrap();
    let groups = rules["data"]["groups"].as_array().unwrap();
    assert_eq!(groups.len(), 1, "{rules}");
    (prometheus, groups[0]["rules"].as_array().unwrap().clone())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rule_names_stay_names_in_the_export() {
    // Each name in a rule that becomes an expression, in one with a note, in one that cannot be expressed, in one that is off.
    let console = TestServer::builder().operator().start().await;
    let admin = token(&console.serving, Role::Admin).await;
    let admin = admin.expose();
    let mut expected = Vec::new();
    for (index, name) in NAMES.into_iter().enumerate() {
        for condition in ["lease_losses", "contention", "forced_unlocks", "wait_p95"] {
            let id = format!("mine-{condition}-{index}");
            let is_enabled = condition != "wait_p95";
            let rule = json!({
                "id": id, "name": name, "condition": condition, "enabled": is_enabled, "prefix": format!("p{name}"),
                "anyPrefix": true
            });
            assert_eq!(put(&console, admin, &rule).await, StatusCode::OK, "{rule}");
            if is_enabled {
                expected.push((id, name));
            }
        }
    }
    let broken =
        json!({"id": "broken", "name": "a\n- alert: Forged", "condition": "contention", "anyPrefix": true});
    assert_eq!(put(&console, admin, &broken).await, StatusCode::BAD_REQUEST);
    let text = Client::new().get(console.url("/v1/rules?format=prometheus"));
    let text = text
        .headers(bearer(admin))
        .send()
        .await
        .unwrap()
        .text()
        .await
        .unwrap();
    assert!(text.contains("is off."), "{text}");
    assert!(
        !text.contains(['\u{2028}', '\u{2029}', '\u{202e}', '\u{feff}']),
        "{text}"
    );
    let (_prometheus, rules) = loaded(&text).await;
    for (id, name) in expected {
        let mut own = rules.iter().filter(|rule| rule["labels"]["rule"] == id.as_str());
        let rule = own.next().unwrap_or_else(|| panic!("{id} is not in {text}"));
        assert!(own.next().is_none(), "{id} is there twice");
        let summary = rule["annotations"]["summary"].as_str().unwrap();
        let name = name.replace("{{", "{{ \"{{\" }}").replace('\u{fffe}', "");
        assert!(
            summary.replace('\u{fffe}', "").starts_with(&name),
            "{summary:?} and {name:?}"
        );
    }
    for rule in &rules {
        let alert = rule["name"].as_str().unwrap();
        assert!(alert.starts_with("Leasehold"), "{rule}");
        assert!(rule["labels"]["rule"].is_string(), "{rule}");
    }
}
