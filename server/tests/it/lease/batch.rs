//! `POST /v1/locks/batch`: each operation succeeds or fails by itself, results are in order, and a repeated call gives the
//! same leases.

use axum::http::StatusCode;
use domain::lease::limits::BATCH_OPERATIONS_MAX;
use serde_json::{Value, json};

use super::lease_server::{
    LeaseServer, LeaseStore, StoreKind, answer, aside, is_granted, on_both_stores, on_every_store,
};
use testkit::eventually;

fn acquire(resource: &str) -> Value {
    json!({"acquire": {"resource": resource, "ownerId": "o", "ttlSeconds": 60}})
}

fn by_id(kind: &str, lease: &Value) -> Value {
    json!({kind: {"leaseId": lease["leaseId"]}})
}

async fn batch(server: &LeaseServer, operations: &[Value]) -> (StatusCode, Value) {
    server
        .post("/v1/locks/batch", json!({"operations": operations}))
        .await
}

async fn results(server: &LeaseServer, operations: &[Value]) -> Vec<Value> {
    let (status, body) = batch(server, operations).await;
    assert_eq!(status, StatusCode::OK, "{body}");
    body["results"].as_array().unwrap().clone()
}

on_every_store!(operations_of_a_batch_succeed_or_fail_alone, |store| {
    let server = store.serve().await;
    let [held, kept, ended] = ["held", "kept", "ended"];
    let held = server.acquire(held, "o", 60).await;
    let kept = server.acquire(kept, "o", 60).await;
    let ended = server.acquire(ended, "o", 60).await;
    server.delete(&ended).await;
    let unknown = json!({"leaseId": "01980000-0000-7000-8000-000000000000"});
    let done = results(
        &server,
        &[
            acquire("new"),
            acquire("held"),
            by_id("renew", &kept),
            by_id("renew", &ended),
            by_id("release", &held),
            by_id("release", &unknown),
            acquire("leasehold/x"),
        ],
    )
    .await;
    assert_eq!(done.len(), 7, "{done:?}");
    assert!(is_granted(&done[0]["acquire"]), "{done:?}");
    assert_eq!(done[0]["acquire"]["fencingToken"], 1);
    // The order of operations is free: the lock is refused, or granted after the release of the same call.
    assert!(done[1]["acquire"]["acquired"].is_boolean(), "{done:?}");
    assert_eq!(done[2]["renew"]["leaseId"], kept["leaseId"]);
    assert_eq!(done[3]["problem"]["code"], "released");
    assert_eq!(done[3]["problem"]["status"], 410);
    assert_eq!(done[4]["release"], json!({"released": true}));
    assert_eq!(done[5]["problem"]["status"], 404);
    assert_eq!(done[6]["problem"]["code"], "reserved");
    let ids = done
        .iter()
        .filter_map(|result| result["problem"]["requestId"].as_str());
    assert!(
        ids.clone().count() == 3 && ids.into_iter().all(|id| !id.is_empty()),
        "{done:?}"
    );
    assert_eq!(server.resource("new").await["holder"]["ownerId"], "o");
    server.close().await;
});

on_both_stores!(a_full_batch_is_granted_once, |store| {
    // Repeated with its key: the same leases. With another key: none.
    let server = store.serve().await;
    let operations: Vec<_> = (0..BATCH_OPERATIONS_MAX)
        .map(|number| acquire(&format!("r/{number}")))
        .collect();
    let body = json!({"operations": operations});
    let call = |key: &'static str| {
        let request = server.http.post(format!("{}/v1/locks/batch", server.base));
        answer(request.header("Idempotency-Key", key).json(&body))
    };
    let ids = |body: &Value| -> Vec<Value> {
        let results = body["results"].as_array().unwrap();
        results
            .iter()
            .map(|result| result["acquire"]["leaseId"].clone())
            .collect()
    };
    let (first, again, other) = (call("a").await, call("a").await, call("b").await);
    assert_eq!(first.0, StatusCode::OK, "{}", first.1);
    let granted = ids(&first.1);
    assert_eq!(granted.len(), BATCH_OPERATIONS_MAX);
    assert!(granted.iter().all(Value::is_string), "{granted:?}");
    assert_eq!(ids(&again.1), granted);
    assert!(ids(&other.1).iter().all(Value::is_null));
    // Another request under the key of a position is refused, and only that one.
    let (_, changed) = answer(
        server
            .http
            .post(format!("{}/v1/locks/batch", server.base))
            .header("Idempotency-Key", "a")
            .json(&json!({"operations": [acquire("r/0"), acquire("other")]})),
    )
    .await;
    assert_eq!(changed["results"][0]["acquire"]["leaseId"], granted[0]);
    assert_eq!(changed["results"][1]["problem"]["status"], 409, "{changed}");
    server.close().await;
});

