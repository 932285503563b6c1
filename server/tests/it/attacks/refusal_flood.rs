//! A principal without the permission repeats a request: what it can make the audit log grow by is bounded.

use domain::access::Role;
use serde_json::json;

use crate::support::{TestServer, on};

const REQUESTS: u64 = 300;

#[tokio::test]
async fn many_refused_unlocks_of_one_operator_are_counted() {
    // Each names a lock of another tenant, in bulk requests.
    let server = TestServer::start().await;
    let tenant = server
        .token("tenant", on(Role::Operator, None, Some("tenant_1:")))
        .await;
    let item = |number: u64| json!({"backend": "builtin", "resource": format!("tenant_2:{number}"), "generation": "1"});
    for first in (0..REQUESTS).step_by(50) {
        let items: Vec<_> = (first..first + 50).map(item).collect();
        let body = json!({"reason": "because I can", "items": items});
        let (status, answer) = server.as_user(&tenant).post("/v1/unlocks/bulk", &body).await;
        assert!(status < 500, "{status} {answer}");
    }
    // The counts are written when the server ends.
    let server = server.restart().await;
    let entries = server.audit_entries().await;
    let refused = entries
        .iter()
        .filter(|entry| entry.outcome == "forbidden")
        .count();
    assert!((200..250).contains(&refused), "{refused}");
    assert_eq!(server.rejections_recorded("forbidden").await, REQUESTS);
}

#[tokio::test]
async fn filters_of_an_export_are_recorded_in_part() {
    let server = TestServer::start().await;
    let auditor = server.token("auditor", on(Role::Auditor, None, None)).await;
    let path = format!("/v1/audit/export?format=csv&actor={}", "x".repeat(4_000));
    let (status, _) = server.as_user(&auditor).text(&path).await;
    assert_eq!(status, 200);
    let entries = server.audit_entries().await;
    let export = entries
        .iter()
        .find(|entry| entry.action == "AUDIT_EXPORT")
        .unwrap();
    let recorded = export.after.as_ref().unwrap().len();
    assert!((512..700).contains(&recorded), "{recorded}");
}
