//! Answers that come later than the lease lives.

use std::time::Duration;

use axum::http::StatusCode;
use serde_json::json;

use super::lease_server::{LeaseServer, LeaseStore, StoreKind, aside};
use crate::support::proxy::{Link, Proxy};

/// Each write to `leases` makes its COMMIT take longer than a TTL of 1 s, and less than an outage.
const SLOW_COMMIT: &str = "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN PERFORM pg_sleep(1.2); RETURN NULL; END $$;
    CREATE CONSTRAINT TRIGGER slow AFTER INSERT OR UPDATE ON leases DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW WHEN (NEW.resource LIKE 'slow%' AND NEW.ended_at IS NULL) EXECUTE FUNCTION slow()";

async fn kept(store: &LeaseStore, resource: &str) -> i64 {
    use sqlx::Connection as _;
    let mut connection = sqlx::PgConnection::connect(&store.url).await.unwrap();
    let query = sqlx::query_scalar("SELECT count(*) FROM leases WHERE resource = $1").bind(resource);
    query.fetch_one(&mut connection).await.unwrap()
}

async fn acquire(server: &LeaseServer, resource: &str, wait: i64) -> (StatusCode, serde_json::Value) {
    let body = json!({"resource": resource, "ownerId": "o", "ttlSeconds": 1, "waitSeconds": wait});
    server.post("/v1/locks/acquire", body).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_expired_before_its_response_is_not_acquired() {
    // Trap 21: committed, and expired before the commit was confirmed: 503 and no grant, both at once and for a
    // waiter.
    let store = LeaseStore::new(StoreKind::Postgres).await;
    let server = store.serve().await;
    store.sql(SLOW_COMMIT).await;
    for wait in [0, 5] {
        let mut committed = 0;
        // On a slow machine the store may exceed the outage limit, which proves nothing.
        for number in 0..5 {
            let resource = format!("slow:{wait}:{number}");
            let (status, answer) = acquire(&server, &resource, wait).await;
            assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{answer}");
            committed += kept(&store, &resource).await;
            if committed > 0 {
                break;
            }
        }
        assert!(committed > 0, "no lease was ever committed late");
    }
    server.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_grant_committed_after_its_answer_is_released() {
    // The commit takes longer than the answer may: 503, and a lease of ten minutes that no client has appears afterwards.
    let store = LeaseStore::new(StoreKind::Postgres).await;
    let server = store.serve().await;
    store.sql(&SLOW_COMMIT.replace("1.2", "2.5")).await;
    let body = json!({"resource": "slow", "ownerId": "o", "ttlSeconds": 600});
    let (status, answer) = server.post("/v1/locks/acquire", body).await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{answer}");
    testkit::eventually("it is committed", || async { kept(&store, "slow").await == 1 }).await;
    testkit::eventually("it is released", || async {
        server.resource("slow").await["holder"].is_null()
    })
    .await;
    server.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_renewal_expired_before_its_response_is_not_renewed() {
    // Traps 20, 21: the renewal is stored, but its new expiry is past when the answer arrives.
    let store = LeaseStore::new(StoreKind::Postgres).await;
    let server = store.serve().await;
    let lease = server.acquire("slow:r", "o", 30).await;
    store.sql(SLOW_COMMIT).await;
    let path = format!("/v1/locks/{}/renew", lease["leaseId"].as_str().unwrap());
    let (status, answer) = server.post(&path, json!({"ttlSeconds": 1})).await;
    assert!(
        status == StatusCode::GONE || status == StatusCode::SERVICE_UNAVAILABLE,
        "{answer}"
    );
    server.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_outdated_reading_is_repeated() {
    // The store's answer to one server is held for longer than the lease had left; the lease is renewed through another.
    let store = LeaseStore::new(StoreKind::Postgres).await;
    let proxy = Proxy::start(store.postgres.as_ref().unwrap().port()).await;
    let near = store.serve().await;
    let mut far = url::Url::parse(&store.url).unwrap();
    far.set_port(Some(proxy.port())).unwrap();
    let far = super::lease_server::serve_at(far.as_str()).await;
    let mut answered = 0;
    for number in 0..5 {
        let resource = format!("r{number}");
        let lease = near.acquire(&resource, "o", 1).await;
        far.resource("warm").await;
        proxy.set(Link::OnlyToServer).await;
        let bytes = proxy.traffic().bytes().0;
        let look = |path: String| aside(far.http.get(format!("{}{path}", far.base)).send());
        let looks = [
            look(format!("/v1/resources/{resource}")),
            look(format!("/v1/locks/{}", lease["leaseId"].as_str().unwrap())),
        ];
        testkit::eventually("it asks", || async { proxy.traffic().bytes().0 > bytes }).await;
        // The row has been read; then the lease is renewed, and the time left at the read passes.
        tokio::time::sleep(Duration::from_millis(200)).await;
        let path = format!("/v1/locks/{}/renew", lease["leaseId"].as_str().unwrap());
        assert_eq!(
            near.post(&path, json!({"ttlSeconds": 60})).await.0,
            StatusCode::OK
        );
        // The time left at the read passes on the real server.
        tokio::time::sleep(Duration::from_millis(900)).await;
        proxy.set(Link::Pass).await;
        let [resource, lease] = looks;
        let replies = [resource.await.unwrap().unwrap(), lease.await.unwrap().unwrap()];
        // A slow machine may exceed the limit, which is reported as such.
        if replies.iter().all(|answer| answer.status() == 200) {
            let [resource, lease] = replies;
            let resource: serde_json::Value = resource.json().await.unwrap();
            let lease: serde_json::Value = lease.json().await.unwrap();
            assert_eq!(resource["holder"]["ownerId"], "o", "{resource}");
            assert_eq!(lease["state"], "held", "{lease}");
            answered += 1;
            break;
        }
    }
    assert!(answered > 0, "no reading was answered late");
    near.close().await;
    far.close().await;
}
