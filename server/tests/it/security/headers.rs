//! Security headers of every kind of answer.

use crate::support::{TestServer, on};
use domain::access::Role;
use reqwest::{Client, Method, Response, header};

fn header_of<'a>(answer: &'a Response, name: &str) -> &'a str {
    let value = answer.headers().get(name).map(|value| value.to_str().unwrap());
    value.unwrap_or_default()
}

fn check_page(answer: &Response, what: &str) {
    let policy = header_of(answer, "content-security-policy");
    for part in ["default-src 'none'", "frame-ancestors 'none'"] {
        assert!(policy.contains(part), "{what}: {policy}");
    }
    for part in ["unsafe-inline", " 'unsafe-eval'", "*", "http:", "data:"] {
        assert!(!policy.contains(part), "{what}: {policy}");
    }
    assert_eq!(
        header_of(answer, "cross-origin-opener-policy"),
        "same-origin",
        "{what}"
    );
    assert_eq!(header_of(answer, "referrer-policy"), "same-origin", "{what}");
}

#[tokio::test]
async fn every_kind_of_response_has_security_headers() {
    // Pages with and without a script, redirects, refusals, problems, JSON, streams, what is not there, static files.
    let server = TestServer::builder().redis().start().await;
    server.add_user("root", on(Role::Admin, None, None)).await;
    server.add_user("bea", on(Role::Viewer, None, Some("a:"))).await;
    let (root, bea, nobody) = (
        server.signed_in("root").await,
        server.signed_in("bea").await,
        server.browser(),
    );
    let mut seen = std::collections::BTreeSet::new();
    for (browser, method, path, status) in [
        (&root, "GET", "/", 200),
        (&root, "GET", "/locks", 200),
        (&root, "GET", "/backends", 200),
        (&root, "GET", "/locks/cache/none", 404),
        (&root, "GET", "/no-such-page", 404),
        (&root, "GET", "/settings", 200),
        (&root, "GET", "/settings/users", 200),
        (&nobody, "GET", "/sign-in", 200),
        (&nobody, "GET", "/sign-in?link=lhl_x", 410),
        (&nobody, "GET", "/setup?link=lhl_x", 410),
        (&nobody, "POST", "/sign-in", 401),
        (&nobody, "GET", "/locks", 303),
        (&bea, "GET", "/settings/users", 403),
        (&nobody, "GET", "/v1/inventory", 401),
        (&bea, "GET", "/v1/users", 403),
        (&root, "GET", "/v1/inventory", 200),
        (&root, "GET", "/v1/nothing", 404),
        (&root, "DELETE", "/v1/inventory", 405),
        (&root, "GET", "/v1/openapi.json", 200),
        (&root, "GET", "/v1/events", 200),
        (&nobody, "GET", "/healthz", 200),
        (&nobody, "GET", "/pkg/none.js", 404),
    ] {
        let method: Method = method.parse().unwrap();
        let form = [
            ("content-type", "application/x-www-form-urlencoded"),
            ("body", "name=x&password=y"),
        ];
        let parts = if method == Method::POST { &form[..] } else { &[] };
        let answer = browser.send(method.clone(), path, parts).await;
        let what = format!("{method} {path}");
        assert_eq!(answer.status().as_u16(), status, "{what}");
        seen.insert(status);
        assert_eq!(header_of(&answer, "x-content-type-options"), "nosniff", "{what}");
        let caching = header_of(&answer, "cache-control");
        assert!(matches!(caching, "no-store" | "no-cache"), "{what}: {caching:?}");
        assert_eq!(header_of(&answer, "server"), "", "{what}");
        assert_eq!(header_of(&answer, "access-control-allow-origin"), "", "{what}");
        if !path.starts_with("/v1/") && path != "/healthz" {
            check_page(&answer, &what);
        }
        // A stream is not cached, and a static file is revalidated each time.
        if !matches!(path, "/pkg/none.js" | "/v1/events") {
            assert_eq!(caching, "no-store", "{what}");
        }
    }
    assert_eq!(seen.len(), 7, "{seen:?}");
}

