//! Who waits for whom: cycles of real waits in one system and across systems, as API, page and alert show them.

mod across_systems;
mod in_one_system;
mod pages;

use std::time::Duration;

use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};
use tokio::task::JoinHandle;

use crate::support::{TestCaller, TestServer, on, reply};
use ::testkit::Postgres;
use domain::access::Role;

/// Holds `resource` of the lease service for `owner`.
async fn hold(server: &TestServer, caller: &TestCaller, resource: &str, owner: &str) {
    let body = json!({"resource": resource, "ownerId": owner, "ttlSeconds": 600});
    let (status, answer) = server.as_user(caller).post("/v1/locks/acquire", &body).await;
    assert_eq!(status, 200, "{answer}");
}

/// Waits for `resource` of the lease service as `owner`, for up to a minute.
#[expect(
    clippy::disallowed_methods,
    reason = "a client of the test that waits while the test looks"
)]
fn queue(server: &TestServer, caller: &TestCaller, resource: &str, owner: &str) -> JoinHandle<()> {
    let body = json!({"resource": resource, "ownerId": owner, "ttlSeconds": 600, "waitSeconds": 60});
    let client = reqwest::Client::builder()
        .timeout(Duration::from_secs(90))
        .build()
        .unwrap();
    let request = caller.authenticate(client.post(server.url("/v1/locks/acquire")).json(&body));
    tokio::spawn(async move {
        let _refused = reply(request).await;
    })
}

/// Two owners of the lease service, each with one of the locks and in the queue of the other.
pub(crate) async fn deadlock_of_leases(
    server: &TestServer,
    caller: &TestCaller,
    (one, other): (&str, &str),
    owners: (&str, &str),
) {
    hold(server, caller, one, owners.0).await;
    hold(server, caller, other, owners.1).await;
    drop(queue(server, caller, one, owners.1));
    // In this order: the longest wait is the first in each list.
    testkit::eventually("the first waiter", async || {
        server.as_user(caller).get("/v1/waits").await.1["waitsTotal"] == 1
    })
    .await;
    drop(queue(server, caller, other, owners.0));
}

async fn session(postgres: &Postgres, application_name: &str) -> PgConnection {
    let mut session = PgConnection::connect(&postgres.superuser_url()).await.unwrap();
    // The server would end a deadlock of its own after this time.
    let set = "SELECT set_config('application_name', $1, false), set_config('deadlock_timeout', '1h', false)";
    sqlx::query(set)
        .bind(application_name)
        .execute(&mut session)
        .await
        .unwrap();
    session
}

async fn advisory(session: &mut PgConnection, key: i64) {
    let lock = format!("SELECT pg_advisory_lock({key})");
    sqlx::raw_sql(AssertSqlSafe(lock)).execute(session).await.unwrap();
}

#[expect(
    clippy::disallowed_methods,
    reason = "a session of the test that waits while the test looks"
)]
fn wait_for_advisory(mut session: PgConnection, key: i64) -> JoinHandle<()> {
    tokio::spawn(async move {
        let lock = format!("SELECT pg_advisory_lock({key})");
        // Ends with the server.
        let _ended = sqlx::raw_sql(AssertSqlSafe(lock)).execute(&mut session).await;
    })
}

/// The graph once it has a certain deadlock.
pub(crate) async fn deadlocked(server: &TestServer, caller: &TestCaller) -> Value {
    let mut last = Value::Null;
    testkit::eventually("a certain deadlock", async || {
        last = server.as_user(caller).get("/v1/waits").await.1;
        last["deadlocks"][0]["isCertain"] == true
    })
    .await;
    last
}

async fn admin(server: &TestServer) -> TestCaller {
    server.token("admin", on(Role::Admin, None, None)).await
}

/// `waiter lock holder` of each wait of the first deadlock, sorted.
fn cycle(page: &Value) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or("null").to_owned();
    let hops = page["deadlocks"][0]["cycle"].as_array().unwrap();
    let hop = |at: usize| {
        let (hop, next) = (&hops[at], &hops[(at + 1) % hops.len()]);
        format!(
            "{} {} {}",
            text(&hop["owner"]),
            text(&hop["wait"]["resource"]),
            text(&next["owner"])
        )
    };
    let mut all: Vec<String> = (0..hops.len()).map(hop).collect();
    all.sort();
    all
}
