//! A page of another site points its own name at the server: the browser takes both for one site, and sends that name as the
//! host.

use super::proxied_server::ProxiedServer;
use crate::support::{PASSWORD, on};
use crate::support::{TestServer, token};
use domain::access::Role;
use reqwest::{Method, StatusCode, header};
use serde_json::Value;

use crate::support::form::Form as _;

const TOML: &str = "listen = \"127.0.0.1:0\"\npublic_url = \"https://leasehold.test\"\nallowed_hosts = [\"leasehold.internal\"]\n\
                    [proxy]\ntrusted = [\"127.0.0.1\"]\n";

async fn status(proxied: &ProxiedServer, host: &str, path: &str, more: &[(&str, &str)]) -> StatusCode {
    let url = format!("http://127.0.0.1:{}{path}", proxied.server.port());
    let request = proxied.http.get(url).header(header::HOST, host);
    let request = more
        .iter()
        .fold(request, |request, (name, value)| request.header(*name, *value));
    request.send().await.unwrap().status()
}

#[tokio::test]
async fn requests_for_another_host_are_misdirected() {
    let proxied = ProxiedServer::start_with(TOML).await;
    proxied.server.add_user("ada", on(Role::Admin, None, None)).await;
    let cookie = proxied.session("203.0.113.1", "ada").await;
    let bearer = token(&proxied.server.serving, Role::Viewer).await;
    let bearer = format!("Bearer {}", bearer.expose());
    for host in [
        "evil.example",
        "leasehold.test.evil.example",
        "127.0.0.1.evil.example:3000",
    ] {
        for path in [
            "/sign-in",
            "/",
            "/v1/inventory",
            "/pkg/leasehold.css",
            "/setup",
            "/no-such-page",
        ] {
            let answered = status(&proxied, host, path, &[("cookie", &cookie)]).await;
            assert_eq!(answered, StatusCode::MISDIRECTED_REQUEST, "{host}{path}");
        }
        // A program with a token, and an anonymous probe, are answered under any host.
        let answered = status(&proxied, host, "/v1/inventory", &[("authorization", &bearer)]).await;
        assert_eq!(answered, StatusCode::OK, "{host}");
        assert_eq!(
            status(&proxied, host, "/healthz", &[]).await,
            StatusCode::OK,
            "{host}"
        );
    }
    for host in [
        "leasehold.test",
        "Leasehold.Internal:8443",
        "localhost:1",
        "10.1.2.3",
        "[::1]:3000",
    ] {
        let answered = status(&proxied, host, "/v1/inventory", &[("cookie", &cookie)]).await;
        assert_eq!(answered, StatusCode::OK, "{host}");
    }
    let url = format!("http://127.0.0.1:{}/sign-in", proxied.server.port());
    let sign_in = proxied
        .http
        .request(Method::POST, url)
        .header(header::HOST, "evil.example");
    let refused = sign_in
        .form(&[("name", "ada"), ("password", PASSWORD)])
        .send()
        .await
        .unwrap();
    assert_eq!(refused.status(), StatusCode::MISDIRECTED_REQUEST);
    assert!(!refused.headers().contains_key(header::SET_COOKIE));
    let problem: Value = refused.json().await.unwrap();
    assert_eq!(problem["code"], "misdirected", "{problem}");
    let remedy = problem["remedy"].as_str().unwrap();
    assert!(
        remedy.contains("https://leasehold.test") && remedy.contains("allowed_hosts"),
        "{remedy}"
    );
}

#[tokio::test]
async fn without_a_public_url_every_host_is_answered() {
    let console = TestServer::builder().operator().start().await;
    let sent = console
        .client
        .get(console.url("/sign-in"))
        .header(header::HOST, "any.example");
    assert_eq!(sent.send().await.unwrap().status(), StatusCode::OK);
}
