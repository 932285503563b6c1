//! A thousand requests that are cut off in the middle, against the few connections that a store has.

use std::time::Duration;

use axum::http::StatusCode;
use serde_json::{Value, json};

use super::lease_server::{LeaseServer, LeaseStore, StoreKind, aside, is_granted, on_every_store};
use testkit::eventually;

const REQUESTS: usize = 1_000;

/// Calls of several kinds, those that write and those that read.
fn request(server: &LeaseServer, lease: &Value, number: usize) -> reqwest::RequestBuilder {
    let url = |path: &str| format!("{}{path}", server.base);
    let id = lease["leaseId"].as_str().unwrap();
    match number % 5 {
        0 => server.http.get(url("/v1/locks?limit=1000")),
        1 => server.http.get(url("/v1/resources/kept")),
        2 => server.http.post(url(&format!("/v1/locks/{id}/renew"))),
        _ => {
            let body = json!({"resource": format!("r{}", number % 17), "ownerId": "o", "ttlSeconds": 1});
            server.http.post(url("/v1/locks/acquire")).json(&body)
        }
    }
}

async fn no_transaction_stays_open(store: &LeaseStore) {
    let Some(_) = store.postgres else { return };
    let mut connection = store.first_database().await;
    let open = "SELECT count(*) FROM pg_stat_activity \
        WHERE application_name = 'leasehold' AND state LIKE 'idle in transaction%'";
    eventually("no transaction stays open", async || {
        sqlx::query_scalar::<_, i64>(open)
            .fetch_one(&mut connection)
            .await
            .unwrap()
            == 0
    })
    .await;
}

on_every_store!(
    a_thousand_requests_cut_off_leave_every_connection_usable,
    |store| {
        // Trap 15: aborted at every stage; then each kind of call is answered at once, more often than there are connections.
        let server = store.serve().await;
        let lease = server.acquire("kept", "o", 60).await;
        for number in 0..REQUESTS {
            let sent = aside(request(&server, &lease, number).send());
            // The abort may hit any stage of a request.
            tokio::time::sleep(Duration::from_micros(u64::try_from(number % 40).unwrap() * 100)).await;
            sent.abort();
        }
        no_transaction_stays_open(store).await;
        for round in 0..10 {
            assert_eq!(server.renew(&lease).await.0, StatusCode::OK);
            assert_eq!(server.get("/v1/locks?limit=10").await.0, StatusCode::OK);
            assert_eq!(server.resource("kept").await["holder"]["ownerId"], "o");
            assert!(is_granted(&server.acquire(&format!("new{round}"), "o", 30).await));
        }
        eventually("an undelivered grant is free again", || async {
            let (_, page) = server.get("/v1/locks?prefix=r&limit=100").await;
            page["locks"].as_array().unwrap().is_empty()
        })
        .await;
        server.close().await;
    }
);