#[tokio::test]
async fn a_page_with_a_script_runs_only_what_carries_its_own_nonce() {
    // Signed in, twice: the nonce is in the policy, on each script, and never the same.
    let server = TestServer::builder().redis().start().await;
    server.add_user("root", on(Role::Admin, None, None)).await;
    let root = server.signed_in("root").await;
    let mut nonces = Vec::new();
    for _ in 0..2 {
        let answer = root.get("/locks").await;
        let policy = header_of(&answer, "content-security-policy").to_owned();
        for part in [
            "'wasm-unsafe-eval'",
            "object-src 'none'",
            "base-uri 'none'",
            "form-action 'self'",
        ] {
            assert!(policy.contains(part), "{policy}");
        }
        let nonce = policy
            .split("'nonce-")
            .nth(1)
            .unwrap()
            .split('\'')
            .next()
            .unwrap()
            .to_owned();
        let html = answer.text().await.unwrap();
        for tag in html.split("<script").skip(1) {
            let tag = tag.split('>').next().unwrap();
            assert!(tag.contains(&format!("nonce=\"{nonce}\"")), "{tag}");
        }
        nonces.push(nonce);
    }
    assert_ne!(nonces[0], nonces[1]);
}

#[tokio::test]
async fn nothing_outside_the_table_of_static_files_is_served() {
    // Ways out of a folder, sent as they are; none shows a file of the machine.
    let server = TestServer::builder().redis().start().await;
    for path in [
        "/pkg/../../../../../../etc/passwd",
        "/pkg/..%2f..%2f..%2f..%2f..%2fetc%2fpasswd",
        "/pkg/%2e%2e/%2e%2e/%2e%2e/%2e%2e/etc/passwd",
        "/pkg/....//....//etc/passwd",
        "/pkg//etc/passwd",
        "/pkg/%2fetc%2fpasswd",
        "/fonts/..%5c..%5cetc%5cpasswd",
        "/pkg/leasehold.js%00.css",
        "/pkg/../Cargo.toml",
        "/fonts/../pkg/../../server/Cargo.toml",
    ] {
        let text = raw(&server, path).await;
        let status = text.split(' ').nth(1).unwrap_or_default();
        assert!(matches!(status, "404" | "400" | "303"), "{path}: {text}");
        assert!(
            !text.contains("root:") && !text.contains("[package]"),
            "{path}: {text}"
        );
    }
}

/// The answer to a path that no client library touches.
async fn raw(server: &TestServer, path: &str) -> String {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let mut stream = tokio::net::TcpStream::connect(server.serving.address)
        .await
        .unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).await.unwrap();
    String::from_utf8_lossy(&bytes).into_owned()
}

#[tokio::test]
async fn sign_in_redirects_only_inside_the_console() {
    // Ways that other consoles were led away, in the form and in the address of the form.
    let server = TestServer::builder().redis().start().await;
    server.add_user("ada", on(Role::Viewer, None, None)).await;
    for (next, leads) in [
        ("//evil.example", "/"),
        ("https://evil.example", "/"),
        ("/\\evil.example", "/"),
        ("/\t/evil.example", "/"),
        ("javascript:alert(1)", "/"),
        ("evil", "/"),
        ("/locks?q=a", "/locks?q=a"),
    ] {
        let form = [
            ("name", "ada"),
            ("password", crate::support::PASSWORD),
            ("next", next),
        ];
        let welcome = server.browser().post("/sign-in", &form).await;
        assert_eq!(welcome.status(), 303, "{next:?}");
        assert_eq!(welcome.headers()[header::LOCATION], leads, "{next:?}");
        let url = reqwest::Url::parse_with_params(&server.url("/sign-in"), [("next", next)]).unwrap();
        let page = Client::new().get(url).send().await.unwrap().text().await.unwrap();
        let hidden = page
            .split("name=\"next\"")
            .nth(1)
            .unwrap()
            .split('>')
            .next()
            .unwrap();
        assert!(
            hidden.contains(&format!("value=\"{leads}\"")),
            "{next:?}: {hidden}"
        );
    }
}
