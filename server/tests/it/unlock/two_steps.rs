//! The two steps without a fault, and every way in which an intent ends.

use crate::support::{Store, TestServer, code};
use crate::unlock::requests::state;
use serde_json::{Value, json};

use testkit::eventually;

async fn a_lease_is_looked_at_and_released_once(home: Store) {
    // Held, with a waiter; reviewed, confirmed, released; a second confirm changes nothing; three audit entries, the
    // intent before the release.
    let server = TestServer::builder().start_on(home).await;
    let operator = server.operator().await;
    let held = server.hold(&operator, "jobs/billing-close").await;
    let id = server.begun(&operator, &held).await;
    let unlock = server.unlock_state(&operator, &id).await;
    assert_eq!(unlock["state"], "pending");
    assert_eq!(unlock["observed"]["ownerId"], "worker-7");
    assert_eq!(unlock["observed"]["leaseId"], Value::Null);
    assert!(unlock["observed"]["unknown"]["leaseId"].is_string(), "{unlock}");
    assert_eq!(unlock["observed"]["generation"], held.generation);
    assert_eq!(unlock["observed"]["fencingToken"], "1");
    assert!(unlock["observed"]["remainingMs"].as_i64().unwrap() > 500_000);
    assert!(unlock["observed"]["unknown"]["renewing"].is_string(), "{unlock}");
    assert_eq!(
        (&unlock["blastRadius"], &unlock["confirm"]["type"]),
        (&json!([]), &json!("jobs/billing-close"))
    );
    assert!(
        server.is_held(&operator, &held).await,
        "nothing is released by looking"
    );

    let reply = server.confirm(&operator, &id, "jobs/billing-close").await;
    assert_eq!(state(&reply), (200, "released"), "{}", reply.1);
    assert!(!server.is_held(&operator, &held).await);
    let again = server.confirm(&operator, &id, "jobs/billing-close").await;
    assert_eq!(code(&again), (409, "already_used"));
    assert_eq!(
        server.unlock_phases(&id).await,
        [
            "intent pending",
            "act begun",
            "outcome released",
            "intent already_used"
        ]
    );
    let rows = server.unlock_entries().await;
    let before: Value = serde_json::from_str(rows[0].before.as_deref().unwrap()).unwrap();
    let after: Value = serde_json::from_str(rows[2].after.as_deref().unwrap()).unwrap();
    assert_eq!(
        (&before["ownerId"], &before["fencingToken"]),
        (&json!("worker-7"), &json!("1"))
    );
    assert_eq!(
        (&after["state"], &after["now"]),
        (&json!("released"), &Value::Null)
    );
    assert_eq!(rows[1].reason.as_deref(), Some(crate::unlock::requests::REASON));
    assert_eq!(rows[1].role.as_deref(), Some("operator"));
    let shown = &reply.1["audit"];
    assert_eq!(
        (
            shown["intent"].as_str(),
            shown["act"].as_str(),
            shown["outcome"].as_str()
        ),
        (Some(&*rows[0].id), Some(&*rows[1].id), Some(&*rows[2].id))
    );
}

#[tokio::test]
async fn a_lease_is_reviewed_and_released_once_on_sqlite() {
    // The same scenario on this store.
    a_lease_is_looked_at_and_released_once(Store::sqlite()).await;
}

#[tokio::test]
async fn a_lease_is_reviewed_and_released_once_on_postgres() {
    // The same scenario on this store.
    a_lease_is_looked_at_and_released_once(Store::postgres().await).await;
}

#[tokio::test]
async fn next_waiter_and_new_holder_are_reported() {
    // One waiter: named as next, and the new holder in the outcome, with the next token.
    let server = TestServer::start().await;
    let operator = server.operator().await;
    let held = server.hold(&operator, "r").await;
    let body = json!({"resource": "r", "ownerId": "worker-9", "ttlSeconds": 600, "waitSeconds": 60});
    let waiting = server.as_user(&operator).post("/v1/locks/acquire", &body);
    let unlocking = async {
        let id = loop {
            let id = server.begun(&operator, &held).await;
            if server.unlock_state(&operator, &id).await["next"] == "worker-9" {
                break id;
            }
            assert_eq!(
                state(&server.unlock_step(&operator, &id, "cancel").await),
                (200, "cancelled")
            );
        };
        let shown = server.unlock_state(&operator, &id).await;
        assert_eq!(shown["observed"]["waiters"][0]["ownerId"], "worker-9");
        server.confirm(&operator, &id, "r").await
    };
    let ((_, granted), reply) = futures::join!(waiting, unlocking);
    assert_eq!(state(&reply), (200, "released"));
    assert_eq!(
        (&granted["acquired"], &granted["fencingToken"]),
        (&json!(true), &json!(2))
    );
    let now = &reply.1["outcome"]["now"];
    // The grant may come a moment after the act.
    assert!(now.is_null() || now["ownerId"] == "worker-9", "{now}");
}

