//! Versions N and N+1 on one store: additions of a newer version are ignored, while running and at start; after a
//! removal the older version refuses to start.

use ::lease::{LeaseConfig, LeaseOpenError, LeaseService};
use axum::http::StatusCode;
use runtime::clock::Clock;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::lease_server::{LeaseStore, StoreKind, on_both_stores};

/// As the next version would: a column in each table of leases, a table of its own, and the note that it was done.
async fn migrated_by_the_next_version(store: &LeaseStore, description: &str) {
    for table in [
        "leases",
        "resource_tokens",
        "lease_waiters",
        "store_meta",
        "fencing_rejections",
    ] {
        store
            .sql(&format!("ALTER TABLE {table} ADD COLUMN of_next_version text"))
            .await;
    }
    store
        .sql("CREATE TABLE of_next_version (id bigint PRIMARY KEY)")
        .await;
    noted(store, 9_001, description).await;
}

async fn noted(store: &LeaseStore, version: i64, description: &str) {
    let nothing = if store.postgres.is_some() {
        "''::bytea"
    } else {
        "x''"
    };
    store
        .sql(&format!(
        "INSERT INTO _sqlx_migrations (version, description, installed_on, success, checksum, execution_time)
         VALUES ({version}, '{description}', CURRENT_TIMESTAMP, true, {nothing}, 0)"
    ))
        .await;
}

on_both_stores!(additions_of_a_newer_version_are_ignored, |store| {
    // Migrated under a running server, which continues; then this version starts on it, as after a rollback.
    let server = store.serve().await;
    let lease = server.acquire("r", "o", 60).await;
    if store.postgres.is_some() {
        migrated_by_the_next_version(store, "add columns").await;
        assert_eq!(server.renew(&lease).await.0, StatusCode::OK);
        assert_eq!(server.acquire("r2", "o", 60).await["acquired"], true);
    }
    server.close().await;
    if store.postgres.is_none() {
        migrated_by_the_next_version(store, "add columns").await;
    }
    let server = store.serve().await;
    assert_eq!(server.renew(&lease).await.0, StatusCode::OK);
    let next = server.acquire("r3", "o", 60).await;
    assert_eq!(next["acquired"], true);
    let check = json!({"resource": "r", "fencingToken": 1});
    assert_eq!(server.post("/v1/fencing/check", check).await.0, StatusCode::OK);
    assert!(server.delete(&next).await.0.is_success());
    server.close().await;
});

on_both_stores!(a_contracted_schema_refuses_the_start, |store| {
    // An unknown migration of kind contract: refused, and named.
    store.serve().await.close().await;
    noted(store, 9_001, "contract drop the old column").await;
    let open = LeaseService::open(
        &store.url,
        LeaseConfig::default(),
        Clock::start(),
        CancellationToken::new(),
    );
    let error = match open.await {
        Err(error @ LeaseOpenError::Migration(_)) => format!("{:#}", anyhow::Error::from(error)),
        other => panic!("{:?}", other.map(drop)),
    };
    assert!(
        error.contains("migration 9001") && error.contains("start that version again"),
        "{error}"
    );
});
