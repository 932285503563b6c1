//! Readers with unlimited, limited and no permission; in the list, in exports, on the pages.

use super::audit_server::{AuditServer, about};
use crate::support::{Store, on};
use domain::access::Role;
use reqwest::Method;
use serde_json::json;

async fn each_reader_sees_their_own(home: Store) {
    let server = AuditServer::on(home).await;
    let auditor = server.auditor().await;
    let tenant = server
        .token("tenant", on(Role::Auditor, None, Some("tenant_1")))
        .await;
    let backend = server.token("backend", on(Role::Auditor, Some("db"), None)).await;
    let both = server
        .token("both", on(Role::Auditor, Some("cache"), Some("tenant_2:")))
        .await;
    let mut rows = Vec::new();
    for (place, name) in [
        ("cache", "tenant_1:a"),
        ("db", "tenant_1"),
        ("cache", "tenant_12:a"),
        ("db", "tenant_2:a"),
        ("cache", "tenant_2:b"),
    ] {
        rows.push(server.audit.append(about(place, name)).await.unwrap().seq);
    }
    let all = server.ids(&auditor, "limit=1000").await;
    assert_eq!(
        all.len(),
        usize::try_from(rows[4]).unwrap(),
        "everything since the first row"
    );
    assert_eq!(server.ids(&tenant, "").await, [rows[1], rows[0]]);
    assert_eq!(server.ids(&backend, "").await, [rows[3], rows[1]]);
    assert_eq!(server.ids(&both, "").await, [rows[4]]);
    // Asking for others finds nothing, and by number there is no such row.
    for query in [
        "prefix=tenant_12",
        "prefix=tenant_2",
        "action=TOKEN_CREATE",
        "actor=test",
        "action=LOGIN",
    ] {
        assert_eq!(server.ids(&tenant, query).await, [0; 0], "{query}");
    }
    for (row, status) in [(rows[0], 200), (rows[2], 404), (1, 404)] {
        let path = format!("/audit/{row}");
        assert_eq!(server.as_user(&tenant).text(&path).await.0, status, "{path}");
    }
    let (_, csv) = server.as_user(&tenant).text("/v1/audit/export?format=csv").await;
    assert_eq!(csv.lines().count(), 3, "{csv}");
    let (_, page) = server.as_user(&tenant).text("/audit").await;
    assert!(page.contains("tenant_1:a") && !page.contains("tenant_12:a") && !page.contains("tenant_2"));
}

#[tokio::test]
async fn a_limited_reader_sees_only_entries_in_scope() {
    // Whole segments; a backend; both at once. Entries about no lock require unlimited
    // permission.
    each_reader_sees_their_own(Store::sqlite()).await;
    each_reader_sees_their_own(Store::postgres().await).await;
}

#[tokio::test]
async fn readers_without_permission_are_refused_everywhere() {
    // Every role without the permission: 403 as a problem for programs, and as a page for users.
    let server = AuditServer::on(Store::sqlite()).await;
    for role in [Role::Viewer, Role::Operator, Role::Approver, Role::Client] {
        let caller = server.token(role.as_str(), on(role, None, None)).await;
        for path in ["/v1/audit", "/v1/audit/export?format=csv"] {
            let (status, problem) = server.as_user(&caller).get(path).await;
            assert_eq!(
                (status, &problem["code"]),
                (403, &json!("forbidden")),
                "{role:?} {path}"
            );
        }
        for path in ["/audit", "/audit/1"] {
            let (status, page) = server.as_user(&caller).text(path).await;
            assert_eq!(status, 403);
            assert!(
                page.contains("Your role does not have the permission for this page")
                    && page.contains("audit read"),
                "{page}"
            );
            assert!(
                !page.contains("href=\"/audit\""),
                "no link to what may not be opened"
            );
        }
        let (_, locks) = server.as_user(&caller).text("/locks").await;
        assert!(!locks.contains("href=\"/audit\""));
    }
    let auditor = server.auditor().await;
    let (_, locks) = server.as_user(&auditor).text("/locks").await;
    assert!(locks.contains("href=\"/audit\""));
    let (_, page) = server.as_user(&auditor).text("/settings").await;
    assert!(page.contains("href=\"/audit\""));
}

#[tokio::test]
async fn foreign_casualties_are_hidden_from_a_tenant() {
    // A lease with keys of two tenants: a tenant reads how many more, an auditor reads which.
    let server = AuditServer::on(Store::sqlite()).await;
    let auditor = server.auditor().await;
    let tenant = server
        .token("tenant", on(Role::Auditor, None, Some("tenant_1")))
        .await;
    let mut entry = about("coord", "tenant_1:a");
    entry.before = Some(json!({"dies": ["key: tenant_1:b", "key: tenant_2:secret"]}));
    let row = server.audit.append(entry).await.unwrap().seq;
    for path in [
        "/v1/audit".to_owned(),
        "/v1/audit/export".to_owned(),
        format!("/audit/{row}"),
    ] {
        let (_, all) = server.as_user(&auditor).text(&path).await;
        let (_, own) = server.as_user(&tenant).text(&path).await;
        assert!(all.contains("tenant_2:secret"), "{path}");
        assert!(
            own.contains("tenant_1:b") && !own.contains("tenant_2:secret"),
            "{path}: {own}"
        );
        assert!(
            own.contains("1 more, under names that you may not read"),
            "{path}: {own}"
        );
    }
}

#[tokio::test]
async fn rejected_read_of_the_audit_log_changes_nothing() {
    // The audit log is read and never written over HTTP.
    let server = AuditServer::on(Store::sqlite()).await;
    let auditor = server.auditor().await;
    for method in [Method::POST, Method::PUT, Method::DELETE, Method::PATCH] {
        for path in ["/v1/audit", "/v1/audit/export"] {
            let answer = server.as_user(&auditor).send(method.clone(), path).await;
            assert_eq!(answer.status(), 405, "{method} {path}");
        }
    }
    assert!(server.is_whole().await);
}
