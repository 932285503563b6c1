//! Every route of the permission table with callers who may not use it. The routes that the server
//! describes must be in the table, so that a new one without an entry fails here.

use crate::support::{TestServer, on};
use axum::http::Method;
use domain::access::Role;
use leasehold::http::auth::route_permissions::{Access, RouteRow, access};
use leasehold::http::routes::TABLE;
use reqwest::Client;

/// Method and path of everything that the server describes.
async fn described(server: &TestServer) -> Vec<(Method, String)> {
    let token = server.token("reader", on(Role::Viewer, None, None)).await;
    let (_, api) = server.as_user(&token).get("/v1/openapi.json").await;
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
async fn every_described_route_is_in_the_permission_table() {
    // By the very paths that the server describes.
    let server = TestServer::builder().redis().start().await;
    for (method, path) in described(&server).await {
        assert!(
            access(&method, Some(&path)).is_some(),
            "{method} {path} has no row in the table"
        );
    }
}

#[tokio::test]
async fn anonymous_requests_are_refused_on_every_route() {
    // Anonymous requests for every row of the table: pages redirect to the sign-in page, other routes answer 401, and public ones
    // are served.
    let server = TestServer::builder().redis().start().await;
    let client = Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .unwrap();
    for RouteRow {
        method, path, access, ..
    } in TABLE
    {
        let filled = path.replace(['{', '}', '*'], "");
        let request = client.request(method.parse().unwrap(), server.url(&filled));
        let status = request.send().await.unwrap().status();
        match access {
            Access::Public => assert!(status != 401, "{method} {path}: {status}"),
            // Pages; the metrics are for programs, whatever their path.
            _ if *method == "GET"
                && !path.starts_with("/v1/")
                && !path.starts_with("/api/")
                && *path != "/metrics" =>
            {
                assert_eq!(status, 303, "{method} {path}");
            }
            _ => assert_eq!(status, 401, "{method} {path}"),
        }
    }
}

#[tokio::test]
async fn get_on_a_form_target_redirects_and_the_api_refuses() {
    // A URL from the browser's history that only accepts a form; an API call is no page, and
    // OPTIONS opens none.
    let server = TestServer::builder().redis().start().await;
    let token = server.token("reader", on(Role::Viewer, None, None)).await;
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
        let attempt = client.request(method, server.url(path));
        let answer = attempt.bearer_auth(token.secret()).send().await.unwrap();
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
async fn a_rejected_body_gets_a_reason_on_an_open_connection() {
    // 300 kB sent to a route with authentication, with an invalid token, and with an unknown
    // method; then another request.
    let server = TestServer::builder().redis().start().await;
    let client = Client::new();
    let body = "x".repeat(300_000);
    for (path, token, status) in [
        ("/v1/locks/acquire", None, 401),
        ("/v1/locks/acquire", Some("lht_nobody"), 401),
        ("/v1/inventory", None, 405),
    ] {
        let mut request = client.post(server.url(path)).body(body.clone());
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        assert_eq!(request.send().await.unwrap().status(), status, "{path} {token:?}");
        let next = client.get(server.url("/healthz")).send().await.unwrap();
        assert_eq!(next.status(), 200);
    }
}
