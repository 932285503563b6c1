//! The store goes away and comes back.

use axum::http::StatusCode;
use serde_json::json;

use super::lease_server::{LeaseStore, StoreKind, is_granted};
use testkit::eventually;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_outage_answers_503_and_recovers() {
    // Postgres killed, then paused: 503 while it is down, and no grant; served again without a server restart.
    let store = LeaseStore::new(StoreKind::Postgres).await;
    let postgres = store.postgres.as_ref().unwrap();
    let server = store.serve().await;
    let lease = server.acquire("r", "o", 60).await;
    for paused in [false, true] {
        if paused {
            postgres.pause().await.unwrap();
        } else {
            postgres.kill().await.unwrap();
        }
        for _ in 0..3 {
            let body = json!({"resource": format!("new{paused}"), "ownerId": "o", "ttlSeconds": 30});
            let (status, problem) = server.post("/v1/locks/acquire", body).await;
            assert_eq!(
                (status, &problem["code"]),
                (StatusCode::SERVICE_UNAVAILABLE, &json!("store_unavailable"))
            );
            let text = problem.to_string();
            assert!(
                !text.contains("postgres") && !text.contains("127.0.0.1"),
                "{text}"
            );
            assert_eq!(server.renew_once(&lease).await.0, StatusCode::SERVICE_UNAVAILABLE);
        }
        if paused {
            postgres.resume().await.unwrap();
        } else {
            postgres.restart().await.unwrap();
        }
        eventually("it serves again", || async {
            server.renew(&lease).await.0 == StatusCode::OK
        })
        .await;
        eventually("the lock is free for the next acquire", || async {
            is_granted(&server.acquire(&format!("new{paused}"), "p", 30).await)
        })
        .await;
    }
    server.close().await;
}
