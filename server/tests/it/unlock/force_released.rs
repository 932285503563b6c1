//! A forced release that leaves its row in the lease table, with the expiry in the past: the lock is free, not expired. After
//! the next acquisition it is a lock like any other.

use crate::support::{TestCaller, TestServer};
use ::testkit::{Postgres, PostgresOptions, Throwaway};
use serde_json::Value;
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};

use testkit::eventually;

/// The token is stored in the row, so the row stays when the lock is force-released.
const TABLE: &str = "CREATE TABLE distributed_locks (resource text PRIMARY KEY, owner_id text NOT NULL,
    lease_id text NOT NULL, fencing_token bigint NOT NULL, expires_at timestamptz NOT NULL,
    created_at timestamptz NOT NULL, updated_at timestamptz NOT NULL);
    INSERT INTO distributed_locks VALUES
        ('stuck', 'worker-7', 'l1', 41, now() + interval '1 h', now(), now()),
        ('live', 'worker-8', 'l2', 7, now() + interval '1 h', now(), now()),
        ('dead', 'worker-9', 'l3', 8, now() - interval '1 min', now(), now())";

async fn run(postgres: &Postgres, statement: &str) {
    let mut sql = PgConnection::connect(&postgres.superuser_url()).await.unwrap();
    let statement = AssertSqlSafe(statement.to_owned());
    sqlx::raw_sql(statement).execute(&mut sql).await.unwrap();
}

/// Names and states of the locks of the table, in order.
async fn listed(server: &TestServer, caller: &TestCaller) -> Vec<(String, String)> {
    let (status, found) = server
        .as_user(caller)
        .get("/v1/inventory?backend=orders-db")
        .await;
    assert_eq!(status, 200, "{found}");
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let rows = found["locks"].as_array().unwrap().iter();
    let mut rows: Vec<_> = rows
        .map(|row| (text(&row["resource"]), text(&row["state"])))
        .collect();
    rows.sort();
    rows
}

async fn eventually_listed(server: &TestServer, caller: &TestCaller, wanted: &[(&str, &str)]) {
    let wanted: Vec<_> = wanted
        .iter()
        .map(|(name, state)| ((*name).to_owned(), (*state).to_owned()))
        .collect();
    eventually("the inventory lists them", || async {
        listed(server, caller).await == wanted
    })
    .await;
}

async fn page(server: &TestServer, caller: &TestCaller) -> String {
    let request = server
        .as_user(caller)
        .request(reqwest::Method::GET, "/locks/orders-db/stuck");
    let answer = request.header("accept", "text/html").send().await.unwrap();
    assert_eq!(answer.status(), 200);
    answer.text().await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_force_released_row_is_a_free_lock() {
    let options = PostgresOptions {
        fast: true,
        ..Default::default()
    };
    let postgres = Throwaway::postgres(options).await.unwrap();
    run(&postgres, TABLE).await;
    let toml = format!(
        "[[backend]]\nname = \"orders-db\"\nkind = \"postgres\"\nurl = \"{0}\"\nunlock_url = \"{0}\"\npoll_interval = \"1s\"\n\
         [[backend.lease_table]]\ntable = \"public.distributed_locks\"\npreset = \"common\"\n",
        postgres.superuser_url()
    );
    let server = TestServer::builder().config(&toml).start().await;
    let operator = server.operator().await;
    let held = server.inventory_lock(&operator, "orders-db", "stuck").await;
    let unlock = server.begun(&operator, &held).await;
    let (status, answer) = server.confirm(&operator, &unlock, "stuck").await;
    assert_eq!(
        (status, answer["state"].as_str()),
        (200, Some("released")),
        "{answer}"
    );

    // Free, and released by whom; a row that ran out by itself is an expired lock as before.
    let rest = [("dead", "expired"), ("live", "healthy")];
    eventually_listed(&server, &operator, &rest).await;
    let html = page(&server, &operator).await;
    assert!(
        html.contains("no holder") && html.contains("released by force by operator"),
        "{html}"
    );

    // After a restart too, also with the first pass.
    let server = server.restart().await;
    eventually_listed(&server, &operator, &rest).await;
    let html = page(&server, &operator).await;
    assert!(
        html.contains("no holder") && html.contains("released by force by operator"),
        "{html}"
    );

    // Acquired again: a lock like any other, which may expire by itself.
    let acquire = "UPDATE distributed_locks SET owner_id = 'worker-1', lease_id = 'l9', fencing_token = 42,
        created_at = now(), expires_at = now() + interval '{expiry}' WHERE resource = 'stuck'";
    run(&postgres, &acquire.replace("{expiry}", "1 h")).await;
    let all = [rest[0], rest[1], ("stuck", "healthy")];
    eventually_listed(&server, &operator, &all).await;
    run(&postgres, &acquire.replace("{expiry}", "-1 s")).await;
    let all = [rest[0], rest[1], ("stuck", "expired")];
    eventually_listed(&server, &operator, &all).await;
}
