//! The operator of `tenant_1` silences `tenant_12` with a pattern that begins like its own prefix.

use crate::support::{TestCaller, TestServer, on};
use domain::access::Role;
use serde_json::{Value, json};

async fn silence(server: &TestServer, token: &TestCaller, matchers: &[(&str, &str)]) -> (u16, Value) {
    let matchers: Vec<Value> = matchers
        .iter()
        .map(|(label, value)| json!({"label": label, "value": value}))
        .collect();
    let body = json!({"matchers": matchers, "lasts": "2h", "comment": "scope test"});
    server.as_user(token).post("/v1/silences", &body).await
}

#[tokio::test]
async fn silences_beyond_whole_segments_of_the_scope_are_refused() {
    // Patterns of the operator of a tenant, and of the operator of a backend.
    let server = TestServer::builder().redis().start().await;
    let tenant = server
        .token("tenant", on(Role::Operator, None, Some("tenant_1")))
        .await;
    let backend = server
        .token("backend", on(Role::Operator, Some("cache"), None))
        .await;
    for (token, matchers, expected) in [
        (&tenant, &[("resource", "tenant_1*")][..], 403),
        (&tenant, &[("prefix", "tenant_1*")], 403),
        (&tenant, &[("prefix", "tenant_*")], 403),
        (&tenant, &[("rule", "long_held")], 403),
        (&tenant, &[("prefix", "tenant_1")], 201),
        (&tenant, &[("prefix", "tenant_1:job*")], 201),
        (&backend, &[("backend", "cache*")], 403),
        (&backend, &[("backend", "c*")], 403),
        (&backend, &[("prefix", "tenant_1:")], 403),
        (&backend, &[("backend", "cache")], 201),
    ] {
        let (status, answer) = silence(&server, token, matchers).await;
        assert_eq!(status, expected, "{matchers:?}: {answer}");
        if expected == 403 {
            let detail = answer["detail"].as_str().unwrap();
            assert!(detail.contains("a whole segment"), "{detail}");
        }
    }
}
