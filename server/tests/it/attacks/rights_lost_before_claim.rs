//! Rights end between the checks and the act. The store knows at once, the directory in memory only within a second: the
//! claim asks the store, in its own transaction.

use crate::support::{Store, TestCaller, TestServer, code, on};
use crate::unlock::requests::{HeldLock, state};
use domain::access::Role;
use testkit::eventually;

struct Scene {
    server: TestServer,
    client: TestCaller,
    ada: TestCaller,
    held: HeldLock,
    id: String,
}

/// An approved unlock of a protected lock, one step before its act.
async fn approved() -> Scene {
    let server = TestServer::start().await;
    server.protect("jobs").await;
    let client = server.token("client", on(Role::Client, None, None)).await;
    let ada = server.user("ada", on(Role::Operator, None, None)).await;
    let bob = server.user("bob", on(Role::Approver, None, None)).await;
    let held = server.hold(&client, "jobs/close").await;
    let id = server.begun(&ada, &held).await;
    let approved = server.unlock_step(&bob, &id, "approve").await;
    assert_eq!(approved.0, 200, "{}", approved.1);
    Scene {
        server,
        client,
        ada,
        held,
        id,
    }
}

/// Changes the store past the server, whose memory still has the old state, and confirms.
async fn refused_after(statement: &str, expected: (u16, &str)) {
    let scene = approved().await;
    let (server, held) = (&scene.server, &scene.held);
    server.store.sql(statement).await;
    let reply = server.confirm(&scene.ada, &scene.id, &held.resource).await;
    assert_eq!(code(&reply), expected, "{statement}: {}", reply.1);
    assert!(server.is_held(&scene.client, held).await, "{statement}");
}

#[tokio::test]
async fn grants_and_disabling_are_read_in_the_claim() {
    let of = |name: &str| format!("(SELECT id FROM users WHERE name = '{name}')");
    let gone = |name: &str| format!("DELETE FROM role_grants WHERE user_id = {}", of(name));
    let disabled = |name: &str| format!("UPDATE users SET disabled_at = 1 WHERE name = '{name}'");
    for (name, expected) in [("ada", (403, "forbidden")), ("bob", (403, "needs_approval"))] {
        refused_after(&gone(name), expected).await;
        refused_after(&disabled(name), expected).await;
    }
}

#[tokio::test]
async fn the_read_only_switch_is_read_in_the_claim() {
    let switch = "UPDATE settings SET value = 'yes' WHERE key = 'read_only'";
    refused_after(switch, (403, "forbidden")).await;
}

#[tokio::test]
async fn no_unlock_without_permission_releases_a_lock() {
    let scene = approved().await;
    let reply = scene
        .server
        .confirm(&scene.ada, &scene.id, &scene.held.resource)
        .await;
    assert_eq!(state(&reply), (200, "released"), "{}", reply.1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_protection_that_is_added_before_the_claim_is_read_in_it() {
    // The claim waits for the turn of an admin who protects the lock.
    const WAITS: &str = "SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%audit_append_lock%'";
    let server = TestServer::builder().start_on(Store::postgres().await).await;
    let client = server.token("client", on(Role::Client, None, None)).await;
    let ada = server.user("ada", on(Role::Operator, None, None)).await;
    let held = server.hold(&client, "jobs/close").await;
    let id = server.begun(&ada, &held).await;
    let pool = sqlx::PgPool::connect(&server.store.url).await.unwrap();
    let mut protecting = pool.begin().await.unwrap();
    let protect = "SELECT id FROM audit_append_lock FOR UPDATE;
        INSERT INTO protected_prefixes (id, backend, prefix, protection) VALUES ('r', NULL, 'jobs', 'protected')";
    sqlx::raw_sql(protect).execute(&mut *protecting).await.unwrap();
    let added = async {
        eventually("the claim waits", async || {
            let waits = sqlx::query_scalar::<_, bool>(WAITS).fetch_one(&pool);
            waits.await.unwrap()
        })
        .await;
        protecting.commit().await.unwrap();
    };
    let (reply, ()) = tokio::join!(server.confirm(&ada, &id, "jobs/close"), added);
    assert_eq!(code(&reply), (403, "needs_approval"), "{}", reply.1);
    assert!(server.is_held(&client, &held).await);
}