#[tokio::test]
async fn a_holder_that_changed_is_not_touched() {
    // Released and acquired by another owner between review and confirm: 409 with both holders, and the next owner's lease stays.
    let server = TestServer::start().await;
    let operator = server.operator().await;
    let held = server.hold(&operator, "r").await;
    let id = server.begun(&operator, &held).await;
    let path = format!("/v1/locks/{}", held.lease);
    crate::support::reply(server.as_user(&operator).request(reqwest::Method::DELETE, &path)).await;
    let next = server.acquire(&operator, "r", "worker-9").await;
    let reply = server.confirm(&operator, &id, "r").await;
    assert_eq!(code(&reply), (409, "holder_changed"), "{}", reply.1);
    assert_eq!(
        (&reply.1["before"]["ownerId"], &reply.1["now"]["ownerId"]),
        (&json!("worker-7"), &json!("worker-9"))
    );
    let renewed = format!("/v1/locks/{}/renew", next["leaseId"].as_str().unwrap());
    assert_eq!(server.as_user(&operator).post(&renewed, &json!({})).await.0, 200);
    assert_eq!(
        server.unlock_state(&operator, &id).await["state"],
        "holder_changed"
    );
    assert_eq!(
        server.unlock_phases(&id).await,
        ["intent pending", "outcome holder_changed"]
    );
    // The reviewed holding is no longer current: no intent, and the audit log says so.
    eventually("the next one is seen", async || {
        let (_, lock) = server.as_user(&operator).get("/v1/inventory/builtin/r").await;
        lock["ownerId"] == "worker-9"
    })
    .await;
    let stale = server.begin(&operator, &held).await;
    assert_eq!(code(&stale), (409, "holder_changed"), "{}", stale.1);
    assert_eq!(stale.1["now"]["ownerId"], "worker-9");
    assert_eq!(
        server.unlock_entries().await.last().unwrap().outcome,
        "holder_changed"
    );
}

#[tokio::test]
async fn a_lock_released_meanwhile_is_already_free() {
    // Released between review and confirm; and before the review.
    let server = TestServer::start().await;
    let operator = server.operator().await;
    let held = server.hold(&operator, "r").await;
    let id = server.begun(&operator, &held).await;
    let path = format!("/v1/locks/{}", held.lease);
    crate::support::reply(server.as_user(&operator).request(reqwest::Method::DELETE, &path)).await;
    let reply = server.confirm(&operator, &id, "r").await;
    assert_eq!(state(&reply), (200, "already_free"), "{}", reply.1);
    let (status, lease) = server.as_user(&operator).get(&path).await;
    assert_eq!(
        (status, &lease["state"]),
        (200, &json!("released")),
        "not revoked"
    );
    let late = server.begin(&operator, &held).await;
    assert_eq!(
        (code(&late), &late.1["now"]),
        ((409, "holder_changed"), &Value::Null)
    );
    let mut never = held.clone();
    never.resource = "never-held".to_owned();
    assert_eq!(code(&server.begin(&operator, &never).await), (404, "not_found"));
    never.backend = "nowhere";
    assert_eq!(code(&server.begin(&operator, &never).await), (404, "not_found"));
}

#[tokio::test]
async fn an_intent_ends_after_two_minutes_or_on_cancel() {
    // The clock is moved in the store. Confirmed too late; expired without a request; cancelled.
    let server = TestServer::start().await;
    let operator = server.operator().await;
    let held = server.hold(&operator, "r").await;
    let (confirmed, forgotten, cancelled) = (
        server.begun(&operator, &held).await,
        server.begun(&operator, &held).await,
        server.begun(&operator, &held).await,
    );
    let shown = server.unlock_state(&operator, &confirmed).await;
    let moment = |name: &str| {
        shown[name]
            .as_str()
            .unwrap()
            .parse::<chrono::DateTime<chrono::Utc>>()
            .unwrap()
    };
    assert_eq!((moment("expiresAt") - moment("createdAt")).num_seconds(), 120);
    assert_eq!(
        state(&server.unlock_step(&operator, &cancelled, "cancel").await),
        (200, "cancelled")
    );
    server
        .store
        .sql("UPDATE unlocks SET expires_at = expires_at - 120000")
        .await;
    assert_eq!(
        code(&server.confirm(&operator, &confirmed, "r").await),
        (410, "intent_expired")
    );
    assert_eq!(
        code(&server.confirm(&operator, &cancelled, "r").await),
        (409, "already_used")
    );
    eventually("it ran out by itself", async || {
        server.unlock_state(&operator, &forgotten).await["state"] == "expired"
    })
    .await;
    assert_eq!(
        server.unlock_phases(&forgotten).await,
        ["intent pending", "outcome expired"]
    );
    assert_eq!(
        code(&server.unlock_step(&operator, &forgotten, "cancel").await),
        (410, "intent_expired")
    );
    assert!(server.is_held(&operator, &held).await);
}

#[tokio::test]
async fn one_of_many_concurrent_confirmations_releases() {
    // Twenty at the same moment: one releases, the others get that it was used; one release in the audit log.
    let server = TestServer::start().await;
    let operator = server.operator().await;
    let held = server.hold(&operator, "r").await;
    let id = server.begun(&operator, &held).await;
    let all = (0..20).map(|_| server.confirm(&operator, &id, "r"));
    let replies = futures::future::join_all(all).await;
    let released = replies
        .iter()
        .filter(|reply| state(reply) == (200, "released"))
        .count();
    let refused = replies
        .iter()
        .filter(|reply| code(reply) == (409, "already_used"))
        .count();
    assert_eq!((released, refused), (1, 19), "{replies:?}");
    let phases = server.unlock_phases(&id).await;
    assert_eq!(
        phases.iter().filter(|row| *row == "act begun").count(),
        1,
        "{phases:?}"
    );
    assert_eq!(
        phases.iter().filter(|row| *row == "intent already_used").count(),
        19
    );
}
