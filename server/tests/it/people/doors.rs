//! Every route of the router against those who may not use it. The list is the router's own, so that a new route
//! without a line in the table of needs fails here.

use axum::http::Method;
use domain::access::Role;
use leasehold::http::access::needs::{Need, TABLE, need};
use reqwest::{Client, StatusCode};

use super::stage::{Stage, get, on};

/// Method and path of everything that the server describes.
async fn described(stage: &Stage) -> Vec<(Method, String)> {
    let token = stage.token("reader", on(Role::Viewer, None, None)).await;
    let (_, api) = get(stage, &token, "/v1/openapi.json").await;
    let mut routes = Vec::new();
    for (path, methods) in api["paths"].as_object().unwrap() {
        for method in methods.as_object().unwrap().keys() {
            routes.push((method.to_uppercase().parse().unwrap(), path.clone()));
        }
    }
    assert!(routes.len() > 15, "{routes:?}");
    routes
}

#[tokio::test]
async fn every_described_route_has_a_line_in_the_table_of_needs() {
    // By the very paths that the server describes.
    let stage = Stage::start().await;
    for (method, path) in described(&stage).await {
        assert!(
            need(&method, Some(&path)).is_some(),
            "{method} {path} needs nothing that anybody named"
        );
    }
}

#[tokio::test]
async fn nobody_without_a_name_gets_past_the_doors() {
    // Anonymous on every line of the table: pages lead to signing in, everything else is 401; open lines stay open.
    let stage = Stage::start().await;
    let client = Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .unwrap();
    for (method, path, need) in TABLE {
        let filled = path.replace(['{', '}', '*'], "");
        let request = client.request(method.parse().unwrap(), stage.url(&filled));
        let status = request.send().await.unwrap().status();
        match need {
            Need::Nobody => assert!(status != StatusCode::UNAUTHORIZED, "{method} {path}: {status}"),
            // Pages; what Prometheus scrapes is for programs, whatever its path.
            _ if *method == "GET"
                && !path.starts_with("/v1/")
                && !path.starts_with("/api/")
                && *path != "/metrics" =>
            {
                assert_eq!(status, StatusCode::SEE_OTHER, "{method} {path}");
            }
            _ => assert_eq!(status, StatusCode::UNAUTHORIZED, "{method} {path}"),
        }
    }
}

#[tokio::test]
async fn looking_at_where_a_form_was_sent_leads_to_its_page_and_the_api_says_no() {
    // An address out of the browser's history, which takes the form alone; a program's call is no page, and neither is
    // what a page may be asked for besides.
    let stage = Stage::start().await;
    let token = stage.token("reader", on(Role::Viewer, None, None)).await;
    let client = Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .unwrap();
    let mut seen = Vec::new();
    for (method, path) in [
        (Method::GET, "/alerts/silences"),
        (Method::HEAD, "/unlocks/u_1/confirm"),
        (Method::GET, "/v1/unlocks/u_1/confirm"),
        (Method::OPTIONS, "/locks"),
    ] {
        let asked = client.request(method, stage.url(path));
        let answer = asked.bearer_auth(token.expose()).send().await.unwrap();
        let to = answer
            .headers()
            .get("location")
            .map(|to| to.to_str().unwrap().to_owned());
        seen.push((answer.status().as_u16(), to));
    }
    let to = |path: &str| (303, Some(path.to_owned()));
    assert_eq!(
        seen,
        [to("/alerts"), to("/unlocks/u_1"), (405, None), (405, None)]
    );
}

#[tokio::test]
async fn who_is_refused_with_a_body_hears_why_and_may_ask_again_on_the_same_connection() {
    // 300 kB sent to what needs a name, a token that is none, and a method that is not there; then a question.
    let stage = Stage::start().await;
    let client = Client::new();
    let body = "x".repeat(300_000);
    for (path, token, status) in [
        ("/v1/locks/acquire", None, StatusCode::UNAUTHORIZED),
        ("/v1/locks/acquire", Some("lht_nobody"), StatusCode::UNAUTHORIZED),
        ("/v1/inventory", None, StatusCode::METHOD_NOT_ALLOWED),
    ] {
        let mut request = client.post(stage.url(path)).body(body.clone());
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        assert_eq!(request.send().await.unwrap().status(), status, "{path} {token:?}");
        let next = client.get(stage.url("/healthz")).send().await.unwrap();
        assert_eq!(next.status(), StatusCode::OK);
    }
}
