//! `GET /v1/audit` as the contract has it: each parameter, each name, each refusal, on both stores.

use super::audit_server::{AuditServer, about, actor};
use crate::support::{Store, on};
use crate::wire::assert_shape_snapshot;
use domain::access::Role;
use domain::audit::{Action, AuditPhase};
use leasehold::audit::Entry;
use serde_json::json;

#[tokio::test]
async fn an_entry_has_exactly_the_fields_of_the_contract() {
    // One row with everything, one with as little as there can be.
    let server = AuditServer::on(Store::sqlite()).await;
    let auditor = server.auditor().await;
    let full = server.audit.append(about("cache", "tenant_1:a")).await.unwrap();
    let bare = Entry::new(Action::Login, "ok", actor("p", "p"), Default::default());
    server.audit.append(bare).await.unwrap();
    let (_, page) = server.as_user(&auditor).get("/v1/audit?limit=2").await;
    assert_shape_snapshot("audit-full-and-bare-entry", &page);
    let row = &page["entries"][1];
    assert_eq!(row["before"], json!({"ownerId": "w-1"}));
    assert_eq!(
        (&row["action"], &row["phase"]),
        (&json!("FORCE_UNLOCK"), &json!("outcome"))
    );
    assert_eq!(
        (&row["hash"], &page["entries"][0]["prevHash"]),
        (&json!(full.hash), &json!(full.hash))
    );
    assert!(row["createdAt"].as_str().unwrap().ends_with('Z'));
}

async fn every_parameter_narrows(home: Store) {
    let server = AuditServer::on(home).await;
    let auditor = server.auditor().await;
    let one = server
        .audit
        .append(about("cache", "tenant_1:a"))
        .await
        .unwrap()
        .seq;
    let mut other = about("db", "tenant_2:100%_'x");
    other.actor = actor("p_eve", "eve");
    other.outcome = "refused".to_owned();
    other.phase = AuditPhase::Intent;
    other.subject.unlock_id = Some("u_2".to_owned());
    let two = server.audit.append(other).await.unwrap().seq;
    let mut login = Entry::new(Action::Login, "ok", actor("ada", "p_eve"), Default::default());
    login.reason = None;
    let three = server.audit.append(login).await.unwrap().seq;
    let ids = async |query: &str| server.ids(&auditor, query).await;
    for (query, expected) in [
        ("actor=p_ada", vec![one]),
        // By id and by name.
        ("actor=ada", vec![three, one]),
        ("actor=p_eve", vec![three, two]),
        ("backend=db", vec![two]),
        ("prefix=tenant_", vec![two, one]),
        ("prefix=tenant_2%3A100%25_%27", vec![two]),
        ("prefix=tenant%25", vec![]),
        ("action=LOGIN", vec![three]),
        ("action=FORCE_UNLOCK&outcome=refused", vec![two]),
        ("outcome=released", vec![one]),
        ("unlockId=u_2", vec![two]),
        ("unlockId=u_3", vec![]),
        ("actor=eve&backend=cache", vec![]),
        (
            "actor=&backend=&prefix=tenant_1&action=&outcome=&unlockId=&from=&to=&limit=&cursor=",
            vec![one],
        ),
    ] {
        assert_eq!(ids(query).await, expected, "{query}");
    }
    let (_, page) = server.as_user(&auditor).get("/v1/audit?unlockId=u_2").await;
    let at: chrono::DateTime<chrono::Utc> =
        serde_json::from_value(page["entries"][0]["createdAt"].clone()).unwrap();
    let ms = |ms: i64| {
        (at + chrono::TimeDelta::milliseconds(ms))
            .to_rfc3339()
            .replace('+', "%2B")
    };
    let within = format!("unlockId=u_2&from={}&to={}", ms(0), ms(1));
    assert_eq!(ids(&within).await, [two], "its own moment is in it");
    assert_eq!(
        ids(&format!("unlockId=u_2&to={}", ms(0))).await,
        [0; 0],
        "the end is not"
    );
    assert_eq!(ids(&format!("unlockId=u_2&from={}", ms(1))).await, [0; 0]);
    assert_eq!(ids(&format!("limit=1&cursor={three}")).await, [two]);
}

