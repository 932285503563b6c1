//! Who reads what: everything, one's own locks, nothing; in the list, in a file, on the pages.

use domain::access::Role;
use reqwest::Method;
use serde_json::json;

use super::console::{Console, about, on};
use super::stage::Home;

async fn each_reader_sees_their_own(home: Home) {
    let console = Console::on(home).await;
    let auditor = console.auditor().await;
    let tenant = console
        .token("tenant", on(Role::Auditor, None, Some("tenant_1")))
        .await;
    let backend = console
        .token("backend", on(Role::Auditor, Some("db"), None))
        .await;
    let both = console
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
        rows.push(console.audit.append(about(place, name)).await.unwrap().seq);
    }
    let all = console.ids(&auditor, "limit=1000").await;
    assert_eq!(
        all.len(),
        usize::try_from(rows[4]).unwrap(),
        "everything since the first row"
    );
    assert_eq!(console.ids(&tenant, "").await, [rows[1], rows[0]]);
    assert_eq!(console.ids(&backend, "").await, [rows[3], rows[1]]);
    assert_eq!(console.ids(&both, "").await, [rows[4]]);
    // Asking for others finds nothing, and by number there is no such row.
    for query in [
        "prefix=tenant_12",
        "prefix=tenant_2",
        "action=TOKEN_CREATE",
        "actor=test",
        "action=LOGIN",
    ] {
        assert_eq!(console.ids(&tenant, query).await, [0; 0], "{query}");
    }
    for (row, status) in [(rows[0], 200), (rows[2], 404), (1, 404)] {
        let path = format!("/audit/{row}");
        assert_eq!(console.text(&tenant, &path).await.0, status, "{path}");
    }
    let (_, csv) = console.text(&tenant, "/v1/audit/export?format=csv").await;
    assert_eq!(csv.lines().count(), 3, "{csv}");
    let (_, page) = console.text(&tenant, "/audit").await;
    assert!(page.contains("tenant_1:a") && !page.contains("tenant_12:a") && !page.contains("tenant_2"));
}

#[tokio::test]
async fn a_reader_of_one_tenant_or_backend_sees_its_rows_alone() {
    // Whole segments; a backend; both at once. Rows about no lock are for those who may read everything.
    each_reader_sees_their_own(Home::sqlite()).await;
    each_reader_sees_their_own(Home::postgres().await).await;
}

#[tokio::test]
async fn who_may_not_read_is_refused_at_every_door() {
    // A viewer and an operator: 403 as a problem for programs, and as a page that says so for people.
    let console = Console::on(Home::sqlite()).await;
    for role in [Role::Viewer, Role::Operator, Role::Approver, Role::Client] {
        let caller = console.token(role.wire(), on(role, None, None)).await;
        for path in ["/v1/audit", "/v1/audit/export?format=csv"] {
            let (status, problem) = console.get(&caller, path).await;
            assert_eq!(
                (status, &problem["code"]),
                (403, &json!("forbidden")),
                "{role:?} {path}"
            );
        }
        for path in ["/audit", "/audit/1"] {
            let (status, page) = console.text(&caller, path).await;
            assert_eq!(status, 403);
            assert!(
                page.contains("This page is not for your role") && page.contains("audit read"),
                "{page}"
            );
            assert!(
                !page.contains("href=\"/audit\""),
                "no link to what may not be opened"
            );
        }
        let (_, locks) = console.text(&caller, "/locks").await;
        assert!(!locks.contains("data-may=\"audit\""));
    }
    let auditor = console.auditor().await;
    let (_, locks) = console.text(&auditor, "/locks").await;
    assert!(locks.contains("data-may=\"audit\"") && locks.contains("href=\"/audit\""));
    let (_, page) = console.text(&auditor, "/settings").await;
    assert!(page.contains("href=\"/audit\""));
}

#[tokio::test]
async fn names_of_others_that_would_have_died_are_not_told_to_a_tenant() {
    // A lease with keys of two tenants: the one reads how many more, an auditor reads which.
    let console = Console::on(Home::sqlite()).await;
    let auditor = console.auditor().await;
    let tenant = console
        .token("tenant", on(Role::Auditor, None, Some("tenant_1")))
        .await;
    let mut entry = about("coord", "tenant_1:a");
    entry.before = Some(json!({"dies": ["key: tenant_1:b", "key: tenant_2:secret"]}));
    let row = console.audit.append(entry).await.unwrap().seq;
    for path in [
        "/v1/audit".to_owned(),
        "/v1/audit/export".to_owned(),
        format!("/audit/{row}"),
    ] {
        let (_, all) = console.text(&auditor, &path).await;
        let (_, own) = console.text(&tenant, &path).await;
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
async fn a_refused_look_at_the_record_changes_nothing_and_no_other_method_is_there() {
    // The record is read and never written over HTTP.
    let console = Console::on(Home::sqlite()).await;
    let auditor = console.auditor().await;
    for method in [Method::POST, Method::PUT, Method::DELETE, Method::PATCH] {
        for path in ["/v1/audit", "/v1/audit/export"] {
            let answer = console.send(&auditor, method.clone(), path).await;
            assert_eq!(answer.status(), 405, "{method} {path}");
        }
    }
    assert!(console.is_whole().await);
}
