//! Fencing tokens rise strictly per resource, across restarts, replicas and faults.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use ::lease::Ended;
use axum::http::StatusCode;
use domain::lease::Revocation;
use serde_json::json;
use tokio::sync::Mutex;

use super::lease_server::{LeaseStore, StoreKind, id, is_granted, on_both_stores, on_every_store, token};
use testkit::eventually;

fn revocation() -> Revocation {
    Revocation {
        by: "dana".into(),
        reason: "stuck since 02:00".into(),
        audit_id: "audit-7".into(),
    }
}

on_every_store!(
    the_token_rises_over_release_revocation_expiry_and_restart,
    |store| {
        // Traps 1, 3, 4, 7, 36: each end of a lease is followed by a grant with exactly the next token, also by a new process.
        let server = store.serve().await;
        let released = server.acquire("r", "w1", 30).await;
        server.delete(&released).await;
        let revoked = server.acquire("r", "w2", 30).await;
        let done = server
            .service
            .revoke(id(&revoked), revocation(), Duration::ZERO)
            .await
            .unwrap();
        assert!(matches!(done, Ended::Now(_)));
        let expired = server.acquire("r", "w3", 1).await;
        eventually("it ran out", || async {
            server.resource("r").await["holder"].is_null()
        })
        .await;
        server.close().await;
        let server = store.serve().await;
        let last = server.acquire("r", "w4", 30).await;
        assert_eq!([&released, &revoked, &expired, &last].map(token), [1, 2, 3, 4]);
        assert_eq!(server.resource("r").await["lastFencingToken"], 4);
        // No lease is held when the process ends, and the next process has no memory of them: only the counter is
        // left.
        server.delete(&last).await;
        server.close().await;
        let server = store.serve().await;
        assert_eq!(token(&server.acquire("r", "w5", 30).await), 5);
        server.close().await;
    }
);

on_every_store!(an_old_owner_cannot_touch_the_next_owners_lease, |store| {
    // Traps 18, 19: renew and release name the lease; the stale owner's calls change nothing, and a revoke does not
    // affect the next lease.
    let server = store.serve().await;
    let old = server.acquire("r", "same-worker", 1).await;
    eventually("it ran out", || async {
        server.resource("r").await["holder"].is_null()
    })
    .await;
    let new = server.acquire("r", "same-worker", 30).await;
    assert_eq!((token(&old), token(&new)), (1, 2));
    let (status, problem) = server.renew(&old).await;
    assert_eq!((status, &problem["code"]), (StatusCode::GONE, &json!("expired")));
    assert_eq!(
        server.delete(&old).await.1,
        json!({"released": false, "state": "expired"})
    );
    let done = server
        .service
        .revoke(id(&old), revocation(), Duration::ZERO)
        .await
        .unwrap();
    assert!(matches!(done, Ended::Before(_)));
    assert_eq!(server.renew(&new).await.0, StatusCode::OK);
    server.close().await;
});

