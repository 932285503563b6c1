//! `GET /v1/audit` as the contract has it: each parameter, each name, each refusal, on both stores.

use domain::access::Role;
use domain::audit::{Action, Phase};
use leasehold::audit::Entry;
use serde_json::json;

use super::console::{Console, about, actor, on};
use super::stage::Home;

#[tokio::test]
async fn a_row_has_the_names_of_the_contract_and_no_others() {
    // One row with everything, one with as little as there can be.
    let console = Console::on(Home::sqlite()).await;
    let auditor = console.auditor().await;
    let full = console.audit.append(about("cache", "tenant_1:a")).await.unwrap();
    let bare = Entry::new(Action::Login, "ok", actor("p", "p"), Default::default());
    console.audit.append(bare).await.unwrap();
    let (_, page) = console.get(&auditor, "/v1/audit?limit=2").await;
    let mut top: Vec<&String> = page.as_object().unwrap().keys().collect();
    top.sort();
    assert_eq!(top, ["nextCursor", "rows"]);
    let names = |row: usize| {
        let mut names: Vec<&str> = page["rows"][row]
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .collect();
        names.sort_unstable();
        names.join(" ")
    };
    assert_eq!(
        names(1),
        "action actorId actorName after approverId backend before createdAt hash id ip outcome phase prevHash reason \
         requestId resource role source traceId unlockId userAgent"
    );
    assert_eq!(
        names(0),
        "action actorId actorName createdAt hash id ip outcome phase prevHash requestId role userAgent"
    );
    let row = &page["rows"][1];
    assert_eq!(row["before"], json!({"ownerId": "w-1"}));
    assert_eq!(
        (&row["action"], &row["phase"]),
        (&json!("FORCE_UNLOCK"), &json!("outcome"))
    );
    assert_eq!(
        (&row["hash"], &page["rows"][0]["prevHash"]),
        (&json!(full.hash), &json!(full.hash))
    );
    assert!(row["createdAt"].as_str().unwrap().ends_with('Z'));
}

async fn every_parameter_narrows(home: Home) {
    let console = Console::on(home).await;
    let auditor = console.auditor().await;
    let one = console
        .audit
        .append(about("cache", "tenant_1:a"))
        .await
        .unwrap()
        .seq;
    let mut other = about("db", "tenant_2:100%_'x");
    other.actor = actor("p_eve", "eve");
    other.outcome = "refused".to_owned();
    other.phase = Phase::Intent;
    other.subject.unlock_id = Some("u_2".to_owned());
    let two = console.audit.append(other).await.unwrap().seq;
    let mut login = Entry::new(Action::Login, "ok", actor("ada", "p_eve"), Default::default());
    login.reason = None;
    let three = console.audit.append(login).await.unwrap().seq;
    let ids = async |query: &str| console.ids(&auditor, query).await;
    for (query, expected) in [
        ("actor=p_ada", vec![one]),
        // An id, or a name, of whoever it is.
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
    let (_, page) = console.get(&auditor, "/v1/audit?unlockId=u_2").await;
    let at: chrono::DateTime<chrono::Utc> =
        serde_json::from_value(page["rows"][0]["createdAt"].clone()).unwrap();
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
async fn every_parameter_narrows_to_what_fits() {
    // By id and name, a prefix with what other languages take for wildcards, empty values, the edges of a span.
    every_parameter_narrows(Home::sqlite()).await;
    every_parameter_narrows(Home::postgres().await).await;
}

#[tokio::test]
async fn what_does_not_fit_is_400_with_its_field() {
    // For the list and for the export, which has no pages and wants a format that there is.
    let console = Console::on(Home::sqlite()).await;
    let auditor = console.auditor().await;
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
        let (status, problem) = console.get(&auditor, path).await;
        let told = (status, problem["code"].as_str(), problem["field"].as_str());
        assert_eq!(
            told,
            (400, Some("invalid_parameter"), Some(field)),
            "{path}: {problem}"
        );
        assert!(!problem["requestId"].as_str().unwrap().is_empty());
    }
    // The one character that Postgres keeps in no text harms nothing.
    for home in [Home::sqlite(), Home::postgres().await] {
        let console = Console::on(home).await;
        let auditor = console.auditor().await;
        for field in ["actor", "prefix", "unlockId"] {
            assert_eq!(
                console.ids(&auditor, &format!("{field}=a%00b")).await,
                [0; 0],
                "{field}"
            );
        }
    }
}

#[tokio::test]
async fn a_prefix_is_found_whatever_the_databases_locale() {
    // In a Postgres whose order of texts ignores punctuation: names that begin with the prefix, and no others.
    let home = Home::postgres().await.in_english().await;
    let console = Console::on(home).await;
    let auditor = console.auditor().await;
    for name in [
        "tenant_1:a",
        "tenant-1:a",
        "tenant1:b",
        "Tenant_1:c",
        "tenant_1",
        "tenant_2:a",
    ] {
        console.audit.append(about("cache", name)).await.unwrap();
    }
    assert_eq!(console.ids(&auditor, "prefix=tenant_1").await.len(), 2);
    assert_eq!(console.ids(&auditor, "prefix=tenant_1:").await.len(), 1);
    let tenant = console
        .token("tenant", on(Role::Auditor, None, Some("tenant_1")))
        .await;
    assert_eq!(console.ids(&tenant, "").await.len(), 2);
}

#[tokio::test]
async fn the_calls_are_described() {
    // Path, parameters and both formats stand in the server's own description.
    let console = Console::on(Home::sqlite()).await;
    let auditor = console.auditor().await;
    let (_, api) = console.get(&auditor, "/v1/openapi.json").await;
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
