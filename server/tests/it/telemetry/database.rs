//! Query duration of the console's own store: every component that uses it, and no more series than components.

use std::collections::BTreeSet;

use serde_json::json;

use super::server_process::ServerProcess;
use testkit::eventually;

/// All that there may be: a statement, a name or a path among them would grow without an end.
const OPERATIONS: [&str; 10] = [
    "alerts",
    "audit",
    "begin",
    "commit",
    "history",
    "identity",
    "janitor",
    "lease_batch",
    "notify",
    "unlock",
];

async fn operations(server: &ServerProcess) -> BTreeSet<String> {
    let page = server.text("/metrics").await;
    let own = page
        .lines()
        .filter(|line| line.starts_with("db_client_operation_duration_seconds_count"));
    let named = own.map(|line| {
        assert!(line.contains("db_system_name=\"sqlite\""), "{line}");
        let rest = line.split("db_operation_name=\"").nth(1).unwrap();
        rest.split('"').next().unwrap().to_owned()
    });
    named.collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_module_with_queries_has_database_metrics() {
    // Would catch a part that is not measured, and a name that is more than a part. A lease, a rule, a silence, a sign-in that
    // fails; history, alerts and notifications look by themselves.
    let server = ServerProcess::start(&[]).await;
    let lease = server.acquire("jobs:1", None).await;
    server.release(&lease, None).await;
    let silence =
        json!({"matchers": [{"label": "prefix", "value": "jobs:"}], "lasts": "2h", "comment": "a drill"});
    let (status, _) = server.post("/v1/silences", &silence, None).await;
    assert_eq!(status, 201);
    eventually("each part has its series", async || {
        let seen = operations(&server).await;
        OPERATIONS
            .iter()
            .filter(|name| **name != "unlock")
            .all(|name| seen.contains(*name))
    })
    .await;
    for name in operations(&server).await {
        assert!(OPERATIONS.contains(&name.as_str()), "{name}");
    }
}
