//! Changes of roles and tokens while other transactions have connections of the same pool, or rows of the same tokens.

use domain::access::Role;
use leasehold::audit::{Audit, ChainCheckpoints};
use leasehold::identity::{Identity, Principal};
use runtime::clock::Clock;
use runtime::db::Db;
use sqlx::{Connection as _, Executor as _, PgConnection};
use testkit::eventually;

use crate::support::{Store, TestServer, on};

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

#[tokio::test]
async fn a_revocation_locks_tokens_in_the_order_of_their_ids() {
    // Another transaction has the first token and then takes the others, as a second revocation or the storing of uses.
    const TOKENS: &str =
        "INSERT INTO api_tokens (id, name, secret_hash, created_at, created_by, created_by_id) VALUES
        ('t_3', 'parent', '3', 1, 'test', NULL), ('t_2', 'child', '2', 1, 'test', 't_3'),
        ('t_1', 'grandchild', '1', 1, 'test', 't_2')";
    const WAITING: &str = "SELECT count(*) FROM pg_stat_activity
        WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%api_tokens%'";
    let server = TestServer::builder().start_on(Store::postgres().await).await;
    let mut other = PgConnection::connect(&server.store.url).await.unwrap();
    let mut watcher = PgConnection::connect(&server.store.url).await.unwrap();
    other.execute(TOKENS).await.unwrap();
    other.execute("BEGIN").await.unwrap();
    let first = "UPDATE api_tokens SET last_used_at = 1 WHERE id = 't_1'";
    other.execute(first).await.unwrap();
    let identity = server.identity();
    let system = Principal::system("test");
    let taking = async {
        eventually("the revocation waits", async || {
            let waiting = sqlx::query_scalar::<_, i64>(WAITING);
            waiting.fetch_one(&mut watcher).await.unwrap() > 0
        })
        .await;
        let rest = "SELECT id FROM api_tokens WHERE id IN ('t_2', 't_3') FOR UPDATE NOWAIT";
        other.execute(rest).await.unwrap();
        other.execute("COMMIT").await.unwrap();
    };
    let (revoked, ()) = tokio::join!(identity.revoke_token(&system, "parent"), taking);
    revoked.unwrap();
    let left = "SELECT count(*) FROM api_tokens WHERE revoked_at IS NULL AND name IN ('parent', 'child', 'grandchild')";
    let left = sqlx::query_scalar::<_, i64>(left).fetch_one(&mut watcher).await;
    assert_eq!(left.unwrap(), 0);
}
