//! A session takes a protected lock between the confirmation's read and the release, with the reviewed lock or after
//! releasing it: the generation is the reviewed one, and ending the session would end both.

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

/// Confirms an unlock whose session runs `before` after the review, and `meanwhile` when the confirmation has read the
/// lock and waits to append its entry. Returns the state and the steps.
async fn confirm_while_taking(
    before: Option<&'static str>,
    meanwhile: &'static str,
) -> (String, Vec<String>) {
    let (postgres, server) = postgres_and_server_on(Store::postgres().await).await;
    server.protect(PROTECTED).await;
    let operator = server.operator().await;
    let mut holder = session(&postgres, "billing", "SELECT pg_advisory_lock(1)").await;
    let held = server.inventory_lock(&operator, "orders-db", OPEN).await;
    let id = server.begun(&operator, &held).await;
    if let Some(before) = before {
        holder.execute(before).await.unwrap();
    }
    let mut blocker = PgConnection::connect(&server.store.url).await.unwrap();
    let mut watcher = PgConnection::connect(&server.store.url).await.unwrap();
    sqlx::raw_sql(HOLD_APPENDS).execute(&mut blocker).await.unwrap();
    let taking = async {
        eventually("the confirmation waits", async || {
            let waiting = sqlx::query_scalar::<_, i64>(APPENDS_WAITING);
            waiting.fetch_one(&mut watcher).await.unwrap() > 0
        })
        .await;
        holder.execute(meanwhile).await.unwrap();
        blocker.execute("COMMIT").await.unwrap();
    };
    let (reply, ()) = tokio::join!(server.confirm(&operator, &id, OPEN), taking);
    assert!(is_alive(&mut holder).await, "{}", reply.1);
    let (status, state) = state(&reply);
    assert_eq!(status, 200, "{}", reply.1);
    (state.to_owned(), server.unlock_phases(&id).await)
}

#[tokio::test]
async fn a_lock_taken_again_with_a_protected_one_is_kept() {
    // Free when the confirmation reads it: nothing is begun.
    let both = "SELECT pg_advisory_lock(1), pg_advisory_lock(2)";
    let (state, steps) = confirm_while_taking(Some("SELECT pg_advisory_unlock(1)"), both).await;
    assert_eq!(state, "already_free");
    assert_eq!(steps, ["intent pending", "outcome already_free"]);
}

#[tokio::test]
async fn a_protected_lock_taken_during_the_claim_is_kept() {
    // Held throughout: the session is read once more after the claim.
    let (state, steps) = confirm_while_taking(None, "SELECT pg_advisory_lock(2)").await;
    assert_eq!(state, "refused");
    assert_eq!(steps, ["intent pending", "act begun", "outcome refused"]);
}
