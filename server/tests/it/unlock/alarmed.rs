//! Acting alone is told to everyone: a webhook hears it with the act, and hears that it was reviewed.

use domain::access::Role;
use domain::unlock::Tier;
use leasehold::identity::Who;
use leasehold::notify::{Kind, NewReceiver};
use serde_json::json;

use super::stage::{Caller, Held, Home, REASON, Stage, code, on, state};
use crate::support::ear::Ear;

const ALONE: &str = "nobody answers the pager";

/// A protected lock, its operator, and somebody who reviews.
async fn scene() -> (Stage, Held, Caller, Caller) {
    let stage = Stage::on(Home::sqlite(), "[notify]\nallow = [\"127.0.0.1/32\"]\n").await;
    let unlocks = &stage.serving.unlocks;
    let system = Who::system("test");
    unlocks
        .set_tier(&system, None, "jobs", Tier::Protected)
        .await
        .unwrap();
    let client = stage.token("client", on(Role::Client, None, None)).await;
    let ada = stage.person("ada", on(Role::Operator, None, None)).await;
    let bob = stage.person("bob", on(Role::Approver, None, None)).await;
    let held = stage.hold(&client, "jobs/close").await;
    (stage, held, ada, bob)
}

async fn add(stage: &Stage, name: &str, ear: &Ear) {
    let new = NewReceiver {
        name: name.to_owned(),
        kind: Kind::Webhook,
        urls: vec![ear.url.as_str().into()],
        secret: Some("a secret of thirty-two characters".into()),
    };
    stage
        .serving
        .notifier
        .add(&Who::system("test"), new)
        .await
        .unwrap();
}

#[tokio::test]
async fn breaking_a_lock_alone_is_told_to_everyone_and_nothing_else_is() {
    // Begun, refused for a weak second reason, and given up: silence. Done alone: each receiver hears who, why and what.
    // Reviewed: each hears that it is over.
    let (stage, held, ada, bob) = scene().await;
    let (one, two) = (Ear::open().await, Ear::open().await);
    add(&stage, "one", &one).await;
    add(&stage, "two", &two).await;
    let given_up = stage.begun(&ada, &held).await;
    let path = format!("/v1/unlocks/{given_up}/confirm");
    let weak = json!({"resource": held.resource, "breakGlassReason": ".........."});
    assert_eq!(
        code(&stage.post(&ada, &path, &weak).await),
        (422, "reason_too_weak")
    );
    let wrong = json!({"resource": "jobs/clos", "breakGlassReason": ALONE});
    assert_eq!(
        code(&stage.post(&ada, &path, &wrong).await),
        (422, "name_mismatch")
    );
    assert_eq!(
        state(&stage.act(&ada, &given_up, "cancel").await),
        (200, "cancelled")
    );
    let id = stage.begun(&ada, &held).await;
    let body = json!({"resource": held.resource, "breakGlassReason": ALONE});
    let done = stage
        .post(&ada, &format!("/v1/unlocks/{id}/confirm"), &body)
        .await;
    assert_eq!(state(&done), (200, "released"), "{}", done.1);
    for ear in [&one, &two] {
        let heard = ear.hears(1).await;
        assert_eq!(heard.len(), 1, "{heard:?}");
        let body = heard[0].json();
        let alert = &body["alerts"][0];
        let labels = json!({
            "alertname": "ForcedUnlockBreakGlass", "severity": "critical", "backend": "builtin",
            "resource": "jobs/close", "unlock": id,
        });
        assert_eq!((&body["status"], &alert["labels"]), (&json!("firing"), &labels));
        let said = |name: &str| alert["annotations"][name].as_str().unwrap().to_owned();
        assert_eq!(
            said("summary"),
            "ada breaks jobs/close on builtin alone (break-glass)"
        );
        assert_eq!(
            [said("who"), said("reason"), said("why_alone")],
            ["ada", REASON, ALONE]
        );
        assert_eq!(alert["generatorURL"], stage.url(&format!("/unlocks/{id}")));
    }
    assert_eq!(stage.act(&bob, &id, "review").await.0, 200);
    let over = one.hears(2).await[1].json();
    assert_eq!(
        (&over["status"], &over["alerts"][0]["annotations"]["description"]),
        (&json!("resolved"), &json!("bob has reviewed it."))
    );
    two.hears(2).await;
}

#[tokio::test]
async fn what_cannot_be_told_does_not_begin() {
    // The outbox refuses the message: neither act nor row of it; the lock is held.
    let (stage, held, ada, _bob) = scene().await;
    let ear = Ear::open().await;
    add(&stage, "one", &ear).await;
    let id = stage.begun(&ada, &held).await;
    stage
        .home
        .sql("CREATE TRIGGER full BEFORE INSERT ON deliveries BEGIN SELECT RAISE(ABORT, 'full'); END")
        .await;
    let body = json!({"resource": held.resource, "breakGlassReason": ALONE});
    let refused = stage
        .post(&ada, &format!("/v1/unlocks/{id}/confirm"), &body)
        .await;
    assert_eq!(code(&refused), (503, "audit_unavailable"), "{}", refused.1);
    assert!(stage.is_held(&ada, &held).await);
    assert!(!stage.told(&id).await.iter().any(|row| row.starts_with("act")));
    stage.home.sql("DROP TRIGGER full").await;
    let done = stage
        .post(&ada, &format!("/v1/unlocks/{id}/confirm"), &body)
        .await;
    assert_eq!(state(&done), (200, "released"), "{}", done.1);
    ear.hears(1).await;
}

#[tokio::test]
async fn who_would_act_alone_reads_before_whether_anybody_is_told() {
    // Without a receiver, and with one.
    let (stage, held, ada, _bob) = scene().await;
    let id = stage.begun(&ada, &held).await;
    let page = async || {
        let request = stage.request(&ada, reqwest::Method::GET, &format!("/unlocks/{id}?alone"));
        request.send().await.unwrap().text().await.unwrap()
    };
    let silent = page().await;
    assert!(
        silent.contains("Nobody will be told: no receiver is configured."),
        "{silent}"
    );
    let ear = Ear::open().await;
    add(&stage, "one", &ear).await;
    let told = page().await;
    assert!(
        told.contains("Everyone is told at once, through 1 receiver."),
        "{told}"
    );
}
