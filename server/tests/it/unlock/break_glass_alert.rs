//! Break-glass notifies every receiver: a webhook receives the alert with the release, and its resolution with the
//! review.

use crate::support::{TestCaller, TestServer, code, on};
use crate::unlock::requests::{HeldLock, REASON, state};
use domain::access::Role;
use leasehold::identity::Principal;
use leasehold::notify::{NewReceiver, ReceiverKind};
use serde_json::json;

use testkit::eventually;

use crate::support::webhook_sink::{ReceivedRequest, WebhookSink};

const ALONE: &str = "no approver answers the pager";

/// A protected lock, its operator, and a reviewer.
async fn scene() -> (TestServer, HeldLock, TestCaller, TestCaller) {
    let server = TestServer::builder()
        .config("[notify]\nallowed_networks = [\"127.0.0.1/32\"]\n")
        .start()
        .await;
    server.protect("jobs").await;
    let client = server.token("client", on(Role::Client, None, None)).await;
    let ada = server.user("ada", on(Role::Operator, None, None)).await;
    let bob = server.user("bob", on(Role::Approver, None, None)).await;
    let held = server.hold(&client, "jobs/close").await;
    (server, held, ada, bob)
}

async fn add(server: &TestServer, name: &str, sink: &WebhookSink) {
    let new = NewReceiver {
        name: name.to_owned(),
        kind: ReceiverKind::Webhook,
        urls: vec![sink.url.as_str().into()],
        secret: Some("a secret of thirty-two characters".into()),
    };
    server
        .serving
        .notifier
        .add(&Principal::system("test"), new)
        .await
        .unwrap();
}

#[tokio::test]
async fn break_glass_notifies_every_receiver() {
    // Begun, refused for a weak second reason, and cancelled: no notification. Released by break-glass: each receiver
    // gets user, reason and lock. Reviewed: each receives the resolution.
    let (server, held, ada, bob) = scene().await;
    let (one, two) = (WebhookSink::open().await, WebhookSink::open().await);
    add(&server, "one", &one).await;
    add(&server, "two", &two).await;
    let cancelled = server.begun(&ada, &held).await;
    let path = format!("/v1/unlocks/{cancelled}/confirm");
    let weak = json!({"resource": held.resource, "breakGlassReason": ".........."});
    assert_eq!(
        code(&server.as_user(&ada).post(&path, &weak).await),
        (422, "reason_too_weak")
    );
    let wrong = json!({"resource": "jobs/clos", "breakGlassReason": ALONE});
    assert_eq!(
        code(&server.as_user(&ada).post(&path, &wrong).await),
        (422, "name_mismatch")
    );
    assert_eq!(
        state(&server.unlock_step(&ada, &cancelled, "cancel").await),
        (200, "cancelled")
    );
    let id = server.begun(&ada, &held).await;
    let body = json!({"resource": held.resource, "breakGlassReason": ALONE});
    let done = server
        .as_user(&ada)
        .post(&format!("/v1/unlocks/{id}/confirm"), &body)
        .await;
    assert_eq!(state(&done), (200, "released"), "{}", done.1);
    for sink in [&one, &two] {
        let received = sink.wait_for(1).await;
        let body = received[0].json();
        let alert = &body["alerts"][0];
        let labels = json!({
            "alertname": "ForcedUnlockBreakGlass", "severity": "critical", "backend": "builtin",
            "resource": "jobs/close", "unlock": id,
        });
        assert_eq!((&body["status"], &alert["labels"]), (&json!("firing"), &labels));
        let annotation = |name: &str| alert["annotations"][name].as_str().unwrap().to_owned();
        assert_eq!(
            annotation("summary"),
            "ada unlocks jobs/close on builtin without a second approver (break-glass)"
        );
        assert_eq!(
            [annotation("who"), annotation("reason"), annotation("why_alone")],
            ["ada", REASON, ALONE]
        );
        assert_eq!(alert["generatorURL"], server.url(&format!("/unlocks/{id}")));
    }
    assert_eq!(server.unlock_step(&bob, &id, "review").await.0, 200);
    // The rule on forced unlocks may notify in between.
    let resolved = |received: &ReceivedRequest| received.json()["status"] == "resolved";
    eventually("the end of it", async || one.received().iter().any(resolved)).await;
    let over = one
        .received()
        .iter()
        .find(|received| resolved(received))
        .unwrap()
        .json();
    assert_eq!(
        (&over["status"], &over["alerts"][0]["annotations"]["description"]),
        (&json!("resolved"), &json!("bob has reviewed it."))
    );
    two.wait_for(2).await;
}

#[tokio::test]
async fn break_glass_without_notification_does_not_begin() {
    // The outbox refuses the message: neither act nor row of it; the lock is held.
    let (server, held, ada, _bob) = scene().await;
    let sink = WebhookSink::open().await;
    add(&server, "one", &sink).await;
    let id = server.begun(&ada, &held).await;
    server
        .store
        .sql("CREATE TRIGGER full BEFORE INSERT ON deliveries BEGIN SELECT RAISE(ABORT, 'full'); END")
        .await;
    let body = json!({"resource": held.resource, "breakGlassReason": ALONE});
    let refused = server
        .as_user(&ada)
        .post(&format!("/v1/unlocks/{id}/confirm"), &body)
        .await;
    assert_eq!(code(&refused), (503, "audit_unavailable"), "{}", refused.1);
    assert!(server.is_held(&ada, &held).await);
    assert!(
        !server
            .unlock_phases(&id)
            .await
            .iter()
            .any(|row| row.starts_with("act"))
    );
    server.store.sql("DROP TRIGGER full").await;
    let done = server
        .as_user(&ada)
        .post(&format!("/v1/unlocks/{id}/confirm"), &body)
        .await;
    assert_eq!(state(&done), (200, "released"), "{}", done.1);
    sink.wait_for(1).await;
}

#[tokio::test]
async fn the_break_glass_form_names_its_receivers() {
    // Without a receiver, and with one.
    let (server, held, ada, _bob) = scene().await;
    let id = server.begun(&ada, &held).await;
    let page = async || {
        let request = server
            .as_user(&ada)
            .request(reqwest::Method::GET, &format!("/unlocks/{id}?break-glass"));
        request.send().await.unwrap().text().await.unwrap()
    };
    let silent = page().await;
    assert!(
        silent.contains("No notification: no receiver is configured."),
        "{silent}"
    );
    let sink = WebhookSink::open().await;
    add(&server, "one", &sink).await;
    let shown = page().await;
    assert!(
        shown.contains("Notifications go out at once, through 1\u{a0}receiver."),
        "{shown}"
    );
}
