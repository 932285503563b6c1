//! Revalidation: streams and waiters end with their permission, within a second.

use crate::support::{TestServer, on};
use std::time::Duration;

use domain::access::Role;
use leasehold::audit::{Audit, ChainCheckpoints};
use leasehold::identity::{Identity, Principal};
use reqwest::{Client, Method, Response};
use runtime::clock::Clock;
use runtime::db::Db;
use serde_json::json;

/// What a busy machine may add to a bound of the contract.
const SLACK: Duration = Duration::from_secs(4);

/// Until the server ends the stream.
async fn ends_within_a_second(mut stream: Response, what: &str) {
    let ended = async { while let Ok(Some(_)) = stream.chunk().await {} };
    let bound = Duration::from_secs(1) + SLACK;
    assert!(tokio::time::timeout(bound, ended).await.is_ok(), "{what} goes on");
}

async fn greeted(mut stream: Response) -> Response {
    assert_eq!(stream.status(), 200);
    stream.chunk().await.unwrap().unwrap();
    stream
}

#[tokio::test]
async fn a_revoked_session_ends_its_event_stream() {
    // Ended by an admin; by disabling the user; by leaving; and by taking the role away: each cuts the stream.
    let server = TestServer::builder().redis().start().await;
    let who = Principal::system("test");
    server.add_user("root", on(Role::Admin, None, None)).await;
    let bea = server.add_user("bea", on(Role::Viewer, None, None)).await;
    let browser = server.signed_in("bea").await;
    let stream = greeted(browser.get("/v1/events").await).await;
    let session = server.identity().sessions().await.unwrap();
    let session = session.iter().find(|session| session.user_id == bea).unwrap();
    server.identity().end_session(&who, &session.id).await.unwrap();
    ends_within_a_second(stream, "a stream of a revoked session").await;
    assert_eq!(browser.get("/v1/events").await.status(), 401);

    let browser = server.signed_in("bea").await;
    let stream = greeted(browser.get("/v1/events").await).await;
    browser.post("/sign-out", &[]).await;
    ends_within_a_second(stream, "the stream of a signed-out user").await;

    let browser = server.signed_in("bea").await;
    let stream = greeted(browser.get("/v1/events").await).await;
    let narrower = on(Role::Viewer, None, Some("tenant_1"));
    server.identity().set_grants(&who, &bea, narrower).await.unwrap();
    ends_within_a_second(stream, "a stream over more than is granted").await;

    let stream = greeted(browser.get("/v1/events").await).await;
    server.identity().disable_user(&who, &bea).await.unwrap();
    ends_within_a_second(stream, "the stream of a disabled user").await;
}

#[tokio::test]
async fn revocation_by_another_process_ends_streams_and_waiters() {
    // The token is revoked through the store, as `leasehold token revoke` does: its lease's stream and its waiter end.
    let server = TestServer::builder().redis().start().await;
    let token = server.token("worker", on(Role::Client, None, None)).await;
    let (_, lease) = server.as_user(&token).acquire("r").await;
    let path = format!("/v1/locks/{}/events", lease["leaseId"].as_str().unwrap());
    let stream = Client::new().get(server.url(&path)).bearer_auth(token.secret());
    let stream = stream.send().await.unwrap();
    assert_eq!(stream.status(), 200);
    let body = json!({"resource": "r", "ownerId": "w2", "ttlSeconds": 30, "waitSeconds": 60});
    let waiting = Client::new().post(server.url("/v1/locks/acquire")).json(&body);
    let waiting = waiting.bearer_auth(token.secret()).send();
    let revoke = async {
        testkit::eventually("it waits", || async { server.serving.leases.waiters() == 1 }).await;
        let db = Db::open(&server.store.url).await.unwrap();
        let audit = Audit::new(db.clone(), Clock::start(), ChainCheckpoints::default());
        let elsewhere = Identity::open(db, audit, Clock::start()).await.unwrap();
        elsewhere
            .revoke_token(&Principal::system("test"), "worker")
            .await
            .unwrap();
        ends_within_a_second(stream, "a stream of a revoked token").await;
    };
    let (answer, ()) = tokio::join!(waiting, revoke);
    assert_eq!(answer.unwrap().status(), 401);
    testkit::eventually("nobody waits", || async { server.serving.leases.waiters() == 0 }).await;
}

#[tokio::test]
async fn event_streams_per_session_are_limited() {
    // 50 of one user; the next is refused with 429, and one that is closed makes room.
    let server = TestServer::builder().redis().start().await;
    server.add_user("bea", on(Role::Viewer, None, None)).await;
    let browser = server.signed_in("bea").await;
    let mut streams = Vec::new();
    for _ in 0..50 {
        streams.push(greeted(browser.get("/v1/events").await).await);
    }
    let refused = browser.get("/v1/events").await;
    assert_eq!(refused.status(), 429);
    assert!(refused.headers().contains_key("retry-after"));
    drop(streams.pop());
    testkit::eventually("there is room again", || async {
        browser.get("/v1/events").await.status() == 200
    })
    .await;
}

#[tokio::test]
async fn an_event_stream_is_no_use_of_its_session() {
    // A hidden tab opens it once a minute; ten minutes after the last use, a request of a page counts.
    let server = TestServer::start().await;
    let ada = server.user("ada", on(Role::Viewer, None, None)).await;
    let age = "UPDATE sessions SET last_seen_at = last_seen_at - 600000";
    server.store.sql(age).await;
    let seen_at = async || server.identity().sessions().await.unwrap()[0].seen_at;
    let before = seen_at().await;
    let stream = server.as_user(&ada).send(Method::GET, "/v1/events").await;
    assert_eq!((stream.status().as_u16(), seen_at().await), (200, before));
    server.as_user(&ada).get("/v1/me").await;
    assert!(seen_at().await > before);
    // Without a use the stream is refused like any request.
    let unused = "UPDATE sessions SET last_seen_at = last_seen_at - 1801000";
    server.store.sql(unused).await;
    let refused = server.as_user(&ada).send(Method::GET, "/v1/events").await;
    assert_eq!(refused.status(), 401);
}
