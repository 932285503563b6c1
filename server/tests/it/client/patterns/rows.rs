//! Rows in SQL, on SQLite and on a real Postgres.

use ::testkit::{PostgresOptions, Throwaway};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection, SqliteConnection};

use crate::client::client_and_server::aside;
use crate::client::docs::{FENCING, blocks};

/// The page's statements: table, write, fence table, fence.
fn statements() -> [&'static str; 4] {
    blocks(FENCING, "sql").try_into().unwrap()
}

/// The same scenario on a connection of either kind.
macro_rules! rows_are_fenced {
    ($connection:expr) => {{
        let connection = $connection;
        let [table, write, fence_table, fence] = statements();
        for statement in [
            table,
            fence_table,
            "INSERT INTO account (id, balance) VALUES ('a', 0)",
        ] {
            sqlx::raw_sql(AssertSqlSafe(statement))
                .execute(&mut *connection)
                .await
                .unwrap();
        }
        for (token, balance, rows) in [(1_i64, 10_i64, 1), (1, 11, 1), (2, 20, 1), (1, 12, 0), (2, 21, 1)] {
            let query = sqlx::query(AssertSqlSafe(write))
                .bind("a")
                .bind(balance)
                .bind(token);
            let done = query.execute(&mut *connection).await.unwrap();
            assert_eq!(done.rows_affected(), rows, "token {token}");
        }
        for (token, rows) in [(1_i64, 1), (1, 1), (2, 1), (1, 0), ((1 << 53) - 1, 1), (2, 0)] {
            let query = sqlx::query(AssertSqlSafe(fence)).bind("r").bind(token);
            let done = query.execute(&mut *connection).await.unwrap();
            assert_eq!(done.rows_affected(), rows, "token {token}");
        }
        let balance = "SELECT balance FROM account WHERE id = 'a'";
        let read: i64 = sqlx::query_scalar(balance)
            .fetch_one(&mut *connection)
            .await
            .unwrap();
        assert_eq!(read, 21, "what the late write would have changed");
        let unfenced = write.replace(" AND fence <= $3", "");
        assert_ne!(unfenced, write);
        let query = sqlx::query(AssertSqlSafe(unfenced))
            .bind("a")
            .bind(12_i64)
            .bind(1_i64);
        query.execute(&mut *connection).await.unwrap();
        let read: i64 = sqlx::query_scalar(balance)
            .fetch_one(&mut *connection)
            .await
            .unwrap();
        assert_eq!(read, 12, "without the comparison the late write wins");
    }};
}

#[tokio::test]
async fn sqlite_rows_reject_a_stale_token() {
    // The page's own statements; the same holder writes twice.
    let mut connection = SqliteConnection::connect("sqlite::memory:").await.unwrap();
    rows_are_fenced!(&mut connection);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_rows_reject_a_token_that_goes_stale_in_the_queue() {
    // As on SQLite; then the old holder's statement waits for the row lock of the new holder's open transaction, and
    // changes no row after the commit.
    let postgres = Throwaway::postgres(PostgresOptions {
        fast: true,
        ..Default::default()
    })
    .await
    .unwrap();
    let mut connection = PgConnection::connect(&postgres.superuser_url()).await.unwrap();
    rows_are_fenced!(&mut connection);
    let [_, write, _, fence] = statements();
    let mut late = PgConnection::connect(&postgres.superuser_url()).await.unwrap();
    let mut open = connection.begin().await.unwrap();
    let query = sqlx::query(AssertSqlSafe(write))
        .bind("a")
        .bind(30_i64)
        .bind(3_i64);
    assert_eq!(query.execute(&mut *open).await.unwrap().rows_affected(), 1);
    let query = sqlx::query(AssertSqlSafe(fence)).bind("s").bind(3_i64);
    assert_eq!(query.execute(&mut *open).await.unwrap().rows_affected(), 1);
    let waits = aside(async move {
        let query = sqlx::query(AssertSqlSafe(write))
            .bind("a")
            .bind(25_i64)
            .bind(2_i64);
        let wrote = query.execute(&mut late).await.unwrap().rows_affected();
        let query = sqlx::query(AssertSqlSafe(fence)).bind("s").bind(2_i64);
        (wrote, query.execute(&mut late).await.unwrap().rows_affected())
    });
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
    while sqlx::query_scalar::<_, i64>(waiting)
        .fetch_one(&mut *open)
        .await
        .unwrap()
        == 0
    {
        tokio::task::yield_now().await;
    }
    open.commit().await.unwrap();
    assert_eq!(waits.await.unwrap(), (0, 0));
}
