//! Size limits of one request.

use crate::support::{TestServer, on};
use domain::access::Role;
use reqwest::{Client, header};

#[tokio::test]
async fn bodies_and_headers_have_size_limits() {
    // JSON, a form and headers that are too large, from authorized callers; the server keeps running.
    let server = TestServer::builder().redis().start().await;
    let token = server.token("admin", on(Role::Admin, None, None)).await;
    let http = Client::new();
    let large = format!("{{\"resource\":\"{}\"}}", "a".repeat(900_000));
    let json = http
        .post(server.url("/v1/locks/acquire"))
        .bearer_auth(token.secret())
        .header(header::CONTENT_TYPE, "application/json")
        .body(large);
    assert_eq!(json.send().await.unwrap().status(), 413);
    let form = http
        .post(server.url("/sign-in"))
        .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
        .body(format!("name={}", "a".repeat(3_000_000)));
    // The client may receive the refusal, or find the connection closed while it still sends.
    if let Ok(answer) = form.send().await {
        assert_eq!(answer.status(), 413);
    }
    let headers = http
        .get(server.url("/healthz"))
        .header("x-a", "a".repeat(200_000));
    if let Ok(answer) = headers.send().await {
        assert_eq!(answer.status(), 431);
    }
    let alive = http.get(server.url("/healthz")).send().await.unwrap();
    assert_eq!(alive.status(), 200);
}
