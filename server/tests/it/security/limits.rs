//! What one request may bring.

use domain::access::Role;
use reqwest::{Client, StatusCode, header};

use crate::people::stage::{Stage, on};

#[tokio::test]
async fn bodies_and_headers_have_a_most() {
    // JSON, a form and headers that are too large, from who may send them; the server goes on.
    let stage = Stage::start().await;
    let token = stage.token("admin", on(Role::Admin, None, None)).await;
    let http = Client::new();
    let large = format!("{{\"resource\":\"{}\"}}", "a".repeat(900_000));
    let json = http
        .post(stage.url("/v1/locks/acquire"))
        .bearer_auth(token.expose())
        .header(header::CONTENT_TYPE, "application/json")
        .body(large);
    assert_eq!(json.send().await.unwrap().status(), StatusCode::PAYLOAD_TOO_LARGE);
    let form = http
        .post(stage.url("/sign-in"))
        .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
        .body(format!("name={}", "a".repeat(3_000_000)));
    // It may hear the refusal, or find the connection closed while it still sends.
    if let Ok(answer) = form.send().await {
        assert_eq!(answer.status(), StatusCode::PAYLOAD_TOO_LARGE);
    }
    let headers = http.get(stage.url("/healthz")).header("x-a", "a".repeat(200_000));
    if let Ok(answer) = headers.send().await {
        assert_eq!(answer.status(), StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
    }
    let alive = http.get(stage.url("/healthz")).send().await.unwrap();
    assert_eq!(alive.status(), StatusCode::OK);
}
