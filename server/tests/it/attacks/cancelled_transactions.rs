//! Clients that hang up while their request begins to write leave no transaction open in the store.

use std::time::Duration;

use ::testkit::{PostgresOptions, Throwaway};
use runtime::db::Db;
use sqlx::Connection;

use crate::support::proxy::{Link, Proxy};
use testkit::eventually;

const LEFT_OPEN: &str = "SELECT count(*) FROM pg_stat_activity \
    WHERE application_name = 'leasehold console' AND state LIKE 'idle in transaction%'";

#[tokio::test]
async fn a_cancelled_begin_leaves_no_open_transaction() {
    // Dropped after each number of milliseconds, like a handler whose client has disconnected,
    // on a slow link.
    let postgres = Throwaway::postgres(PostgresOptions {
        fast: true,
        ..PostgresOptions::default()
    })
    .await
    .unwrap();
    let direct = postgres.superuser_url();
    let proxy = Proxy::start(postgres.port()).await;
    let through = direct.replace(&postgres.port().to_string(), &proxy.port().to_string());
    let db = Db::open(&through).await.unwrap();
    let mut observer = sqlx::PgConnection::connect(&direct).await.unwrap();
    proxy.set(Link::Slow(Duration::from_millis(5))).await;
    let mut begun = 0;
    for patience_ms in 0..60 {
        let begin = tokio::time::timeout(Duration::from_millis(patience_ms), db.begin());
        begun += u32::from(begin.await.is_ok());
        eventually("no transaction is left open", async || {
            let open: i64 = sqlx::query_scalar(LEFT_OPEN)
                .fetch_one(&mut observer)
                .await
                .unwrap();
            open == 0
        })
        .await;
    }
    assert!(begun < 60);
    assert!(db.begin().await.is_ok());
}
