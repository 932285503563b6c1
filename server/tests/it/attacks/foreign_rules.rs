//! A tenant reads rules: names, prefixes, runbooks and receivers of others, also in earlier versions and in exports.

use crate::support::{TestCaller, TestServer, on, reply};
use domain::access::Role;
use reqwest::{Client, StatusCode};
use serde_json::{Value, json};

use testkit::eventually;

async fn put(server: &TestServer, admin: &TestCaller, rule: Value) {
    let request = Client::new().put(server.url("/v1/rules")).json(&rule);
    let (status, saved) = reply(admin.authenticate(request)).await;
    assert_eq!(status, 200, "{saved}");
}

async fn text(server: &TestServer, token: &TestCaller, path: &str) -> (StatusCode, String) {
    let request = Client::new().get(server.url(path)).bearer_auth(token.secret());
    let answer = request.send().await.unwrap();
    (answer.status(), answer.text().await.unwrap())
}

#[tokio::test]
async fn foreign_rules_are_in_no_list_export_page_or_version() {
    // A rule of tenant_2; a rule of tenant_1 that was about tenant_2 in its first version.
    let server = TestServer::builder().redis().start().await;
    let admin = server.token("admin", on(Role::Admin, None, None)).await;
    let tenant = server
        .token("tenant", on(Role::Operator, None, Some("tenant_1")))
        .await;
    let rule = |id: &str, prefix: &str| {
        json!({"id": id, "name": format!("{prefix} is slow"), "condition": "long_held", "prefix": prefix,
            "anyPrefix": true, "runbook": format!("https://runbooks.example/{prefix}")})
    };
    put(&server, &admin, rule("theirs", "tenant_2:zebra")).await;
    put(&server, &admin, rule("mine", "tenant_2:zebra")).await;
    put(&server, &admin, rule("mine", "tenant_1:jobs")).await;
    put(&server, &admin, rule("mine", "tenant_1:reports")).await;
    for path in [
        "/v1/rules",
        "/v1/rules?format=toml",
        "/v1/rules?format=prometheus",
        "/alerts",
        "/alerts/rules/mine",
    ] {
        let (status, text) = text(&server, &tenant, path).await;
        assert_eq!(status, 200, "{path}: {text}");
        assert!(text.contains("tenant_1:reports"), "{path}: {text}");
        assert!(
            !text.contains("zebra") && !text.contains("theirs"),
            "{path}: {text}"
        );
    }
    let (_, versions) = text(&server, &tenant, "/alerts/rules/mine").await;
    assert!(versions.contains("tenant_1:jobs"), "{versions}");
    for version in ["99", "none"] {
        let path = format!("/alerts/rules/mine?version={version}");
        assert_eq!(text(&server, &tenant, &path).await.0, 404, "{path}");
    }
    let (status, _) = text(&server, &tenant, "/alerts/rules/theirs").await;
    assert_eq!(status, 404);
    // Rules about everything are not about this tenant alone.
    let (_, rules) = server.as_user(&tenant).get("/v1/rules").await;
    assert_eq!(rules["rules"].as_array().unwrap().len(), 1, "{rules}");
    let (_, rules) = server.as_user(&admin).get("/v1/rules").await;
    assert!(rules["rules"].as_array().unwrap().len() > 20);
}

#[tokio::test]
async fn an_alert_by_a_foreign_rule_names_only_its_condition() {
    // A rule about every tenant, with a telling name and runbook, fires on a lock of tenant_1.
    let server = TestServer::builder().redis().start().await;
    let admin = server.token("admin", on(Role::Admin, None, None)).await;
    let tenant = server
        .token("tenant", on(Role::Operator, None, Some("tenant_1")))
        .await;
    let (status, lease) = server.as_user(&tenant).acquire("tenant_1:job").await;
    assert_eq!(status, 200, "{lease}");
    let rule = json!({"id": "zebra_contract", "name": "Zebra contract", "condition": "long_held", "for": "0s",
        "runbook": "https://zebra.example/", "template": "Call Zebra about {subject}",
        "with": {"longer_than": "1s", "at_least": "0s"}});
    put(&server, &admin, rule).await;
    eventually("the rule fires", || async {
        server
            .as_user(&admin)
            .get("/v1/alerts")
            .await
            .1
            .to_string()
            .contains("zebra_contract")
    })
    .await;
    let (_, alerts) = server.as_user(&tenant).get("/v1/alerts").await;
    let alert = &alerts["alerts"][0];
    assert_eq!(alert["rule"], "long_held", "{alerts}");
    assert_eq!(alert["labels"]["resource"], "tenant_1:job", "{alerts}");
    for path in ["/v1/alerts", "/alerts", "/", "/locks/builtin/tenant_1:job"] {
        let (_, text) = text(&server, &tenant, path).await;
        assert!(!text.to_lowercase().contains("zebra"), "{path}: {text}");
    }
}
