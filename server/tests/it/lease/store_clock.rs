//! The store's time where the clocks of machines disagree: over a restart, and between servers.

use std::time::Duration;

use ::lease::operation::Operation;
use ::lease::store::Lane;
use axum::http::StatusCode;
use domain::names::Resource;
use runtime::clock::Clock;
use serde_json::json;

use super::lease_server::{LeaseServer, LeaseStore, StoreKind, answer, is_granted};
use super::model::RETENTION;
use super::retention::count;

/// Longer than any retention.
const STEP_MS: i64 = 7 * 86_400_000;

/// An acquire with an idempotency key.
async fn acquire_keyed(server: &LeaseServer, resource: &str, key: &str) -> serde_json::Value {
    let body = json!({"resource": resource, "ownerId": "w1", "ttlSeconds": 600});
    let request = server.http.post(format!("{}/v1/locks/acquire", server.base));
    let (status, lease) = answer(request.header("idempotency-key", key).json(&body)).await;
    assert_eq!(status, StatusCode::OK, "{lease}");
    lease
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_after_a_step_of_the_wall_clock_ends_no_lease() {
    // Trap 33: the wall clock was set an hour ahead while the server ran, so the file's time is an hour behind.
    let store = LeaseStore::new(StoreKind::Sqlite).await;
    let server = store.serve().await;
    let held = acquire_keyed(&server, "held", "k").await;
    let expired = server.acquire("expired", "w1", 600).await;
    server.close().await;
    store
        .sql(
            "UPDATE leases SET acquired_at = acquired_at - 3600000, expires_at = expires_at - 3600000,
                renewed_at = renewed_at - 3600000;
             UPDATE leases SET expires_at = acquired_at WHERE resource = 'expired';
             UPDATE idempotency_keys SET created_at = created_at - 3600000;
             UPDATE store_meta SET clock_ms = clock_ms - 3600000, clock_behind_ms = 3600000",
        )
        .await;
    for restart in 1..=2 {
        let server = store.serve().await;
        let left_ms = server.resource("held").await["holder"]["remainingMs"].as_i64();
        assert!(
            left_ms.is_some_and(|ms| (1..=600_000).contains(&ms)),
            "restart {restart}: {left_ms:?}"
        );
        // The key is within its window as well.
        assert_eq!(
            acquire_keyed(&server, "held", "k").await["leaseId"],
            held["leaseId"]
        );
        assert_eq!(server.renew(&held).await.0, StatusCode::OK, "restart {restart}");
        assert_eq!(server.renew(&expired).await.0, StatusCode::GONE);
        server.close().await;
    }
    let server = store.serve().await;
    server.delete(&held).await;
    assert!(is_granted(&server.acquire("held", "w2", 600).await));
    server.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_step_keeps_the_ended_lease_that_a_key_answers_with() {
    let lease_store = LeaseStore::new(StoreKind::Sqlite).await;
    let server = lease_store.serve().await;
    for lease in [
        acquire_keyed(&server, "keyed", "k1").await,
        server.acquire("unkeyed", "w1", 600).await,
    ] {
        server.delete(&lease).await;
    }
    // Expires while no server runs.
    acquire_keyed(&server, "expired", "k2").await;
    server.close().await;
    lease_store
        .sql(&format!(
            "UPDATE leases SET acquired_at = acquired_at - {STEP_MS}, expires_at = expires_at - {STEP_MS},
                renewed_at = renewed_at - {STEP_MS}, ended_at = ended_at - {STEP_MS},
                lease_id = '00000000-0001-7000-8000-00000000000' || instr('expired keyed', resource);
             UPDATE leases SET expires_at = acquired_at WHERE resource = 'expired';
             UPDATE resource_tokens SET lease_id = (SELECT lease_id FROM leases WHERE leases.resource = resource_tokens.resource);
             UPDATE idempotency_keys SET created_at = created_at - {STEP_MS},
                lease_id = (SELECT lease_id FROM leases WHERE resource = CASE key WHEN 'k1' THEN 'keyed' ELSE 'expired' END);
             UPDATE store_meta SET clock_ms = clock_ms - {STEP_MS}, clock_behind_ms = {STEP_MS}"
        ))
        .await;
    let store = lease_store.open(&Clock::start()).await;
    let expire = Operation::Expire {
        resource: Resource::from("expired"),
    };
    store.apply(Lane::Main, &[expire]).await.unwrap();
    // Ids of leases contain the time of their creation. A range is read ahead by one run and deleted by the next.
    for _ in 0..3 {
        store.run_maintenance(&RETENTION).await.unwrap();
    }
    store.close().await;
    let kept =
        async |resource: &str| count(&lease_store, &format!("leases WHERE resource = '{resource}'")).await;
    assert_eq!(
        [kept("keyed").await, kept("expired").await, kept("unkeyed").await],
        [1, 1, 0]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_corrected_clock_of_postgres_deletes_no_key() {
    // Its clock was set back, which is made up for by a shift; once it is corrected, the first reading is an hour ahead.
    let lease_store = LeaseStore::new(StoreKind::Postgres).await;
    let store = lease_store.open(&Clock::start()).await;
    lease_store
        .sql(
            "INSERT INTO idempotency_keys (issuer, key, fingerprint, is_claimed, created_at)
             VALUES ('t', 'k', 'f', true, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)",
        )
        .await;
    store.run_maintenance(&RETENTION).await.unwrap();
    lease_store
        .sql("UPDATE store_meta SET clock_offset_ms = 3600000")
        .await;
    store.run_maintenance(&RETENTION).await.unwrap();
    // The time continues to within a millisecond or two of its readings.
    let corrected = count(&lease_store, "store_meta WHERE clock_offset_ms < 1000").await;
    assert_eq!((corrected, count(&lease_store, "idempotency_keys").await), (1, 1));
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_suspended_server_does_not_set_the_store_time_back() {
    // The clock of Postgres is shifted. One of two servers is suspended for ten minutes: to it, the store's time steps ahead as if
    // the clock had been corrected.
    let lease_store = LeaseStore::new(StoreKind::Postgres).await;
    let clock = Clock::start();
    let (awake, suspended) = (
        lease_store.open(&clock).await,
        lease_store.open(&Clock::start()).await,
    );
    lease_store
        .sql("UPDATE store_meta SET clock_offset_ms = 5000000")
        .await;
    for store in [&awake, &suspended] {
        store.run_maintenance(&RETENTION).await.unwrap();
    }
    clock.advance(Duration::from_secs(600));
    lease_store
        .sql("UPDATE store_meta SET clock_offset_ms = clock_offset_ms + 600000")
        .await;
    for store in [&awake, &suspended] {
        store.run_maintenance(&RETENTION).await.unwrap();
    }
    let unchanged = "store_meta WHERE clock_offset_ms = 5600000";
    assert_eq!(count(&lease_store, unchanged).await, 1);
    for store in [awake, suspended] {
        store.close().await;
    }
}