#[tokio::test]
async fn an_invalid_operation_stops_the_whole_batch() {
    // Every mistake is named by its position, and nothing is granted.
    let store = LeaseStore::new(StoreKind::Sqlite).await;
    let server = store.serve().await;
    let mut bad = acquire("b");
    bad["acquire"]["ttlSeconds"] = json!(0);
    bad["acquire"]["ownerId"] = json!("");
    let twice = [
        acquire("a"),
        bad,
        acquire("a"),
        json!({"renew": {"leaseId": "x"}}),
    ];
    let (status, problem) = batch(&server, &twice).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    let fields: Vec<_> = problem["errors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|error| error["field"].as_str().unwrap())
        .collect();
    assert_eq!(
        fields,
        [
            "operations[1].acquire.ownerId",
            "operations[1].acquire.ttlSeconds",
            "operations[2].acquire.resource",
            "operations[3].renew.leaseId",
        ],
        "{problem}"
    );
    assert_eq!(server.resource("a").await["lastFencingToken"], 0);
    for (operations, field) in [
        (json!([]), "operations"),
        (json!(vec![acquire("a"); BATCH_OPERATIONS_MAX + 1]), "operations"),
        (
            json!([{"acquire": {"resource": "a", "ownerId": "o", "ttlSeconds": 1, "waitSeconds": 1}}]),
            "operations[0].acquire.waitSeconds",
        ),
    ] {
        let (status, problem) = server
            .post("/v1/locks/batch", json!({"operations": operations}))
            .await;
        assert_eq!(
            (status, problem["field"].as_str()),
            (StatusCode::BAD_REQUEST, Some(field)),
            "{problem}"
        );
    }
    server.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_grant_of_an_abandoned_batch_is_released() {
    // The client disconnects while a renewal of its call waits for a row lock: no answer has shown it the other lease.
    let store = LeaseStore::new(StoreKind::Postgres).await;
    let server = store.serve().await;
    let locked = server.acquire("locked", "o", 600).await;
    let metrics = server.service.metrics();
    let mut database = store.first_database().await;
    let mut is_released = false;
    // On a slow machine the renewal may be answered before the server notices the disconnection, which proves nothing.
    for number in 0..5 {
        let resource = format!("r{number}");
        let (granted, failed) = (metrics.granted.read(), metrics.failed_batches.read());
        let mut lock = sqlx::Connection::begin(&mut database).await.unwrap();
        sqlx::raw_sql("SELECT FROM resource_tokens WHERE resource = 'locked' FOR UPDATE")
            .execute(&mut *lock)
            .await
            .unwrap();
        let body = json!({"operations": [acquire(&resource), by_id("renew", &locked)]});
        let request = server.http.post(format!("{}/v1/locks/batch", server.base));
        let call = aside(request.json(&body).send());
        eventually("the lock is granted", async || {
            metrics.granted.read() > granted && server.resource(&resource).await["holder"].is_object()
        })
        .await;
        call.abort();
        eventually("the lock is released, or the renewal answered", async || {
            is_released = server.resource(&resource).await["holder"].is_null();
            is_released || metrics.failed_batches.read() > failed
        })
        .await;
        lock.rollback().await.unwrap();
        if is_released {
            break;
        }
    }
    assert!(is_released, "each grant stayed held");
    server.close().await;
}
