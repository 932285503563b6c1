//! Forced unlocks, protected prefixes, and the audit log of both.

use domain::access::Role;
use domain::unlock::ProtectionLevel;
use reqwest::Method;
use serde_json::{Value, json};

use super::assert_snapshot;
use super::http_client::SnapshotClient;
use crate::support::{TestServer, on};
use crate::unlock::requests::{HeldLock, REASON};

fn item(held: &HeldLock) -> Value {
    json!({"backend": held.backend, "resource": held.resource, "generation": held.generation})
}

fn intent(held: &HeldLock) -> Value {
    let mut intent = item(held);
    intent["reason"] = json!(REASON);
    intent
}

#[tokio::test]
async fn bodies_of_forced_unlocks() {
    // One that is released, one that is cancelled, two at once.
    let server = TestServer::start().await;
    let operator = server.token("operator", on(Role::Operator, None, None)).await;
    let client = SnapshotClient {
        server: &server,
        caller: &operator,
    };
    let held = server.hold(&operator, "jobs/a").await;
    let begun = client.post("/v1/unlocks", intent(&held)).await;
    let path = format!("/v1/unlocks/{}", begun["unlockId"].as_str().unwrap());
    client
        .send(Method::GET, "/v1/unlocks/{unlockId}", &path, Value::Null)
        .await;
    let confirm = (
        "/v1/unlocks/{unlockId}/confirm",
        format!("{path}/confirm"),
        json!({"resource": "jobs/a"}),
    );
    client.send(Method::POST, confirm.0, &confirm.1, confirm.2).await;
    let held = server.hold(&operator, "jobs/b").await;
    let begun = server.begin(&operator, &held).await.1;
    let cancel = format!("/v1/unlocks/{}/cancel", begun["unlockId"].as_str().unwrap());
    client
        .send(
            Method::POST,
            "/v1/unlocks/{unlockId}/cancel",
            &cancel,
            Value::Null,
        )
        .await;
    let bulk = json!({"items": [item(&held)], "reason": REASON});
    let begun = client.post("/v1/unlocks/bulk", bulk).await;
    let id = &begun["results"][0]["unlock"]["unlockId"];
    let typed = json!({"items": [{"unlockId": id, "resource": "jobs/b"}]});
    client.post("/v1/unlocks/bulk/confirm", typed).await;
    let auditor = server.token("auditor", on(Role::Auditor, None, None)).await;
    let query = "action=FORCE_UNLOCK&prefix=jobs/a";
    let client = SnapshotClient {
        server: &server,
        caller: &auditor,
    };
    let path = format!("/v1/audit?{query}");
    client.send(Method::GET, "/v1/audit", &path, Value::Null).await;
    for format in ["csv", "json"] {
        let path = format!("/v1/audit/export?format={format}&{query}");
        let (status, text) = server.as_user(&auditor).text(&path).await;
        assert_eq!(status, 200, "{text}");
        assert_snapshot(&format!("get-v1-audit-export-{format}"), &text);
    }
}

#[tokio::test]
async fn bodies_of_approval_and_review() {
    // A protected lock that a second approver approves, and one that its operator unlocks alone, which is reviewed.
    let server = TestServer::start().await;
    let admin = server.token("admin", on(Role::Admin, None, None)).await;
    server.protect("jobs/").await;
    let client = SnapshotClient {
        server: &server,
        caller: &admin,
    };
    client.get("/v1/protected-prefixes").await;
    server
        .set_protection("jobs/open", ProtectionLevel::Standard)
        .await;
    let (path, again) = (
        "/v1/protected-prefixes",
        json!({"prefix": "jobs/", "protection": "protected"}),
    );
    client.send(Method::PUT, path, path, again).await;
    let ada = server.user("ada", on(Role::Operator, None, None)).await;
    let grace = server.user("grace", on(Role::Approver, None, None)).await;
    let holder = server.token("holder", on(Role::Client, None, None)).await;
    let held = server.hold(&holder, "jobs/a").await;
    let begun = server.begin(&ada, &held).await.1;
    let approve = format!("/v1/unlocks/{}/approve", begun["unlockId"].as_str().unwrap());
    let client = SnapshotClient {
        server: &server,
        caller: &grace,
    };
    client
        .send(
            Method::POST,
            "/v1/unlocks/{unlockId}/approve",
            &approve,
            Value::Null,
        )
        .await;
    let held = server.hold(&holder, "jobs/b").await;
    let begun = server.begin(&ada, &held).await.1;
    let path = format!("/v1/unlocks/{}", begun["unlockId"].as_str().unwrap());
    let alone = json!({"resource": "jobs/b", "breakGlassReason": "the approvers do not answer the phone"});
    let (status, done) = server
        .as_user(&ada)
        .post(&format!("{path}/confirm"), &alone)
        .await;
    assert_eq!((status, &done["state"]), (200, &json!("released")), "{done}");
    let review = format!("{path}/review");
    client
        .send(
            Method::POST,
            "/v1/unlocks/{unlockId}/review",
            &review,
            Value::Null,
        )
        .await;
}
