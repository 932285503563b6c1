//! Ended leases, idempotency keys and fencing rejections are deleted after their retention, and no lease that has not ended.

use std::time::Duration;

use axum::http::StatusCode;
use serde_json::json;
use sqlx::{AssertSqlSafe, Connection as _, PgConnection, SqliteConnection};

use super::lease_server::{LeaseServer, LeaseStore, StoreKind, answer, is_granted, on_both_stores};
use testkit::within;

/// More than the oldest version could delete within `LIMIT`, on either store.
const ROWS: u32 = 60_000;
const LIMIT: Duration = Duration::from_secs(40);

/// Leases of other resources, created and ended long ago. Ids are `id(1)` and so on.
fn ended_long_ago(store: &LeaseStore, how: &str) -> String {
    let digits = if store.postgres.is_some() {
        "lpad(i::text, 12, '0')"
    } else {
        "printf('%012d', i)"
    };
    format!(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {ROWS})
         INSERT INTO leases (lease_id, resource, owner_id, issuer, fencing_token, ttl_seconds, metadata, acquired_at,
             expires_at, renewed_at, renewals, ended_at, ended_how)
         SELECT '00000000-0001-7000-8000-' || {digits}, 'old', 'o', '', 1, 60, '{{}}', 1, 60001, 1, 0, 2, '{how}'
         FROM n"
    )
}

fn id(digit: u8) -> String {
    format!("00000000-0001-7000-8000-00000000000{digit}")
}

pub(super) async fn count(store: &LeaseStore, of: &str) -> i64 {
    let query = AssertSqlSafe(format!("SELECT count(*) FROM {of}"));
    if store.postgres.is_some() {
        let mut connection = PgConnection::connect(&store.url).await.unwrap();
        return sqlx::query_scalar(query)
            .fetch_one(&mut connection)
            .await
            .unwrap();
    }
    let mut connection = SqliteConnection::connect(&store.url).await.unwrap();
    sqlx::query_scalar(query)
        .fetch_one(&mut connection)
        .await
        .unwrap()
}

/// Makes the lease of a resource one that was created in 1970, and ended `ago` milliseconds before now, if it has ended.
async fn age(store: &LeaseStore, resource: &str, id: &str, ago_ms: i64) {
    store
        .sql(&format!(
        "UPDATE leases SET lease_id = '{id}', ended_at = ended_at - {ago_ms} WHERE resource = '{resource}';
         UPDATE resource_tokens SET lease_id = '{id}' WHERE resource = '{resource}'"
    ))
        .await;
}

async fn status(server: &LeaseServer, id: &str) -> StatusCode {
    server.get(&format!("/v1/locks/{id}")).await.0
}

on_both_stores!(only_ended_leases_are_deleted, |store| {
    // Trap 30. Ended an hour and a second ago: deleted after a release, known after a forced unlock. A live lease stays
    // however old it is.
    let server = store.serve().await;
    for name in ["live", "revoked", "released"] {
        let lease = server.acquire(name, "o", 60).await;
        if name != "live" {
            server.delete(&lease).await;
        }
    }
    server.close().await;
    let hour_ms = 3_601_000;
    for (digit, name) in (1..).zip(["live", "revoked", "released"]) {
        age(store, name, &id(digit), hour_ms).await;
    }
    store
        .sql(
            "UPDATE leases SET ended_how = 'revoked', revoked_by = 'a', revoke_reason = 'b', audit_id = 'c'
         WHERE resource = 'revoked'",
        )
        .await;
    // A restart begins at the oldest lease; the released one is the last of the three.
    let server = store.serve().await;
    within(LIMIT, "the released lease is deleted", || async {
        status(&server, &id(3)).await == StatusCode::NOT_FOUND
    })
    .await;
    assert_ne!(status(&server, &id(2)).await, StatusCode::NOT_FOUND);
    assert_eq!(
        server.get(&format!("/v1/locks/{}", id(1))).await.1["state"],
        "held"
    );
    assert!(!is_granted(&server.acquire("live", "p", 1).await));
    assert_eq!(server.resource("released").await["lastFencingToken"], 1);
    server.close().await;
});

on_both_stores!(deletion_follows_the_pace_of_leases, |store| {
    let server = store.serve().await;
    store.sql(&ended_long_ago(store, "expired")).await;
    assert!(count(store, "leases").await >= i64::from(ROWS) / 2);
    // While leases come and go, and afterwards.
    for number in 0..200 {
        let lease = server.acquire(&format!("r/{number}"), "o", 60).await;
        assert!(is_granted(&lease), "{lease}");
        if number % 2 == 0 {
            server.delete(&lease).await;
        }
    }
    within(LIMIT, "all old leases are deleted", || async {
        count(store, "leases WHERE resource = 'old'").await == 0
    })
    .await;
    assert_eq!(count(store, "leases WHERE ended_at IS NULL").await, 100);
    assert_eq!(count(store, "leases").await, 200);
    server.close().await;
});

on_both_stores!(idempotency_keys_are_deleted_after_their_window, |store| {
    let server = store.serve().await;
    let acquire = |key: &str| {
        let body = json!({"resource": format!("r/{key}"), "ownerId": "o", "ttlSeconds": 60});
        let request = server.http.post(format!("{}/v1/locks/acquire", server.base));
        answer(request.header("Idempotency-Key", key).json(&body))
    };
    for key in ["past", "present"] {
        assert_eq!(acquire(key).await.0, StatusCode::OK);
    }
    store
        .sql("UPDATE idempotency_keys SET created_at = created_at - 600001 WHERE key = 'past'")
        .await;
    within(LIMIT, "the key past its window is deleted", || async {
        count(store, "idempotency_keys WHERE key = 'past'").await == 0
    })
    .await;
    assert_eq!(count(store, "idempotency_keys").await, 1);
    server.close().await;
});

on_both_stores!(fencing_rejections_are_deleted_after_30_days, |store| {
    let server = store.serve().await;
    // More than one step deletes, recorded in 1970, and one that is new.
    store
        .sql(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)
             INSERT INTO fencing_rejections (resource, fencing_token, source, reason, at, recorded_at)
             SELECT 'old', 1, 's', 'stale', i, i FROM n",
        )
        .await;
    let rejection = json!({"resource": "new", "fencingToken": 1, "source": "db"});
    let (status, answer) = server.post("/v1/fencing/rejections", rejection).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{answer}");
    assert_eq!(count(store, "fencing_rejections WHERE resource = 'new'").await, 1);
    within(LIMIT, "all old rejections are deleted", || async {
        count(store, "fencing_rejections WHERE resource = 'old'").await == 0
    })
    .await;
    assert_eq!(count(store, "fencing_rejections").await, 1);
    server.close().await;
});
