//! Protected prefixes are set by admins only: by page and by API, each change audited.

use crate::support::{TestServer, code, on, reply};
use domain::access::Role;
use reqwest::Method;
use serde_json::{Value, json};

use super::pages::{post, see};

async fn changes(server: &TestServer) -> Vec<(Option<Value>, Option<Value>)> {
    let query = domain::audit::AuditQuery {
        limit: 100,
        action: Some(domain::audit::Action::ProtectedPrefixChange),
        ..Default::default()
    };
    let mut rows = server.audit().await.page(&query).await.unwrap().rows;
    rows.reverse();
    let read = |text: Option<String>| text.map(|text| serde_json::from_str(&text).unwrap());
    rows.into_iter()
        .map(|row| (read(row.before), read(row.after)))
        .collect()
}

#[tokio::test]
async fn protected_prefix_changes_are_audited() {
    // Set on one backend, set again, removed twice: three audit entries; the page lists the protected prefixes.
    let server = TestServer::start().await;
    let root = server.user("root", on(Role::Admin, None, None)).await;
    see(&server, &root, "/settings/protected-prefixes")
        .await
        .is(200)
        .has("No protected prefixes");
    let form = [
        ("prefix", "jobs/<b>"),
        ("backend", "builtin"),
        ("protection", "protected"),
    ];
    assert_eq!(
        post(&server, &root, "/settings/protected-prefixes", &form)
            .await
            .is(303)
            .to,
        "/settings/protected-prefixes?set"
    );
    let page = see(&server, &root, "/settings/protected-prefixes").await;
    page.has("1 prefix is protected").has("jobs/&lt;b&gt;");
    let standard = [
        ("prefix", "jobs/<b>"),
        ("backend", "builtin"),
        ("protection", "standard"),
    ];
    post(&server, &root, "/settings/protected-prefixes", &standard)
        .await
        .is(303);
    let rules = server.serving.unlocks.protected_prefixes().await.unwrap();
    assert_eq!(rules.len(), 1, "{rules:?}");
    let remove = format!("/settings/protected-prefixes/{}/remove", rules[0].id);
    for _ in 0..2 {
        post(&server, &root, &remove, &[]).await.is(303);
    }
    see(&server, &root, "/settings/protected-prefixes")
        .await
        .has("no name is protected");
    let changes = changes(&server).await;
    assert_eq!(changes.len(), 3, "{changes:?}");
    assert_eq!(changes[1].0, Some(json!({"protection": "protected"})));
    assert_eq!(changes[2].1, None);
}

#[tokio::test]
async fn an_admin_turns_read_only_mode_on_and_off() {
    // By the button of the page, which then offers the opposite; every page has the notice meanwhile. A value of neither kind
    // changes nothing.
    let server = TestServer::start().await;
    let root = server.user("root", on(Role::Admin, None, None)).await;
    let page = "/settings/protected-prefixes";
    let switch = async |value: &str| {
        let form = [("read_only", value)];
        post(&server, &root, &format!("{page}/read-only"), &form).await
    };
    see(&server, &root, page).await.has("Turn read-only mode on");
    assert_eq!(switch("yes").await.is(303).to, format!("{page}?switched"));
    see(&server, &root, page).await.has("Turn read-only mode off");
    see(&server, &root, "/").await.has("The console is read-only");
    switch("maybe").await.is(422);
    assert!(server.identity().directory().read_only);
    switch("no").await.is(303);
    see(&server, &root, page).await.has("Turn read-only mode on");
    assert!(!server.identity().directory().read_only);
}