on_both_stores!(one_holder_per_resource_and_rising_tokens, |store| {
    // Traps 2, 12: many clients on few resources, on Postgres through two replicas; a shared record of each client's
    // belief.
    let first = store.serve().await;
    let second = match store.postgres {
        Some(_) => Some(store.serve().await),
        None => None,
    };
    let bases = [
        first.base.clone(),
        second.as_ref().map_or(first.base.clone(), |it| it.base.clone()),
    ];
    let held: Arc<Mutex<HashMap<String, u64>>> = Arc::default();
    let highest: Arc<Mutex<HashMap<String, u64>>> = Arc::default();
    let client = |number: usize| {
        let (base, http) = (bases[number % 2].clone(), first.http.clone());
        let (held, highest) = (held.clone(), highest.clone());
        async move {
            let mut grants = 0;
            for round in 0..40 {
                let resource = format!("r{}", (number + round) % 3);
                let body = json!({"resource": resource, "ownerId": format!("w{number}"), "ttlSeconds": 30});
                let url = format!("{base}/v1/locks/acquire");
                let (status, lease) = crate::lease::lease_server::answer(http.post(url).json(&body)).await;
                assert_eq!(status, StatusCode::OK, "{lease}");
                if !is_granted(&lease) {
                    continue;
                }
                grants += 1;
                // Before the release is sent no other client can hold it.
                assert_eq!(
                    held.lock().await.insert(resource.clone(), token(&lease)),
                    None,
                    "two holders of {resource}"
                );
                let before = highest
                    .lock()
                    .await
                    .insert(resource.clone(), token(&lease))
                    .unwrap_or(0);
                assert!(
                    token(&lease) > before,
                    "{resource}: {before} then {}",
                    token(&lease)
                );
                held.lock().await.remove(&resource);
                let url = format!("{base}/v1/locks/{}", lease["leaseId"].as_str().unwrap());
                let released = crate::lease::lease_server::answer(http.delete(url)).await;
                assert_eq!(released, (StatusCode::OK, json!({"released": true})));
            }
            grants
        }
    };
    let grants: u64 = futures::future::join_all((0..16).map(client))
        .await
        .into_iter()
        .sum();
    let tokens: u64 = highest.lock().await.values().sum();
    assert_eq!(
        grants, tokens,
        "every grant has one token and every token one grant"
    );
    assert!(grants > 100, "{grants}");
    first.close().await;
    if let Some(second) = second {
        second.close().await;
    }
});

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_with_equal_hashes_are_different_locks() {
    // Trap 14: two names that Postgres' own 32-bit hash cannot tell apart are both granted, on both stores.
    use sqlx::Connection as _;
    let store = LeaseStore::new(StoreKind::Postgres).await;
    let mut connection = sqlx::PgConnection::connect(&store.url).await.unwrap();
    let pair: (String, String) = sqlx::query_as(
        "SELECT min(name), max(name) FROM (SELECT 'job:' || n AS name FROM generate_series(1, 300000) n) names
         GROUP BY hashtext(name) HAVING count(*) > 1 LIMIT 1",
    )
    .fetch_one(&mut connection)
    .await
    .unwrap();
    for store in [store, LeaseStore::new(StoreKind::Sqlite).await] {
        let server = store.serve().await;
        for name in [&pair.0, &pair.1] {
            assert!(is_granted(&server.acquire(name, "o", 30).await), "{name}");
        }
        server.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_granted_after_a_row_lock_wait_has_its_full_ttl() {
    // Trap 11: another session holds the row's lock for 0.8 s; the TTL of 10 s counts from then on, with 0.7 s for a busy machine.
    use sqlx::{Connection as _, Executor as _};
    let store = LeaseStore::new(StoreKind::Postgres).await;
    let server = store.serve().await;
    let first = server.acquire("r", "o", 30).await;
    server.delete(&first).await;
    let mut blocker = sqlx::PgConnection::connect(&store.url).await.unwrap();
    blocker
        .execute("BEGIN; SELECT FROM resource_tokens WHERE resource = 'r' FOR UPDATE")
        .await
        .unwrap();
    let waiting = server.acquire("r", "o", 10);
    let unblock = async {
        // The store delays the request: this time must not count as held.
        tokio::time::sleep(Duration::from_millis(800)).await;
        blocker.execute("COMMIT").await.unwrap();
    };
    let (lease, ()) = tokio::join!(waiting, unblock);
    assert!(lease["remainingMs"].as_i64().unwrap() > 9_300, "{lease}");
    // The answer counts from our own clock reading; the stored value has to agree.
    let left: i64 = sqlx::query_scalar(
        "SELECT l.expires_at - floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint
         FROM leases l JOIN resource_tokens t USING (lease_id) WHERE t.resource = 'r'",
    )
    .fetch_one(&mut blocker)
    .await
    .unwrap();
    assert!(left > 9_300, "{left} ms are left in the store");
    server.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_foreign_write_transaction_only_delays_a_grant() {
    // Trap 13: BEGIN IMMEDIATE waits for the other writer of the file; a deferred one would fail at once.
    use sqlx::{Connection as _, Executor as _};
    let store = LeaseStore::new(StoreKind::Sqlite).await;
    let server = store.serve().await;
    server.acquire("other", "o", 30).await;
    let mut blocker = sqlx::SqliteConnection::connect(&store.url).await.unwrap();
    blocker
        .execute("BEGIN IMMEDIATE; UPDATE store_meta SET epoch = epoch")
        .await
        .unwrap();
    let waiting = server.acquire("r", "o", 30);
    let unblock = async {
        // The store delays the request.
        tokio::time::sleep(Duration::from_millis(300)).await;
        blocker.execute("COMMIT").await.unwrap();
    };
    let (lease, ()) = tokio::join!(waiting, unblock);
    assert!(is_granted(&lease), "{lease}");
    server.close().await;
}

on_both_stores!(a_counter_at_its_end_stops_no_other_resource, |store| {
    // Its last token was granted. Acquires of other resources share its transaction.
    let server = store.serve().await;
    let worn = server.acquire("worn", "o", 60).await;
    server.delete(&worn).await;
    store
        .sql("UPDATE resource_tokens SET last_token = 9007199254740991 WHERE resource = 'worn'")
        .await;
    let names: Vec<String> = (0..200)
        .map(|number| match number {
            100 => "worn".to_owned(),
            other => format!("r{other}"),
        })
        .collect();
    let operations: Vec<_> = names
        .iter()
        .map(|name| json!({"acquire": {"resource": name, "ownerId": "o", "ttlSeconds": 60}}))
        .collect();
    let (status, body) = server
        .post("/v1/locks/batch", json!({"operations": operations}))
        .await;
    assert_eq!(status, StatusCode::OK, "{body}");
    for (name, result) in names.iter().zip(body["results"].as_array().unwrap()) {
        if name == "worn" {
            assert_eq!(result["problem"]["code"], "internal", "{result}");
        } else {
            assert!(is_granted(&result["acquire"]), "{name}: {result}");
        }
    }
    server.close().await;
});
