//! Tiers as admins set them: by page and by API, each change a row, and nobody else.

use domain::access::Role;
use reqwest::Method;
use serde_json::{Value, json};

use super::pages::{post, see};
use super::stage::{Stage, answered, code, on};

async fn changes(stage: &Stage) -> Vec<(Option<Value>, Option<Value>)> {
    let query = domain::audit::AuditQuery {
        limit: 100,
        action: Some(domain::audit::Action::TierChange),
        ..Default::default()
    };
    let mut rows = stage.audit().await.page(&query).await.unwrap().rows;
    rows.reverse();
    let read = |text: Option<String>| text.map(|text| serde_json::from_str(&text).unwrap());
    rows.into_iter()
        .map(|row| (read(row.before), read(row.after)))
        .collect()
}

#[tokio::test]
async fn a_tier_is_set_replaced_and_removed_by_page_with_a_row_each() {
    // Set on one backend, set again, removed twice: three rows; the page says what is protected.
    let stage = Stage::start().await;
    let root = stage.person("root", on(Role::Admin, None, None)).await;
    see(&stage, &root, "/settings/tiers")
        .await
        .is(200)
        .has("No name is protected");
    let form = [
        ("prefix", "jobs/<b>"),
        ("backend", "builtin"),
        ("tier", "protected"),
    ];
    assert_eq!(
        post(&stage, &root, "/settings/tiers", &form).await.is(303).to,
        "/settings/tiers?set"
    );
    let page = see(&stage, &root, "/settings/tiers").await;
    page.has("1 prefix is protected").has("jobs/&lt;b&gt;");
    let standard = [
        ("prefix", "jobs/<b>"),
        ("backend", "builtin"),
        ("tier", "standard"),
    ];
    post(&stage, &root, "/settings/tiers", &standard).await.is(303);
    let rules = stage.serving.unlocks.tiers().await.unwrap();
    assert_eq!(rules.len(), 1, "{rules:?}");
    let remove = format!("/settings/tiers/{}/remove", rules[0].id);
    for _ in 0..2 {
        post(&stage, &root, &remove, &[]).await.is(303);
    }
    see(&stage, &root, "/settings/tiers")
        .await
        .has("every name is standard");
    let changes = changes(&stage).await;
    assert_eq!(changes.len(), 3, "{changes:?}");
    assert_eq!(changes[1].0, Some(json!({"tier": "protected"})));
    assert_eq!(changes[2].1, None);
}

#[tokio::test]
async fn a_tier_that_is_none_is_refused_at_its_field() {
    // Too long, a control character, another word, another backend: 422 by page, 400 by API, no row.
    let stage = Stage::start().await;
    let root = stage.person("root", on(Role::Admin, None, None)).await;
    let long = "x".repeat(5_000);
    for (prefix, backend, tier, why) in [
        (long.as_str(), "", "protected", "at most 4096 bytes"),
        ("a\u{7}", "", "protected", "no control characters"),
        ("a", "Not A Name", "protected", "not a backend"),
        ("a", "", "sacred", "standard or protected"),
    ] {
        let form = [("prefix", prefix), ("backend", backend), ("tier", tier)];
        post(&stage, &root, "/settings/tiers", &form)
            .await
            .is(422)
            .has(why);
        let mut body = json!({"prefix": prefix, "tier": tier});
        if !backend.is_empty() {
            body["backend"] = json!(backend);
        }
        let put = answered(stage.request(&root, Method::PUT, "/v1/tiers").json(&body)).await;
        assert_eq!(code(&put), (400, "invalid"), "{}", put.1);
    }
    assert!(changes(&stage).await.is_empty());
}

#[tokio::test]
async fn the_api_does_what_the_page_does_and_for_admins_alone() {
    // Put, listed, deleted; an operator and a viewer are refused.
    let stage = Stage::start().await;
    let admin = stage.token("admin", on(Role::Admin, None, None)).await;
    let operator = stage.operator().await;
    let body = json!({"prefix": "jobs", "tier": "protected"});
    let put = async |caller| answered(stage.request(caller, Method::PUT, "/v1/tiers").json(&body)).await;
    assert_eq!(code(&put(&operator).await), (403, "forbidden"));
    assert_eq!(put(&admin).await.0, 204);
    let (status, listed) = stage.get(&admin, "/v1/tiers").await;
    let rule = &listed["tiers"][0];
    assert_eq!(
        (status, &rule["prefix"], &rule["tier"]),
        (200, &json!("jobs"), &json!("protected"))
    );
    assert!(rule["backend"].is_null());
    assert_eq!(code(&stage.get(&operator, "/v1/tiers").await), (403, "forbidden"));
    let path = format!("/v1/tiers/{}", rule["id"].as_str().unwrap());
    assert_eq!(
        code(&answered(stage.request(&operator, Method::DELETE, &path)).await),
        (403, "forbidden")
    );
    assert_eq!(
        answered(stage.request(&admin, Method::DELETE, &path)).await.0,
        204
    );
    assert_eq!(stage.get(&admin, "/v1/tiers").await.1["tiers"], json!([]));
    assert_eq!(changes(&stage).await.len(), 2);
}
