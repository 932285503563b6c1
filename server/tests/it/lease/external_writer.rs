//! A store with an external writer: the service's cache must not outlive the external change.

use axum::http::StatusCode;
use serde_json::json;

use super::lease_server::{LeaseStore, StoreKind, is_granted, on_both_stores, token};

on_both_stores!(writes_of_another_connection_are_read_by_the_next_call, |store| {
    // A lease that the service has just granted, and so remembers, is made to run out by hand; then its counter is lifted.
    let server = store.serve().await;
    let lease = server.acquire("r", "w1", 60).await;
    assert!(!is_granted(&server.acquire("r", "w2", 60).await));
    store
        .sql("UPDATE leases SET expires_at = acquired_at WHERE resource = 'r'")
        .await;
    let (status, problem) = server.renew(&lease).await;
    assert_eq!((status, &problem["code"]), (StatusCode::GONE, &json!("expired")));
    store
        .sql("UPDATE resource_tokens SET last_token = 41 WHERE resource = 'r'")
        .await;
    let next = server.acquire("r", "w2", 60).await;
    assert!(is_granted(&next), "{next}");
    assert_eq!(token(&next), 42);
    server.close().await;
});
