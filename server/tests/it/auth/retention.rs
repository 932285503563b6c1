//! Sessions and one-time links are deleted 30 days after their end, except those through which a creator is found.

use domain::access::Role;
use runtime::clock::Clock;
use runtime::db::{Db, on_either};

use crate::support::{Store, TestServer, on};
use testkit::eventually;

const ROWS: &str = "INSERT INTO sessions
        (id, secret_hash, user_id, method, created_at, last_seen_at, authenticated_at, link_created_by_id)
    SELECT v.id, v.id, u.id, 'link', v.created_at, v.created_at, v.created_at, v.creator FROM users u,
        (SELECT 'old' AS id, 1 AS created_at, NULL AS creator UNION ALL SELECT 'created a token', 1, NULL
         UNION ALL SELECT 'created a link', 1, NULL UNION ALL SELECT 'link of a session', NOW, 'opened a session'
         UNION ALL SELECT 'opened a session', 1, NULL UNION ALL SELECT 'recent', NOW, NULL) AS v
    WHERE u.name = 'ada';
    INSERT INTO oidc_finished_flows (secret_hash, begun_at) VALUES ('old', 1), ('recent', NOW);
    UPDATE api_tokens SET created_by_id = 'created a token' WHERE name = 't';
    INSERT INTO one_time_links (secret_hash, purpose, user_id, created_at, created_by_id, expires_at)
    SELECT 'old', 'user', id, 1, NULL, 2 FROM users WHERE name = 'ada';
    INSERT INTO one_time_links (secret_hash, purpose, user_id, created_at, created_by_id, expires_at)
    SELECT 'recent', 'user', id, NOW, 'created a link', NOW FROM users WHERE name = 'ada'";

async fn ids(store: &Store, select: &'static str) -> Vec<String> {
    let db = Db::open(&store.url).await.unwrap();
    on_either!(&db, Db, |pool| sqlx::query_scalar(select)
        .fetch_all(pool)
        .await
        .unwrap())
}

async fn old_sessions_and_links_are_deleted(store: Store) {
    let server = TestServer::builder().start_on(store).await;
    server.add_user("ada", on(Role::Viewer, None, None)).await;
    server.token("t", on(Role::Viewer, None, None)).await;
    let now = Clock::start().now().wall.timestamp_millis().to_string();
    server.store.sql(&ROWS.replace("NOW", &now)).await;
    // The first deletion is soon after a start.
    let server = server.restart().await;
    eventually("the old session is deleted", async || {
        ids(&server.store, "SELECT id FROM sessions ORDER BY id").await
            == [
                "created a link",
                "created a token",
                "link of a session",
                "opened a session",
                "recent",
            ]
    })
    .await;
    let flows = "SELECT secret_hash FROM oidc_finished_flows";
    assert_eq!(ids(&server.store, flows).await, ["recent"]);
    let links = "SELECT secret_hash FROM one_time_links WHERE user_id IS NOT NULL";
    assert_eq!(ids(&server.store, links).await, ["recent"]);
}

#[tokio::test]
async fn old_sessions_are_deleted_on_sqlite() {
    old_sessions_and_links_are_deleted(Store::sqlite()).await;
}

#[tokio::test]
async fn old_sessions_are_deleted_on_postgres() {
    old_sessions_and_links_are_deleted(Store::postgres().await).await;
}

#[tokio::test]
async fn a_locked_session_does_not_delay_the_deletion_of_others() {
    // As by a change that ends the sessions of a user: it and the deletion would wait for each other.
    let server = TestServer::builder().start_on(Store::postgres().await).await;
    server.add_user("ada", on(Role::Viewer, None, None)).await;
    let insert =
        "INSERT INTO sessions (id, secret_hash, user_id, method, created_at, last_seen_at, authenticated_at)
        SELECT v.id, v.id, u.id, 'password', 1, 1, 1 FROM users u, (VALUES ('locked'), ('old')) AS v (id)";
    server.store.sql(insert).await;
    let pool = sqlx::PgPool::connect(&server.store.url).await.unwrap();
    let mut change = pool.begin().await.unwrap();
    let lock = sqlx::query("SELECT id FROM sessions WHERE id = 'locked' FOR NO KEY UPDATE");
    lock.execute(&mut *change).await.unwrap();
    let server = server.restart().await;
    eventually("the other session is deleted", async || {
        ids(&server.store, "SELECT id FROM sessions").await == ["locked"]
    })
    .await;
    change.rollback().await.unwrap();
}
