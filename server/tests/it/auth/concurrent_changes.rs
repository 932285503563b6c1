//! Changes of roles and tokens while other transactions have connections of the same pool, or rows of the same tokens and sessions.

use domain::access::Role;
use leasehold::audit::{Audit, ChainCheckpoints};
use leasehold::identity::{Identity, Principal};
use runtime::clock::Clock;
use runtime::db::Db;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection};
use testkit::eventually;

use crate::support::{PASSWORD, Store, TestServer, on};

#[tokio::test]
async fn one_free_connection_is_enough_to_change_roles() {
    // Other transactions have three of the four connections, as changes that wait for a lock of this one.
    let server = TestServer::builder().start_on(Store::postgres().await).await;
    let ada = server.add_user("ada", on(Role::Approver, None, None)).await;
    let db = Db::open(&server.store.url).await.unwrap();
    let audit = Audit::new(db.clone(), Clock::start(), ChainCheckpoints::default());
    let identity = Identity::open(db.clone(), audit, Clock::start()).await.unwrap();
    let waiting = [
        db.begin().await.unwrap(),
        db.begin().await.unwrap(),
        db.begin().await.unwrap(),
    ];
    let roles = on(Role::Approver, None, None);
    let changed = identity.set_grants(&Principal::system("test"), &ada, roles).await;
    assert!(changed.is_ok(), "{changed:?}");
    drop(waiting);
}

/// A change that waits for the first of several rows, while another transaction that has it takes the others.
async fn change_during_taking<T>(
    server: &TestServer,
    [first, others]: [&'static str; 2],
    change: impl Future<Output = T>,
) -> T {
    const WAITING: &str = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()";
    let mut other = PgConnection::connect(&server.store.url).await.unwrap();
    let mut watcher = PgConnection::connect(&server.store.url).await.unwrap();
    other.execute("BEGIN").await.unwrap();
    other.execute(first).await.unwrap();
    let taking = async {
        eventually("the change waits", async || {
            let waiting = sqlx::query_scalar::<_, i64>(WAITING);
            waiting.fetch_one(&mut watcher).await.unwrap() > 0
        })
        .await;
        other.execute(others).await.unwrap();
        other.execute("COMMIT").await.unwrap();
    };
    tokio::join!(change, taking).0
}

async fn count(server: &TestServer, rows: &str) -> i64 {
    let mut connection = PgConnection::connect(&server.store.url).await.unwrap();
    let select = AssertSqlSafe(format!("SELECT count(*) FROM {rows}"));
    let count = sqlx::query_scalar(select).fetch_one(&mut connection).await;
    count.unwrap()
}

/// A token with a child and a grandchild, whose ids are in the opposite order.
const TOKENS: &str =
    "INSERT INTO api_tokens (id, name, secret_hash, created_at, created_by, created_by_id) VALUES
    ('t_3', 'parent', '3', 1, 'test', NULL), ('t_2', 'child', '2', 1, 'test', 't_3'),
    ('t_1', 'grandchild', '1', 1, 'test', 't_2')";

#[tokio::test]
async fn a_revocation_locks_tokens_in_the_order_of_their_ids() {
    // As a second revocation and the storing of uses do.
    let server = TestServer::builder().start_on(Store::postgres().await).await;
    server.store.sql(TOKENS).await;
    let (identity, system) = (server.identity(), Principal::system("test"));
    let rows = [
        "UPDATE api_tokens SET last_used_at = 1 WHERE id = 't_1'",
        "SELECT id FROM api_tokens WHERE id IN ('t_2', 't_3') FOR UPDATE NOWAIT",
    ];
    let revoking = identity.revoke_token(&system, "parent");
    change_during_taking(&server, rows, revoking).await.unwrap();
    assert_eq!(count(&server, "api_tokens WHERE revoked_at IS NULL").await, 0);
}

#[tokio::test]
async fn changes_lock_sessions_in_the_order_of_their_ids() {
    // A revocation of the token behind them, and a new password of their user.
    const SESSIONS: &str =
        "INSERT INTO sessions (id, secret_hash, user_id, method, created_at, last_seen_at, authenticated_at,
            link_created_by_id)
        SELECT s.id, s.id, users.id, 'link', 1, 1, 1, 't_3' FROM users, (VALUES ('s_3'), ('s_2'), ('s_1')) AS s (id)";
    let server = TestServer::builder().start_on(Store::postgres().await).await;
    let ada = server.add_user("ada", on(Role::Viewer, None, None)).await;
    server.store.sql(TOKENS).await;
    let (identity, system) = (server.identity(), Principal::system("test"));
    let rows = [
        "UPDATE sessions SET last_seen_at = 2 WHERE id = 's_1'",
        "SELECT id FROM sessions WHERE id IN ('s_2', 's_3') FOR UPDATE NOWAIT",
    ];
    server.store.sql(SESSIONS).await;
    let revoking = identity.revoke_token(&system, "parent");
    change_during_taking(&server, rows, revoking).await.unwrap();
    server.store.sql("DELETE FROM sessions").await;
    server.store.sql(SESSIONS).await;
    let password = PASSWORD.into();
    let setting = identity.set_password(&system, &ada, &password);
    change_during_taking(&server, rows, setting).await.unwrap();
    assert_eq!(count(&server, "sessions WHERE ended_at IS NULL").await, 0);
}