#[tokio::test]
async fn exceptions_to_a_protected_prefix_are_named() {
    // The exceptions are older than the protection: a longer prefix, and the same one on one backend.
    let server = TestServer::start().await;
    let root = server.user("root", on(Role::Admin, None, None)).await;
    let page = "/settings/protected-prefixes";
    let set = async |prefix: &str, backend: &str, protection: &str| {
        let form = [
            ("prefix", prefix),
            ("backend", backend),
            ("protection", protection),
        ];
        post(&server, &root, page, &form).await
    };
    set("jobs/billing", "", "standard").await.is(303);
    set("reports", "builtin", "standard").await.is(303);
    let exceptions = async || {
        let text = see(&server, &root, page).await.text;
        text.matches("exception to a protected prefix").count()
    };
    assert_eq!(exceptions().await, 0);
    let named = "1 older rule keeps names unprotected: jobs/billing on every backend.";
    set("jobs", "", "protected").await.is(200).has(named);
    assert_eq!(exceptions().await, 1);
    let named = "1 older rule keeps names unprotected: reports on builtin.";
    set("reports", "", "protected").await.is(200).has(named);
    assert_eq!(exceptions().await, 2);
    // None of them is below this one.
    set("billing", "", "protected").await.is(303);
}

#[tokio::test]
async fn an_unknown_protection_is_refused_at_its_field() {
    // Too long, a control character, another word, another backend: 422 by page, 400 by API, no row.
    let server = TestServer::start().await;
    let root = server.user("root", on(Role::Admin, None, None)).await;
    let long = "x".repeat(5_000);
    for (prefix, backend, protection, why) in [
        (long.as_str(), "", "protected", "at most 4096 bytes"),
        ("a\u{7}", "", "protected", "must not contain control characters"),
        ("a", "Not A Name", "protected", "not a backend"),
        ("a", "", "sacred", "standard or protected"),
    ] {
        let form = [
            ("prefix", prefix),
            ("backend", backend),
            ("protection", protection),
        ];
        post(&server, &root, "/settings/protected-prefixes", &form)
            .await
            .is(422)
            .has(why);
        let mut body = json!({"prefix": prefix, "protection": protection});
        if !backend.is_empty() {
            body["backend"] = json!(backend);
        }
        let put = reply(
            server
                .as_user(&root)
                .request(Method::PUT, "/v1/protected-prefixes")
                .json(&body),
        )
        .await;
        assert_eq!(code(&put), (400, "invalid"), "{}", put.1);
    }
    assert!(changes(&server).await.is_empty());
}

#[tokio::test]
async fn the_api_equals_the_page_and_is_for_admins_only() {
    // Put, listed, deleted; an operator and a viewer are refused.
    let server = TestServer::start().await;
    let admin = server.token("admin", on(Role::Admin, None, None)).await;
    let operator = server.operator().await;
    let body = json!({"prefix": "jobs", "protection": "protected"});
    let put = async |caller| {
        reply(
            server
                .as_user(caller)
                .request(Method::PUT, "/v1/protected-prefixes")
                .json(&body),
        )
        .await
    };
    assert_eq!(code(&put(&operator).await), (403, "forbidden"));
    assert_eq!(put(&admin).await, (200, json!({"exceptions": []})));
    let (status, listed) = server.as_user(&admin).get("/v1/protected-prefixes").await;
    let rule = &listed["protectedPrefixes"][0];
    assert_eq!(
        (status, &rule["prefix"], &rule["protection"]),
        (200, &json!("jobs"), &json!("protected"))
    );
    assert!(rule["backend"].is_null());
    assert_eq!(
        code(&server.as_user(&operator).get("/v1/protected-prefixes").await),
        (403, "forbidden")
    );
    let path = format!("/v1/protected-prefixes/{}", rule["id"].as_str().unwrap());
    assert_eq!(
        code(&reply(server.as_user(&operator).request(Method::DELETE, &path)).await),
        (403, "forbidden")
    );
    assert_eq!(
        reply(server.as_user(&admin).request(Method::DELETE, &path))
            .await
            .0,
        204
    );
    assert_eq!(
        server.as_user(&admin).get("/v1/protected-prefixes").await.1["protectedPrefixes"],
        json!([])
    );
    assert_eq!(changes(&server).await.len(), 2);
}
