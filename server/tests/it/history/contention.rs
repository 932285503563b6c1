//! `/contention` and `/v1/contention` of a whole server.

use domain::access::{Grant, Role};
use reqwest::Method;
use serde_json::{Value, json};

use super::servers::Server;
use crate::support::eventually::eventually;

async fn take(server: &Server, resource: &str, owner: &str) {
    let body = json!({"resource": resource, "ownerId": owner, "ttlSeconds": 600});
    server.ask(Method::POST, "/v1/locks/acquire", &body).await;
}

fn prefixes(answer: &str) -> Vec<String> {
    let answer: Value = serde_json::from_str(answer).unwrap();
    let of = |prefix: &Value| prefix["prefix"].as_str().unwrap().to_owned();
    let mut all: Vec<String> = answer["prefixes"].as_array().unwrap().iter().map(of).collect();
    all.sort();
    all
}

#[tokio::test]
async fn numbers_of_others_are_shown_to_nobody_who_may_not_see_all_their_names() {
    // Two teams, each with a lock that somebody was refused, and tenants whose numbers are one template. A viewer of one
    // team sees their prefix alone, on the page and in the JSON; whoever may see everything sees all.
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), "first").await;
    for resource in ["team_a:close:1", "team_b:close:1", "tenant_7:x"] {
        take(&server, resource, "one").await;
        take(&server, resource, "other").await;
    }
    let path = "/v1/contention?range=1h&by=refusals";
    let all = ["team_a:close:*", "team_b:close:*", "tenant_*:x"];
    eventually("all are told", async || {
        prefixes(&server.get_as(server.token(), path).await.1) == all
    })
    .await;
    let of_all: Value = serde_json::from_str(&server.get_as(server.token(), path).await.1).unwrap();
    assert_eq!(of_all["prefixes"][0]["refused"], 1);
    assert_eq!(of_all["prefixes"][0]["waitingMs"].as_array().unwrap().len(), 30);
    for (prefix, seen) in [("team_a", &all[..1]), ("tenant_7", &[])] {
        let grant = Grant {
            role: Role::Viewer,
            backend: None,
            prefix: Some(prefix.to_owned()),
        };
        let token = server.token_of(prefix, grant).await;
        assert_eq!(prefixes(&server.get_as(&token, path).await.1), seen);
        let (status, html) = server.get_as(&token, "/contention?range=1h&by=refusals").await;
        assert_eq!(status, 200);
        assert!(!html.contains("team_b") && !html.contains("tenant_*"), "{html}");
        assert_eq!(html.contains("team_a"), !seen.is_empty());
    }
    server.stopped().await;
}

#[tokio::test]
async fn a_question_that_does_not_fit_names_its_field() {
    // Unknown words, half a cell, both kinds of range, a foreign parameter: 400 by both doors, never a 500.
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), "first").await;
    let bad = [
        ("range=2h", "range"),
        ("by=name", "by"),
        ("prefix=a", "at"),
        (
            "range=1h&from=2026-01-01T00:00:00Z&to=2026-01-02T00:00:00Z",
            "range",
        ),
        ("backend=a&prefix=b&at=noon", "at"),
        ("what=x", "what"),
    ];
    for (query, field) in bad {
        for path in ["/v1/contention", "/contention"] {
            let (status, text) = server.get_as(server.token(), &format!("{path}?{query}")).await;
            assert_eq!(status, 400, "{path}?{query}");
            assert!(text.contains(field), "{text}");
        }
    }
    let (status, html) = server
        .get_as(server.token(), "/contention?range=30d&trees=all")
        .await;
    assert_eq!(status, 200);
    assert!(
        html.contains("Nothing is known of who waited") || html.contains("Nobody waited"),
        "{html}"
    );
    server.stopped().await;
}
