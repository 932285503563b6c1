//! Clients that hang up while their request begins to write leave no transaction open in the store.

use leasehold::db::Db;
use leasehold::throwaway::{PostgresOptions, Throwaway};
use sqlx::Connection;

use crate::support::eventually::eventually;

const LEFT_OPEN: &str = "SELECT count(*) FROM pg_stat_activity \
    WHERE application_name = 'leasehold console' AND state LIKE 'idle in transaction%'";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_begin_leaves_no_open_transaction() {
    // Dropped after each number of polls, as a handler is whose client has gone.
    let postgres = Throwaway::postgres(PostgresOptions {
        fast: true,
        ..PostgresOptions::default()
    })
    .await
    .unwrap();
    let url = postgres.superuser_url();
    let db = Db::open(&url).await.unwrap();
    for polls in 0..400 {
        let begin = db.begin();
        tokio::pin!(begin);
        for _ in 0..polls {
            if futures::poll!(&mut begin).is_ready() {
                break;
            }
            tokio::task::yield_now().await;
        }
    }
    let mut observer = sqlx::PgConnection::connect(&url).await.unwrap();
    eventually("no transaction is left open", async || {
        let open: i64 = sqlx::query_scalar(LEFT_OPEN)
            .fetch_one(&mut observer)
            .await
            .unwrap();
        open == 0
    })
    .await;
    let begun = db.begin().await;
    assert!(begun.is_ok());
}
