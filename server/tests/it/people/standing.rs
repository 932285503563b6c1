//! Whoever is let in is looked at again: streams and waiters end with the right to them, within a second.

use std::time::Duration;

use domain::access::Role;
use leasehold::audit::{Audit, Heads};
use leasehold::clock::Clock;
use leasehold::db::Db;
use leasehold::identity::{Identity, Who};
use reqwest::{Client, Response, StatusCode};
use serde_json::json;

use super::stage::{Stage, acquire, on};

/// What a busy machine may add to a bound of the contract.
const SLACK: Duration = Duration::from_secs(4);

/// Until the server ends the stream.
async fn ends_within_a_second(mut stream: Response, what: &str) {
    let ended = async { while let Ok(Some(_)) = stream.chunk().await {} };
    let bound = Duration::from_secs(1) + SLACK;
    assert!(tokio::time::timeout(bound, ended).await.is_ok(), "{what} goes on");
}

async fn greeted(mut stream: Response) -> Response {
    assert_eq!(stream.status(), StatusCode::OK);
    stream.chunk().await.unwrap().unwrap();
    stream
}

#[tokio::test]
async fn an_open_page_hears_nothing_more_once_its_session_is_revoked() {
    // Ended by an admin; by disabling the person; by leaving; and by taking the role away: each cuts the stream.
    let stage = Stage::start().await;
    let who = Who::system("test");
    stage.person("root", on(Role::Admin, None, None)).await;
    let bea = stage.person("bea", on(Role::Viewer, None, None)).await;
    let browser = stage.signed_in("bea").await;
    let stream = greeted(browser.get("/v1/events").await).await;
    let session = stage.identity().sessions().await.unwrap();
    let session = session.iter().find(|session| session.person_id == bea).unwrap();
    stage.identity().end_session(&who, &session.id).await.unwrap();
    ends_within_a_second(stream, "a stream of a revoked session").await;
    assert_eq!(browser.get("/v1/events").await.status(), StatusCode::UNAUTHORIZED);

    let browser = stage.signed_in("bea").await;
    let stream = greeted(browser.get("/v1/events").await).await;
    browser.post("/sign-out", &[]).await;
    ends_within_a_second(stream, "a stream of somebody who left").await;

    let browser = stage.signed_in("bea").await;
    let stream = greeted(browser.get("/v1/events").await).await;
    let narrower = on(Role::Viewer, None, Some("tenant_1"));
    stage.identity().set_grants(&who, &bea, narrower).await.unwrap();
    ends_within_a_second(stream, "a stream over more than is granted").await;

    let stream = greeted(browser.get("/v1/events").await).await;
    stage.identity().disable_person(&who, &bea).await.unwrap();
    ends_within_a_second(stream, "a stream of somebody disabled").await;
}

#[tokio::test]
async fn what_another_process_revokes_ends_streams_and_waiters_here() {
    // The token is revoked through the store, as `leasehold token revoke` does: its lease's stream and its waiter end.
    let stage = Stage::start().await;
    let token = stage.token("worker", on(Role::Client, None, None)).await;
    let (_, lease) = acquire(&stage, &token, "r").await;
    let path = format!("/v1/locks/{}/events", lease["leaseId"].as_str().unwrap());
    let stream = Client::new().get(stage.url(&path)).bearer_auth(token.expose());
    let stream = stream.send().await.unwrap();
    assert_eq!(stream.status(), StatusCode::OK);
    let body = json!({"resource": "r", "ownerId": "w2", "ttlSeconds": 30, "waitSeconds": 60});
    let waiting = Client::new().post(stage.url("/v1/locks/acquire")).json(&body);
    let waiting = waiting.bearer_auth(token.expose()).send();
    let revoke = async {
        crate::support::eventually::eventually("it waits", || async { stage.serving.leases.waiters() == 1 })
            .await;
        let db = Db::open(&stage.store).await.unwrap();
        let audit = Audit::new(db.clone(), Clock::start(), Heads::default());
        let elsewhere = Identity::open(db, audit, Clock::start()).await.unwrap();
        elsewhere
            .revoke_token(&Who::system("test"), "worker")
            .await
            .unwrap();
        ends_within_a_second(stream, "a stream of a revoked token").await;
    };
    let (answer, ()) = tokio::join!(waiting, revoke);
    assert_eq!(answer.unwrap().status(), StatusCode::UNAUTHORIZED);
    crate::support::eventually::eventually("nobody waits", || async { stage.serving.leases.waiters() == 0 })
        .await;
}

#[tokio::test]
async fn nobody_opens_more_streams_than_tabs() {
    // 50 of one person; the next is refused with 429, and one that is closed makes room.
    let stage = Stage::start().await;
    stage.person("bea", on(Role::Viewer, None, None)).await;
    let browser = stage.signed_in("bea").await;
    let mut streams = Vec::new();
    for _ in 0..50 {
        streams.push(greeted(browser.get("/v1/events").await).await);
    }
    let refused = browser.get("/v1/events").await;
    assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
    assert!(refused.headers().contains_key("retry-after"));
    drop(streams.pop());
    crate::support::eventually::eventually("there is room again", || async {
        browser.get("/v1/events").await.status() == StatusCode::OK
    })
    .await;
}
