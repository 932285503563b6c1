//! A session releases the reviewed lock before the confirmation reads it, and takes it again before the release, together
//! with a protected lock: the generation is the reviewed one, and ending the session would end both.

use sqlx::{Connection as _, Executor as _, PgConnection};
use testkit::eventually;

use crate::support::Store;
use crate::unlock::blast_radius::{is_alive, postgres_and_server_on, session};
use crate::unlock::requests::state;

const OPEN: &str = "advisory:postgres:1";
const PROTECTED: &str = "advisory:postgres:2";
/// Every append to the audit log waits for this row.
const HOLD_APPENDS: &str = "BEGIN; SELECT id FROM audit_append_lock FOR UPDATE";
const APPENDS_WAITING: &str = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%audit_append_lock%'";

#[tokio::test]
async fn a_lock_taken_again_with_a_protected_one_is_kept() {
    // The confirmation has read the lock when it waits to append its entry.
    let (postgres, server) = postgres_and_server_on(Store::postgres().await).await;
    server.protect(PROTECTED).await;
    let operator = server.operator().await;
    let mut holder = session(&postgres, "billing", "SELECT pg_advisory_lock(1)").await;
    let held = server.inventory_lock(&operator, "orders-db", OPEN).await;
    let id = server.begun(&operator, &held).await;
    holder.execute("SELECT pg_advisory_unlock(1)").await.unwrap();
    let mut blocker = PgConnection::connect(&server.store.url).await.unwrap();
    let mut watcher = PgConnection::connect(&server.store.url).await.unwrap();
    sqlx::raw_sql(HOLD_APPENDS).execute(&mut blocker).await.unwrap();
    let taking_again = async {
        eventually("the confirmation waits", async || {
            let waiting = sqlx::query_scalar::<_, i64>(APPENDS_WAITING);
            waiting.fetch_one(&mut watcher).await.unwrap() > 0
        })
        .await;
        let both = "SELECT pg_advisory_lock(1), pg_advisory_lock(2)";
        holder.execute(both).await.unwrap();
        blocker.execute("COMMIT").await.unwrap();
    };
    let (reply, ()) = tokio::join!(server.confirm(&operator, &id, OPEN), taking_again);
    assert_eq!(state(&reply), (200, "already_free"), "{}", reply.1);
    assert!(is_alive(&mut holder).await);
    assert_eq!(
        server.unlock_phases(&id).await,
        ["intent pending", "outcome already_free"]
    );
}
