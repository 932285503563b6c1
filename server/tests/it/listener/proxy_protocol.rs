//! Behind a real reverse hop that speaks HTTPS with users and plain HTTP with us.

use super::tls_client::client;
use crate::support::{PASSWORD, TestServer, aside, on};
use domain::access::Role;
use std::net::SocketAddr;

use ::config::ServerTls;
use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, Request, State};
use axum::http::{HeaderValue, header};
use axum::response::Response;
use leasehold::serve::listener::Listener;
use leasehold::serve::listener::limits::Limits;
use leasehold::serve::listener::tls::Certificate;
use reqwest::{Client, StatusCode, redirect};
use runtime::clock::Clock;
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::support::form::Form as _;
use testkit::Certs;

/// Forwards each request with the client's address appended to the header, as proxies do.
async fn pass_on(
    State((http, port, proto)): State<(Client, u16, &'static str)>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    request: Request,
) -> Response {
    let (mut parts, body) = request.into_parts();
    let before = parts
        .headers
        .get("x-forwarded-for")
        .and_then(|it| it.to_str().ok());
    let line = match before {
        Some(before) => format!("{before}, {}", peer.ip()),
        None => peer.ip().to_string(),
    };
    parts
        .headers
        .insert("x-forwarded-for", HeaderValue::try_from(line).unwrap());
    parts
        .headers
        .insert("x-forwarded-proto", HeaderValue::from_static(proto));
    if let Some(host) = parts.uri.authority() {
        let host = HeaderValue::try_from(host.as_str()).unwrap();
        parts.headers.insert(header::HOST, host);
    }
    let body = axum::body::to_bytes(body, 1 << 20).await.unwrap();
    let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    let sent = http
        .request(parts.method, format!("http://127.0.0.1:{port}{path}"))
        .headers(parts.headers)
        .body(body);
    let answer = sent.send().await.unwrap();
    let mut response = Response::new(Body::empty());
    *response.status_mut() = answer.status();
    *response.headers_mut() = answer.headers().clone();
    // Each hop has its own transfer encoding.
    response.headers_mut().remove(header::TRANSFER_ENCODING);
    *response.body_mut() = Body::from(answer.bytes().await.unwrap());
    response
}

/// A hop to the console on `port`; with a certificate it speaks HTTPS.
async fn hop(listener: TcpListener, port: u16, certs: Option<&Certs>) -> DropGuard {
    let http = Client::builder()
        .redirect(redirect::Policy::none())
        .build()
        .unwrap();
    let proto = if certs.is_some() { "https" } else { "http" };
    let router = Router::new().fallback(pass_on).with_state((http, port, proto));
    let tls = certs.map(|certs| {
        let files = ServerTls {
            cert_file: certs.server().cert,
            key_file: certs.server().key,
        };
        Certificate::load(&files).unwrap().acceptor().unwrap()
    });
    let served = Listener {
        listener,
        tls,
        limits: Limits::from_process(),
        exempt: Vec::new(),
        proxies: Vec::new(),
        is_secure: false,
        clock: Clock::start(),
    };
    let stop = CancellationToken::new();
    aside(served.serve(router, stop.clone()));
    stop.drop_guard()
}

struct Behind {
    server: TestServer,
    certs: Certs,
    home: String,
    clear: String,
    _hops: [DropGuard; 2],
}

/// Two hops before one console: one with HTTPS for users, and one with plain HTTP. 127.0.0.1 is the declared proxy.
async fn behind() -> Behind {
    let certs = Certs::make();
    let [safe, clear] = [
        TcpListener::bind("127.0.0.1:0").await,
        TcpListener::bind("127.0.0.1:0").await,
    ];
    let (safe, clear) = (safe.unwrap(), clear.unwrap());
    let home = format!("https://localhost:{}", safe.local_addr().unwrap().port());
    let in_clear = format!("http://{}", clear.local_addr().unwrap());
    let server = TestServer::builder()
        .config(&format!(
            "listen = \"0.0.0.0:0\"\npublic_url = \"{home}\"\n[proxy]\ntrusted = [\"127.0.0.1\"]\n"
        ))
        .start()
        .await;
    server.add_user("ada", on(Role::Admin, None, None)).await;
    let hops = [
        hop(safe, server.port(), Some(&certs)).await,
        hop(clear, server.port(), None).await,
    ];
    Behind {
        server,
        certs,
        home,
        clear: in_clear,
        _hops: hops,
    }
}

#[tokio::test]
async fn client_addresses_pass_through_the_proxy() {
    // A sign-in from 127.0.0.2 with a forged header; then from 127.0.0.3 past the proxy, with the same header.
    let behind = behind().await;
    let visitor = client(&behind.certs.ca(), [127, 0, 0, 2]);
    let form = [("name", "ada"), ("password", PASSWORD)];
    let sign_in = visitor
        .post(format!("{}/sign-in", behind.home))
        .header("x-forwarded-for", "6.6.6.6")
        .header("origin", &behind.home)
        .form(&form);
    let welcome = sign_in.send().await.unwrap();
    assert_eq!(welcome.status(), StatusCode::SEE_OTHER);
    assert!(welcome.headers().contains_key(header::STRICT_TRANSPORT_SECURITY));
    let cookie = welcome.headers()[header::SET_COOKIE].to_str().unwrap().to_owned();
    assert!(
        cookie.starts_with("__Host-leasehold=lhs_") && cookie.contains("; Secure"),
        "{cookie}"
    );
    let page = visitor
        .get(&behind.home)
        .header(header::COOKIE, cookie.split(';').next().unwrap());
    assert_eq!(page.send().await.unwrap().status(), StatusCode::OK);
    let row = &behind.server.audit_entries().await[0];
    assert_eq!(
        (row.action.as_str(), row.ip.as_deref()),
        ("LOGIN", Some("127.0.0.2"))
    );

    let past = client(&behind.certs.ca(), [127, 0, 0, 3]);
    let direct = format!("http://127.0.0.1:{}/sign-in", behind.server.port());
    let wrong = [("name", "ada"), ("password", "not the password")];
    let guess = past
        .post(direct)
        .header("x-forwarded-for", "6.6.6.6")
        .form(&wrong);
    assert_eq!(guess.send().await.unwrap().status(), StatusCode::UNAUTHORIZED);
    let row = &behind.server.audit_entries().await[0];
    assert_eq!(
        (row.outcome.as_str(), row.ip.as_deref()),
        ("wrong_password", Some("127.0.0.3"))
    );
}

#[tokio::test]
async fn plain_http_at_the_proxy_is_redirected_or_refused() {
    // A page redirects to the same page at public_url, never to the request's Host; an API client is refused; a probe
    // is answered.
    let behind = behind().await;
    let visitor = client(&behind.certs.ca(), [127, 0, 0, 2]);
    let page = visitor
        .get(format!("{}/locks?q=a", behind.clear))
        .header(header::HOST, "evil.example");
    let led = page.send().await.unwrap();
    assert_eq!(led.status(), StatusCode::PERMANENT_REDIRECT);
    assert_eq!(
        led.headers()[header::LOCATION],
        format!("{}/locks?q=a", behind.home)
    );
    let program = visitor
        .post(format!("{}/v1/locks/acquire", behind.clear))
        .bearer_auth("lht_x");
    let refused = program.send().await.unwrap();
    assert_eq!(refused.status(), StatusCode::FORBIDDEN);
    let problem: serde_json::Value = refused.json().await.unwrap();
    assert_eq!(problem["code"], "needs_https");
    assert_eq!(problem["remedy"], format!("Use {}.", behind.home));
    let form = [("name", "ada"), ("password", PASSWORD)];
    let sign_in = visitor
        .post(format!("{}/sign-in", behind.clear))
        .form(&form)
        .send()
        .await
        .unwrap();
    assert!(sign_in.status() == StatusCode::FORBIDDEN && !sign_in.headers().contains_key(header::SET_COOKIE));
    let probe = visitor
        .get(format!("{}/healthz", behind.clear))
        .send()
        .await
        .unwrap();
    assert_eq!(probe.status(), StatusCode::OK);
}
