//! A lock's history on a server after a restart.

use serde_json::{Value, json};

use crate::support::TestServer;
use testkit::eventually;

const DETAIL: &str = "/v1/inventory/builtin/jobs%2Fnightly";

async fn acquire(server: &TestServer) -> String {
    let body = json!({"resource": "jobs/nightly", "ownerId": "worker-7", "ttlSeconds": 600});
    let url = server.url("/v1/locks/acquire");
    let answer = server.client.post(url).json(&body).send().await.unwrap();
    let lease: Value = answer.json().await.unwrap();
    lease["leaseId"].as_str().unwrap().to_owned()
}

/// Until this is the newest event of the lock.
async fn tells(server: &TestServer, kind: &str) {
    eventually(kind, async || {
        let detail = server.json(DETAIL).await;
        detail["seen"][0]["kind"] == kind || detail["detail"].to_string().contains(kind)
    })
    .await;
}

#[tokio::test]
async fn a_lock_remembers_its_owners_after_a_restart() {
    // Acquired and released; the server restarts: a request for the name returns when it was released, and once it is
    // held again its page shows the earlier events.
    let server = TestServer::builder().operator().start().await;
    let lease = acquire(&server).await;
    tells(&server, "acquired").await;
    let lease = server.url(&format!("/v1/locks/{lease}"));
    server.client.delete(lease).send().await.unwrap();
    tells(&server, "released").await;
    let server = server.restart().await;
    let gone = server.json(DETAIL).await;
    let sentence = gone["detail"].as_str().unwrap();
    assert!(
        sentence.contains("is not held on builtin now; last seen released at 2"),
        "{sentence}"
    );
    acquire(&server).await;
    tells(&server, "acquired").await;
    let seen = server.json(DETAIL).await["seen"].clone();
    let kinds: Vec<&str> = seen
        .as_array()
        .unwrap()
        .iter()
        .map(|event| event["kind"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["acquired", "released", "acquired"], "{seen}");
    assert_eq!(seen[2]["ownerId"], "worker-7");
    server.stop().await;
}
