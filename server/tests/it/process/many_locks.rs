//! 100,000 locks at two servers on one Postgres: the evaluating server is killed, and paused.

use std::time::Duration;

use ::testkit::{PostgresOptions, RedisOptions, Throwaway};
use rustix::process::Signal;
use serde_json::{Value, json};
use sqlx::PgPool;

use super::evaluators::{TAKEOVER, taken_over, token};
use super::running_server::Running;
use crate::support::webhook_sink::WebhookSink;
use testkit::within;

const LOCKS: u64 = 100_000;
/// For what all locks take part in.
const LONG: Duration = Duration::from_secs(300);

/// Messages about the rule: number of its alerts and status of each.
fn messages(sink: &WebhookSink) -> Vec<(u64, String)> {
    let received = sink.received();
    let all = received.iter().map(|received| received.json());
    let of_rule = all.filter(|body| body["alerts"][0]["labels"]["alertname"] == "Held");
    let before = of_rule.map(|body| {
        let listed = body["alerts"].as_array().unwrap().len() as u64;
        let size = listed + body["truncatedAlerts"].as_u64().unwrap();
        (size, body["status"].as_str().unwrap().to_owned())
    });
    before.collect()
}

/// Held for longer than 5 s.
fn rule() -> Value {
    json!({
        "id": "held", "name": "Held", "condition": "long_held", "prefix": "jobs:", "anyPrefix": true,
        "severity": "warning", "for": "0s", "groupBy": ["backend"], "receivers": ["hook"],
        "with": {"longer_than": "5s", "times_p95": ""}
    })
}

async fn acquire_all(url: &str) {
    let mut redis = redis::Client::open(url)
        .unwrap()
        .get_multiplexed_async_connection()
        .await
        .unwrap();
    for from in (0..LOCKS).step_by(10_000) {
        let mut pipe = redis::pipe();
        for number in from..from + 10_000 {
            pipe.set_options(
                format!("jobs:{number:06}"),
                "worker-1",
                redis::SetOptions::default().with_expiration(redis::SetExpiry::EX(3_600)),
            )
            .ignore();
        }
        pipe.query_async::<()>(&mut redis).await.unwrap();
    }
}

async fn count(pool: &PgPool, select: &'static str) -> i64 {
    sqlx::query_scalar(select).fetch_one(pool).await.unwrap()
}

/// Every lock is late, in live alerts as in the preview, and nothing was notified again.
async fn is_steady(server: &Running, pool: &PgPool, sink: &WebhookSink, before: &[(u64, String)]) {
    // Ten evaluations.
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(messages(sink), before);
    let fired = "SELECT count(*) FROM alerts WHERE rule_id = 'held'";
    assert_eq!(count(pool, fired).await, 500);
    let (status, preview) = server.post("/v1/rules/preview", &rule()).await;
    assert_eq!(
        (status, &preview["count"], &preview["locks"]),
        (200, &json!(LOCKS), &json!(LOCKS)),
        "{preview}"
    );
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a long fault run, for `make prove`"]
#[expect(clippy::too_many_lines, reason = "one sequence of faults on the same servers")]
async fn alerts_on_100_000_locks_survive_kill_and_pause() {
    let postgres = Throwaway::postgres(PostgresOptions::default()).await.unwrap();
    let redis = Throwaway::redis(RedisOptions::default()).await.unwrap();
    let sink = WebhookSink::open().await;
    let toml = format!(
        "[[backend]]\nname = \"cache\"\nkind = \"redis\"\nurls = [\"{}\"]\npatterns = [\"jobs:*\"]\npoll_interval = \"2s\"\n\
         [notify]\nallowed_networks = [\"127.0.0.1/32\"]\ngroup_interval = \"0s\"\n",
        redis.url()
    );
    let mut first = Running::on(postgres.superuser_url(), &toml).await;
    let pool = PgPool::connect(&postgres.superuser_url()).await.unwrap();
    let hook =
        json!({"name": "hook", "kind": "webhook", "urls": [sink.url], "secret": "a-secret-of-this-test"});
    let post = first.http.post(first.url("/v1/receivers")).json(&hook).send();
    assert_eq!(post.await.unwrap().status(), 201);
    let put = first
        .http
        .put(first.url("/v1/rules"))
        .json(&rule())
        .send()
        .await
        .unwrap();
    assert_eq!(put.status(), 200, "{:?}", put.text().await);
    within(LONG, "the first server evaluates", async || {
        token(&pool).await > 0
    })
    .await;
    let mut second = first.another_with(&toml).await;
    within(LONG, "the backend is observed", async || {
        let page = second.json("/v1/inventory?backend=cache").await;
        page["backends"][0]["status"] == "live"
    })
    .await;
    acquire_all(&redis.url()).await;
    within(LONG, "all of them are in history", async || {
        count(&pool, "SELECT count(*) FROM lock_events WHERE backend = 'cache'").await >= LOCKS as i64
    })
    .await;
    within(LONG, "they fire, and most are notified", async || {
        messages(&sink).last().is_some_and(|(size, _)| *size > LOCKS / 2)
    })
    .await;
    let before = messages(&sink);
    for pair in before.windows(2) {
        assert!(
            pair[1].0 >= 2 * pair[0].0,
            "a group doubles before it is notified again: {before:?}"
        );
    }
    is_steady(&second, &pool, &sink, &before).await;

    let leader = token(&pool).await;
    first.signal(Signal::KILL);
    first.exit().await;
    taken_over(&pool, leader).await;
    is_steady(&second, &pool, &sink, &before).await;

    first.again().await;
    let leader = token(&pool).await;
    second.signal(Signal::STOP);
    taken_over(&pool, leader).await;
    second.signal(Signal::CONT);
    is_steady(&first, &pool, &sink, &before).await;

    let mut connection = redis::Client::open(redis.url())
        .unwrap()
        .get_multiplexed_async_connection()
        .await
        .unwrap();
    redis::cmd("FLUSHALL")
        .query_async::<()>(&mut connection)
        .await
        .unwrap();
    within(TAKEOVER, "the end is notified", async || {
        messages(&sink)
            .last()
            .is_some_and(|(_, status)| status == "resolved")
    })
    .await;
    second.signal(Signal::KILL);
    second.exit().await;
}
