//! Two servers on one Postgres: the one that evaluates alert rules is paused, wakes, is killed; and both are, for a while.

use std::time::Duration;

use ::testkit::{PostgresOptions, Throwaway};
use rustix::process::Signal;
use serde_json::{Value, json};
use sqlx::PgPool;

use super::running_server::Running;
use testkit::{eventually, within};

/// As documented in docs/alerts.md: delay until another server evaluates after the last one has stopped.
/// Documented are 10 s; the rest is for a machine on which other tests run.
pub(super) const TAKEOVER: Duration = Duration::from_secs(30);
/// Without a server for longer, history has a gap.
const GAP: Duration = Duration::from_secs(16);

async fn acquire(server: &Running, name: &str) -> Value {
    let body = json!({"resource": name, "ownerId": "w", "ttlSeconds": 600});
    let (status, lease) = server.post("/v1/locks/acquire", &body).await;
    assert_eq!(status, 200, "{lease}");
    lease
}

/// Held for longer than 3 s.
fn rule() -> Value {
    json!({
        "id": "held", "name": "Held", "condition": "long_held", "prefix": "held", "anyPrefix": true,
        "severity": "warning", "with": {"longer_than": "3s", "times_p95": ""}
    })
}

async fn fires(server: &Running, resource: &str) -> bool {
    let alerts = server.json("/v1/alerts").await;
    let all = alerts["alerts"].as_array().unwrap();
    all.iter().any(|alert| {
        alert["rule"] == "held" && alert["state"] == "firing" && alert["labels"]["resource"] == resource
    })
}

/// When each alert of the rule fired, over or not, in milliseconds.
async fn fired(pool: &PgPool) -> Vec<i64> {
    let select =
        "SELECT coalesce(fired_at, (body::jsonb #>> '{phase,firing,fired_at}')::bigint) AS at FROM alerts
        WHERE rule_id = 'held' ORDER BY at";
    sqlx::query_scalar(select).fetch_all(pool).await.unwrap()
}

async fn evaluated_at(pool: &PgPool) -> i64 {
    let select = "SELECT coalesce(evaluated_at, 0) FROM alert_evaluator";
    sqlx::query_scalar(select).fetch_one(pool).await.unwrap()
}

pub(super) async fn token(pool: &PgPool) -> i64 {
    let select = "SELECT fencing_token FROM alert_evaluator";
    sqlx::query_scalar(select).fetch_one(pool).await.unwrap()
}

/// The preview of the rule: when it would have fired, and its gaps.
async fn previewed(server: &Running) -> (Vec<i64>, u64) {
    let (status, preview) = server.post("/v1/rules/preview", &rule()).await;
    assert_eq!(status, 200, "{preview}");
    let at = preview["atMs"].as_array().unwrap().iter();
    (
        at.map(|at| at.as_i64().unwrap()).collect(),
        preview["gaps"].as_u64().unwrap(),
    )
}

/// Another server evaluates than the one with this token.
pub(super) async fn taken_over(pool: &PgPool, before: i64) {
    within(TAKEOVER, "another server evaluates", async || {
        token(pool).await > before && evaluated_at(pool).await > 0
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn alerts_and_preview_agree_over_an_evaluator_outage() {
    let postgres = Throwaway::postgres(PostgresOptions::default()).await.unwrap();
    let mut first = Running::on(postgres.superuser_url(), "").await;
    let pool = PgPool::connect(&postgres.superuser_url()).await.unwrap();
    let put = first.http.put(first.url("/v1/rules")).json(&rule()).send().await;
    let put = put.unwrap();
    assert_eq!(put.status(), 200, "{:?}", put.text().await);
    eventually("the first server evaluates", async || {
        evaluated_at(&pool).await > 0
    })
    .await;
    let mut second = first.another().await;
    let one = acquire(&first, "held/1").await;
    eventually("the first hold fires", async || fires(&second, "held/1").await).await;

    // Paused: the other one evaluates, and an alert that resolves meanwhile resolves once.
    let before = token(&pool).await;
    first.signal(Signal::STOP);
    acquire(&second, "held/2").await;
    taken_over(&pool, before).await;
    eventually("the second hold fires", async || fires(&second, "held/2").await).await;
    let lease = second.url(&format!("/v1/locks/{}", one["leaseId"].as_str().unwrap()));
    let released = second.http.delete(lease).send().await.unwrap();
    assert!(released.status().is_success(), "{}", released.status());
    eventually("the first alert ends", async || !fires(&second, "held/1").await).await;

    // It wakes with its earlier state, and changes nothing.
    first.signal(Signal::CONT);
    acquire(&first, "held/3").await;
    eventually("the third hold fires", async || fires(&first, "held/3").await).await;
    assert_eq!(fired(&pool).await.len(), 3);
    assert!(!fires(&first, "held/1").await);

    // Killed: the first one evaluates again.
    let before = token(&pool).await;
    second.signal(Signal::KILL);
    second.exit().await;
    taken_over(&pool, before).await;
    acquire(&first, "held/4").await;
    eventually("the fourth hold fires", async || fires(&first, "held/4").await).await;
    assert_eq!(fired(&pool).await.len(), 4);
    let (at, _) = previewed(&first).await;
    agree(&fired(&pool).await, &at);

    // Both gone for long enough to leave a gap, while a lock is held over its threshold.
    acquire(&first, "held/5").await;
    eventually("it is in history", async || in_history(&pool, "held/5").await).await;
    first.signal(Signal::KILL);
    first.exit().await;
    // Both servers are gone for longer than a gap in history is long.
    tokio::time::sleep(GAP).await;
    first.again().await;
    eventually("the fifth hold fires", async || fires(&first, "held/5").await).await;
    eventually("the gap is recorded", async || gaps(&pool).await == 1).await;
    let (at, gaps) = previewed(&first).await;
    assert_eq!((fired(&pool).await.len(), gaps), (5, 1));
    agree(&fired(&pool).await, &at);
}

async fn gaps(pool: &PgPool) -> i64 {
    let select = "SELECT count(*) FROM history_gaps WHERE backend IS NULL";
    sqlx::query_scalar(select).fetch_one(pool).await.unwrap()
}

async fn in_history(pool: &PgPool, name: &str) -> bool {
    let select = "SELECT count(*) FROM lock_events WHERE resource = $1";
    let rows: i64 = sqlx::query_scalar(select)
        .bind(name.as_bytes())
        .fetch_one(pool)
        .await
        .unwrap();
    rows > 0
}

/// As many firings, each of them at the same second or, where the evaluator was away, before it came back.
fn agree(live: &[i64], previewed: &[i64]) {
    assert_eq!(live.len(), previewed.len(), "{live:?} {previewed:?}");
    let late = i64::try_from((TAKEOVER + GAP).as_millis()).unwrap();
    for (live, previewed) in live.iter().zip(previewed) {
        assert!(
            (-1_000..=late).contains(&(live - previewed)),
            "{live} {previewed}"
        );
    }
}
