//! Tokens: what they open, how they end, and that commands beside the server are noticed.

use std::time::Duration;

use domain::access::{Grant, Role};
use leasehold::audit::{Audit, Heads};
use leasehold::clock::Clock;
use leasehold::db::Db;
use leasehold::identity::{Identity, NewToken, Who};
use reqwest::StatusCode;

use super::stage::{Stage, acquire, get, on};
use crate::support::eventually::eventually;

#[tokio::test]
async fn a_token_is_good_until_it_is_revoked_by_another_process() {
    // Made and revoked through another connection to the store, as `leasehold token` does: noticed within a second.
    let stage = Stage::start().await;
    let db = Db::open(&stage.store).await.unwrap();
    let audit = Audit::new(db.clone(), Clock::start(), Heads::default());
    let beside = Identity::open(db, audit, Clock::start()).await.unwrap();
    let new = NewToken {
        name: "billing".to_owned(),
        grants: vec![Grant::everywhere(Role::Client)],
        expires_in: None,
    };
    let token = beside.create_token(&Who::system("test"), new).await.unwrap();
    eventually("the new token is known", || async {
        get(&stage, &token, "/v1/backends").await.0 == StatusCode::OK
    })
    .await;
    assert_eq!(acquire(&stage, &token, "r").await.0, StatusCode::OK);
    beside
        .revoke_token(&Who::system("test"), "billing")
        .await
        .unwrap();
    eventually("the revoked token is refused", || async {
        acquire(&stage, &token, "r2").await.0 == StatusCode::UNAUTHORIZED
    })
    .await;
    let rows = stage.record().await;
    assert_eq!(rows.iter().filter(|row| row.action == "TOKEN_REVOKE").count(), 1);
    assert!(
        rows.iter()
            .all(|row| !format!("{row:?}").contains(token.expose()))
    );
}

#[tokio::test]
async fn a_token_that_expired_and_one_that_never_was_are_refused_alike() {
    // 401 with the same words, whatever the reason.
    let stage = Stage::start().await;
    let new = NewToken {
        name: "short".to_owned(),
        grants: vec![Grant::everywhere(Role::Client)],
        expires_in: Some(Duration::ZERO),
    };
    let expired = stage
        .identity()
        .create_token(&Who::system("test"), new)
        .await
        .unwrap();
    let (status, problem) = get(&stage, &expired, "/v1/locks").await;
    assert_eq!(
        (status, problem["code"].as_str()),
        (StatusCode::UNAUTHORIZED, Some("unauthenticated"))
    );
    let client = reqwest::Client::new();
    let never = client
        .get(stage.url("/v1/locks"))
        .bearer_auth("lht_never")
        .send()
        .await
        .unwrap();
    let never: serde_json::Value = never.json().await.unwrap();
    assert_eq!(never["detail"], problem["detail"]);
}

#[tokio::test]
async fn roles_are_kept_and_refusals_recorded() {
    // A viewer holds no leases; a client does; what was refused stands in the record with its path.
    let stage = Stage::start().await;
    let viewer = stage.token("viewer", on(Role::Viewer, None, None)).await;
    let client = stage.token("client", on(Role::Client, None, None)).await;
    let (status, problem) = acquire(&stage, &viewer, "r").await;
    assert_eq!(
        (status, problem["code"].as_str()),
        (StatusCode::FORBIDDEN, Some("forbidden"))
    );
    assert_eq!(acquire(&stage, &client, "r").await.0, StatusCode::OK);
    let denied = &stage.record().await[0];
    assert_eq!(
        (denied.action.as_str(), denied.actor_name.as_str()),
        ("DENY", "viewer")
    );
    assert!(denied.after.as_ref().unwrap().contains("/v1/locks/acquire"));
}
