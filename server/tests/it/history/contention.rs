//! `/contention` and `/v1/contention` of a whole server.

use domain::access::Role;
use serde_json::{Value, json};

use crate::support::{TestServer, on};
use testkit::eventually;

async fn take(server: &TestServer, resource: &str, owner: &str) {
    let body = json!({"resource": resource, "ownerId": owner, "ttlSeconds": 600});
    let url = server.url("/v1/locks/acquire");
    server.client.post(url).json(&body).send().await.unwrap();
}

fn prefixes(answer: &str) -> Vec<String> {
    let answer: Value = serde_json::from_str(answer).unwrap();
    let of = |prefix: &Value| prefix["prefix"].as_str().unwrap().to_owned();
    let mut all: Vec<String> = answer["prefixes"].as_array().unwrap().iter().map(of).collect();
    all.sort();
    all
}

#[tokio::test]
async fn sums_are_hidden_unless_all_their_names_are_visible() {
    // Two teams, each with a lock that was refused to a contender, and tenants whose numbers share one template. A
    // viewer of one team sees only their prefix, on the page and in the JSON; a viewer of all prefixes sees both.
    let server = TestServer::builder().operator().start().await;
    let operator = server.operator().await;
    for resource in ["team_a:close:1", "team_b:close:1", "tenant_7:x"] {
        take(&server, resource, "one").await;
        take(&server, resource, "other").await;
    }
    let path = "/v1/contention?range=1h&by=refusals";
    let all = ["team_a:close:*", "team_b:close:*", "tenant_*:x"];
    eventually("all are recorded", async || {
        prefixes(&server.as_user(&operator).text(path).await.1) == all
    })
    .await;
    let of_all: Value = serde_json::from_str(&server.as_user(&operator).text(path).await.1).unwrap();
    assert_eq!(of_all["prefixes"][0]["refused"], 1);
    assert_eq!(of_all["prefixes"][0]["waitingMs"].as_array().unwrap().len(), 30);
    for (prefix, seen) in [("team_a", &all[..1]), ("tenant_7", &[])] {
        let token = server.token(prefix, on(Role::Viewer, None, Some(prefix))).await;
        assert_eq!(prefixes(&server.as_user(&token).text(path).await.1), seen);
        let (status, html) = server
            .as_user(&token)
            .text("/contention?range=1h&by=refusals")
            .await;
        assert_eq!(status, 200);
        assert!(!html.contains("team_b") && !html.contains("tenant_*"), "{html}");
        assert_eq!(html.contains("team_a"), !seen.is_empty());
    }
    server.stop().await;
}

#[tokio::test]
async fn an_invalid_query_names_its_field() {
    // Unknown words, half a cell, both kinds of range, a foreign parameter: 400 by page and API, never a 500.
    let server = TestServer::builder().operator().start().await;
    let operator = server.operator().await;
    let bad = [
        ("range=2h", "range"),
        ("by=name", "by"),
        ("prefix=a", "backend"),
        (
            "range=1h&from=2026-01-01T00:00:00Z&to=2026-01-02T00:00:00Z",
            "range",
        ),
        ("backend=a&prefix=b&at=noon", "at"),
        ("what=x", "what"),
    ];
    for (query, field) in bad {
        for path in ["/v1/contention", "/contention"] {
            let (status, text) = server.as_user(&operator).text(&format!("{path}?{query}")).await;
            assert_eq!(status, 400, "{path}?{query}");
            assert!(text.contains(field), "{text}");
        }
    }
    let (status, html) = server
        .as_user(&operator)
        .text("/contention?range=30d&trees=all")
        .await;
    assert_eq!(status, 200);
    assert!(
        html.contains("No data about waits") || html.contains("No waits"),
        "{html}"
    );
    server.stop().await;
}
