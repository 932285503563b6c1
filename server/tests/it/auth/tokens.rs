//! Tokens: permissions, expiry and revocation, and changes by commands while the server runs.

use crate::support::{Store, TestCaller, TestServer, on};
use std::time::Duration;

use domain::access::{Grant, Role};
use leasehold::audit::{Audit, ChainCheckpoints};
use leasehold::identity::{Identity, NewToken, Principal};
use runtime::clock::Clock;
use runtime::db::Db;

use testkit::eventually;

#[tokio::test]
async fn a_token_is_good_until_it_is_revoked_by_another_process() {
    // Created and revoked through another connection to the store, as `leasehold token` does: effective within a second.
    let server = TestServer::builder().redis().start().await;
    let db = Db::open(&server.store.url).await.unwrap();
    let audit = Audit::new(db.clone(), Clock::start(), ChainCheckpoints::default());
    let beside = Identity::open(db, audit, Clock::start()).await.unwrap();
    let new = NewToken {
        name: "billing".to_owned(),
        grants: vec![Grant::everywhere(Role::Client)],
        expires_in: None,
    };
    let token = beside.create_token(&Principal::system("test"), new).await;
    let token = TestCaller::from(token.unwrap());
    eventually("the new token is known", || async {
        server.as_user(&token).get("/v1/backends").await.0 == 200
    })
    .await;
    assert_eq!(server.as_user(&token).acquire("r").await.0, 200);
    beside
        .revoke_token(&Principal::system("test"), "billing")
        .await
        .unwrap();
    eventually("the revoked token is refused", || async {
        server.as_user(&token).acquire("r2").await.0 == 401
    })
    .await;
    let rows = server.audit_entries().await;
    assert_eq!(rows.iter().filter(|row| row.action == "TOKEN_REVOKE").count(), 1);
    assert!(
        rows.iter()
            .all(|row| !format!("{row:?}").contains(token.secret()))
    );
}

#[tokio::test]
async fn a_token_created_during_a_read_has_its_grants() {
    // Another server reads users, tokens and grants, and waits at the table of users while the token is created: here by the
    // transaction that it waits for, since each new grant waits for that table too.
    const TAKE_AWAY: &str = "CREATE TABLE kept_tokens AS SELECT * FROM api_tokens WHERE name = 'second';
        CREATE TABLE kept_grants AS SELECT * FROM role_grants WHERE token_id IN (SELECT id FROM kept_tokens);
        DELETE FROM role_grants WHERE id IN (SELECT id FROM kept_grants);
        DELETE FROM api_tokens WHERE name = 'second'";
    const PUT_BACK: &str = "INSERT INTO api_tokens SELECT * FROM kept_tokens;
        INSERT INTO role_grants SELECT * FROM kept_grants";
    const WAITS: &str =
        "SELECT count(*) > 0 FROM pg_locks WHERE relation = 'users'::regclass AND NOT granted";
    let server = TestServer::builder().start_on(Store::postgres().await).await;
    let second = server.token("second", on(Role::Viewer, None, None)).await;
    let pool = sqlx::PgPool::connect(&server.store.url).await.unwrap();
    sqlx::raw_sql(TAKE_AWAY).execute(&pool).await.unwrap();
    let db = Db::open(&server.store.url).await.unwrap();
    let audit = Audit::new(db.clone(), Clock::start(), ChainCheckpoints::default());
    let other = Identity::open(db, audit, Clock::start()).await.unwrap();
    server.token("first", on(Role::Viewer, None, None)).await;
    let mut creating = pool.begin().await.unwrap();
    let lock = "LOCK TABLE users IN ACCESS EXCLUSIVE MODE";
    sqlx::query(lock).execute(&mut *creating).await.unwrap();
    let reading = other.token("lht_unknown");
    let created = async {
        eventually("the other server waits", async || {
            let waits = sqlx::query_scalar::<_, bool>(WAITS).fetch_one(&pool);
            waits.await.unwrap()
        })
        .await;
        sqlx::raw_sql(PUT_BACK).execute(&mut *creating).await.unwrap();
        creating.commit().await.unwrap();
    };
    let (unknown, ()) = tokio::join!(reading, created);
    assert!(unknown.unwrap().is_none());
    let second = other.known_token(second.secret()).unwrap();
    assert_eq!(second.grants.iter().count(), 1);
}

#[tokio::test]
async fn expired_and_unknown_tokens_are_refused_alike() {
    // 401 with the same words, whatever the reason.
    let server = TestServer::builder().redis().start().await;
    let new = NewToken {
        name: "short".to_owned(),
        grants: vec![Grant::everywhere(Role::Client)],
        expires_in: Some(Duration::ZERO),
    };
    let expired = server
        .identity()
        .create_token(&Principal::system("test"), new)
        .await;
    let expired = TestCaller::from(expired.unwrap());
    let (status, problem) = server.as_user(&expired).get("/v1/locks").await;
    assert_eq!((status, problem["code"].as_str()), (401, Some("unauthenticated")));
    let client = reqwest::Client::new();
    let never = client
        .get(server.url("/v1/locks"))
        .bearer_auth("lht_never")
        .send()
        .await
        .unwrap();
    let never: serde_json::Value = never.json().await.unwrap();
    assert_eq!(never["detail"], problem["detail"]);
}

#[tokio::test]
async fn refused_requests_of_a_token_are_counted_once_they_are_many() {
    // What a single viewer can make the audit log grow by is bounded; no request is lost from the count.
    const REQUESTS: usize = 300;
    let server = TestServer::builder().redis().start().await;
    let viewer = server.token("viewer", on(Role::Viewer, None, None)).await;
    for _ in 0..REQUESTS {
        assert_eq!(server.as_user(&viewer).acquire("r").await.0, 403);
    }
    // The rest is written when the server ends.
    let server = server.restart().await;
    let entries = server.audit_entries().await;
    let denied: Vec<_> = entries.iter().filter(|entry| entry.action == "DENY").collect();
    assert!(
        (200..250).contains(&denied.len()) && denied.iter().all(|entry| entry.actor_name == "viewer"),
        "{}",
        denied.len()
    );
    assert_eq!(server.rejections_recorded("forbidden").await, REQUESTS as u64);
}

#[tokio::test]
async fn role_checks_hold_and_refusals_are_recorded() {
    // A viewer holds no leases; a client does; refusals are in the audit log with their path.
    let server = TestServer::builder().redis().start().await;
    let viewer = server.token("viewer", on(Role::Viewer, None, None)).await;
    let client = server.token("client", on(Role::Client, None, None)).await;
    let (status, problem) = server.as_user(&viewer).acquire("r").await;
    assert_eq!((status, problem["code"].as_str()), (403, Some("forbidden")));
    assert_eq!(server.as_user(&client).acquire("r").await.0, 200);
    let denied = &server.audit_entries().await[0];
    assert_eq!(
        (denied.action.as_str(), denied.actor_name.as_str()),
        ("DENY", "viewer")
    );
    assert!(denied.after.as_ref().unwrap().contains("/v1/locks/acquire"));
}
