//! Answers that come later than the lease lives.

use std::time::Duration;

use axum::http::StatusCode;
use serde_json::json;

use super::stage::{Home, Kind, Stage, aside};
use crate::support::proxy::{Link, Proxy};

/// Each write to `leases` makes its COMMIT take longer than a lease of 1 s lives, and less than an outage takes.
const SLOW_COMMIT: &str = "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN PERFORM pg_sleep(1.2); RETURN NULL; END $$;
    CREATE CONSTRAINT TRIGGER slow AFTER INSERT OR UPDATE ON leases DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW WHEN (NEW.resource LIKE 'slow%' AND NEW.ended_at IS NULL) EXECUTE FUNCTION slow()";

async fn kept(home: &Home, resource: &str) -> i64 {
    use sqlx::Connection as _;
    let mut connection = sqlx::PgConnection::connect(&home.url).await.unwrap();
    let query = sqlx::query_scalar("SELECT count(*) FROM leases WHERE resource = $1").bind(resource);
    query.fetch_one(&mut connection).await.unwrap()
}

async fn acquire(stage: &Stage, resource: &str, wait: i64) -> (StatusCode, serde_json::Value) {
    let body = json!({"resource": resource, "ownerId": "o", "ttlSeconds": 1, "waitSeconds": wait});
    stage.post("/v1/locks/acquire", body).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_that_died_before_its_answer_is_not_reported_as_acquired() {
    // Trap 21: committed, and dead before the commit was confirmed: 503 and no grant, at once and for who waits in line.
    let home = Home::new(Kind::Postgres).await;
    let stage = home.serve().await;
    home.sql(SLOW_COMMIT).await;
    for wait in [0, 5] {
        let mut committed = 0;
        // On a busy machine the store may take too long altogether, which proves nothing.
        for number in 0..5 {
            let resource = format!("slow:{wait}:{number}");
            let (status, answer) = acquire(&stage, &resource, wait).await;
            assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{answer}");
            committed += kept(&home, &resource).await;
            if committed > 0 {
                break;
            }
        }
        assert!(committed > 0, "no lease was ever committed late");
    }
    stage.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_renewal_that_is_over_before_its_answer_is_not_reported_as_renewed() {
    // Traps 20, 21: the renewal is kept, but what it prolonged to is past when we hear of it.
    let home = Home::new(Kind::Postgres).await;
    let stage = home.serve().await;
    let lease = stage.acquire("slow:r", "o", 30).await;
    home.sql(SLOW_COMMIT).await;
    let path = format!("/v1/locks/{}/renew", lease["leaseId"].as_str().unwrap());
    let (status, answer) = stage.post(&path, json!({"ttlSeconds": 1})).await;
    assert!(
        status == StatusCode::GONE || status == StatusCode::SERVICE_UNAVAILABLE,
        "{answer}"
    );
    stage.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reading_that_became_too_old_is_taken_again() {
    // The store's answer to one server is held for longer than the lease had left; the lease is renewed through another.
    let home = Home::new(Kind::Postgres).await;
    let proxy = Proxy::start(home.postgres.as_ref().unwrap().port()).await;
    let near = home.serve().await;
    let mut far = url::Url::parse(&home.url).unwrap();
    far.set_port(Some(proxy.port())).unwrap();
    let far = super::stage::serve_at(far.as_str()).await;
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
        crate::support::eventually::eventually("it asks", || async { proxy.traffic().bytes().0 > bytes })
            .await;
        // Read by now; then it is renewed, and what was left at the reading passes.
        tokio::time::sleep(Duration::from_millis(200)).await;
        let path = format!("/v1/locks/{}/renew", lease["leaseId"].as_str().unwrap());
        assert_eq!(
            near.post(&path, json!({"ttlSeconds": 60})).await.0,
            StatusCode::OK
        );
        tokio::time::sleep(Duration::from_millis(900)).await;
        proxy.set(Link::Pass).await;
        let [resource, lease] = looks;
        let told = [resource.await.unwrap().unwrap(), lease.await.unwrap().unwrap()];
        // A busy machine may take too long altogether, which is told as such.
        if told.iter().all(|answer| answer.status() == 200) {
            let [resource, lease] = told;
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