#[tokio::test]
async fn every_parameter_filters_entries() {
    // By id and name, a prefix with what other languages take for wildcards, empty values, the edges of a span.
    every_parameter_narrows(Store::sqlite()).await;
    every_parameter_narrows(Store::postgres().await).await;
}

#[tokio::test]
async fn invalid_filters_are_400_with_their_field() {
    // For the list and for the export, which has no pages and needs a known format.
    let server = AuditServer::on(Store::sqlite()).await;
    let auditor = server.auditor().await;
    for (path, field) in [
        ("/v1/audit?backend=No%20Name", "backend"),
        ("/v1/audit?action=EXPLODE", "action"),
        ("/v1/audit?outcome=Nope!", "outcome"),
        ("/v1/audit?from=soon", "from"),
        ("/v1/audit?to=soon", "to"),
        ("/v1/audit?from=2026-03-02&to=2026-03-01", "to"),
        ("/v1/audit?limit=0", "limit"),
        ("/v1/audit?limit=1001", "limit"),
        ("/v1/audit?cursor=x", "cursor"),
        ("/v1/audit?actor=a&actor=b", "actor"),
        ("/v1/audit?nonsense=1", "nonsense"),
        ("/v1/audit?format=csv", "format"),
        ("/v1/audit/export?format=xml", "format"),
        ("/v1/audit/export?format=csv&limit=3", "limit"),
        ("/v1/audit/export?cursor=3", "cursor"),
        ("/v1/audit/export?action=EXPLODE", "action"),
    ] {
        let (status, problem) = server.as_user(&auditor).get(path).await;
        let error = (status, problem["code"].as_str(), problem["field"].as_str());
        assert_eq!(
            error,
            (400, Some("invalid_parameter"), Some(field)),
            "{path}: {problem}"
        );
        assert!(!problem["requestId"].as_str().unwrap().is_empty());
    }
    // The one character that Postgres keeps in no text harms nothing.
    for home in [Store::sqlite(), Store::postgres().await] {
        let server = AuditServer::on(home).await;
        let auditor = server.auditor().await;
        for field in ["actor", "prefix", "unlockId"] {
            assert_eq!(
                server.ids(&auditor, &format!("{field}=a%00b")).await,
                [0; 0],
                "{field}"
            );
        }
    }
}

#[tokio::test]
async fn a_prefix_is_found_with_any_database_locale() {
    // In a Postgres whose order of texts ignores punctuation: names that begin with the prefix, and no others.
    let home = Store::postgres().await.in_english().await;
    let server = AuditServer::on(home).await;
    let auditor = server.auditor().await;
    for name in [
        "tenant_1:a",
        "tenant-1:a",
        "tenant1:b",
        "Tenant_1:c",
        "tenant_1",
        "tenant_2:a",
    ] {
        server.audit.append(about("cache", name)).await.unwrap();
    }
    assert_eq!(server.ids(&auditor, "prefix=tenant_1").await.len(), 2);
    assert_eq!(server.ids(&auditor, "prefix=tenant_1:").await.len(), 1);
    let tenant = server
        .token("tenant", on(Role::Auditor, None, Some("tenant_1")))
        .await;
    assert_eq!(server.ids(&tenant, "").await.len(), 2);
}

#[tokio::test]
async fn audit_operations_are_in_the_openapi_description() {
    // Path, parameters and both formats are in the OpenAPI document.
    let server = AuditServer::on(Store::sqlite()).await;
    let auditor = server.auditor().await;
    let (_, api) = server.as_user(&auditor).get("/v1/openapi.json").await;
    let list = &api["paths"]["/v1/audit"]["get"];
    let names: Vec<&str> = list["parameters"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "actor", "backend", "prefix", "action", "outcome", "unlockId", "from", "to", "limit", "cursor"
        ]
    );
    let content = &api["paths"]["/v1/audit/export"]["get"]["responses"]["200"]["content"];
    assert!(
        content["text/csv"].is_object() && content["application/x-ndjson"].is_object(),
        "{content}"
    );
}
