//! Fencing rejections that resources report.

use axum::http::StatusCode;
use serde_json::{Value, json};

use super::lease_server::{LeaseStore, StoreKind, on_every_store};

on_every_store!(a_reported_rejection_is_never_in_the_future, |store| {
    // The clock of the first reporter is ahead; the second one reports later and leaves the time to the server.
    let server = store.serve().await;
    for (token, at) in [(0, json!("2099-01-02T03:04:05Z")), (1, Value::Null)] {
        let body = json!({"resource": "r", "fencingToken": token, "source": "db", "at": at});
        let (status, answer) = server.post("/v1/fencing/rejections", body).await;
        assert_eq!(status, StatusCode::ACCEPTED, "{answer}");
    }
    let rows = server.service.rejections(None).await.unwrap();
    let at = |token| rows.iter().find(|row| row.token == token).unwrap().at;
    assert!(at(0) <= at(1), "{rows:?}");
    server.close().await;
});
