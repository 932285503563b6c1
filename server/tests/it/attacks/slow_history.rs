//! Charts over long ranges do not block sessions, audit entries and unlocks, which need a connection to the store, too.

use ::testkit::{PostgresOptions, Throwaway};
use runtime::db::Db;

#[tokio::test]
async fn history_queries_leave_connections_for_sessions() {
    // More slow queries than both pools have connections; transactions of the console still begin.
    let postgres = Throwaway::postgres(PostgresOptions {
        fast: true,
        ..PostgresOptions::default()
    })
    .await
    .unwrap();
    let url = postgres.superuser_url();
    let db = Db::open(&url).await.unwrap();
    let history = db.history(&url).await.unwrap();
    let Db::Postgres(pool) = &history else {
        unreachable!("the store is on Postgres")
    };
    let slow = futures::future::join_all(
        (0..8).map(|_| async { sqlx::query("SELECT pg_sleep(4)").execute(pool).await.is_ok() }),
    );
    tokio::pin!(slow);
    for _ in 0..10 {
        tokio::select! {
            _ = &mut slow => break,
            begun = db.begin() => assert!(begun.is_ok(), "{:?}", begun.err()),
        }
    }
}
