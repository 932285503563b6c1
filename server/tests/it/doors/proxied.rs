//! Behind a real reverse hop that speaks HTTPS with people and plain HTTP with us.

use std::net::SocketAddr;

use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, Request, State};
use axum::http::{HeaderValue, header};
use axum::response::Response;
use leasehold::clock::Clock;
use leasehold::config::ServerTls;
use leasehold::serve::doors::Doors;
use leasehold::serve::doors::limits::Limits;
use leasehold::serve::doors::tls::Certificate;
use reqwest::{Client, StatusCode, redirect};
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::stage::{PASSWORD, Stage, aside, client};
use crate::support::certs::Certs;
use crate::support::form::Form as _;

/// Passes on what it gets, with who sent it, as proxies do: appended to what was there.
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
    // How it is cut into parts is between each two.
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
    let doors = Doors {
        listener,
        tls,
        limits: Limits::of_process(),
        exempt: Vec::new(),
        proxies: Vec::new(),
        is_secure: false,
        clock: Clock::start(),
    };
    let stop = CancellationToken::new();
    aside(doors.serve(router, stop.clone()));
    stop.drop_guard()
}

struct Behind {
    stage: Stage,
    certs: Certs,
    home: String,
    clear: String,
    _hops: [DropGuard; 2],
}

/// Two hops before one console: the one that people shall use, and one in clear. 127.0.0.1 is the declared proxy.
async fn behind() -> Behind {
    let certs = Certs::make();
    let [safe, clear] = [
        TcpListener::bind("127.0.0.1:0").await,
        TcpListener::bind("127.0.0.1:0").await,
    ];
    let (safe, clear) = (safe.unwrap(), clear.unwrap());
    let home = format!("https://localhost:{}", safe.local_addr().unwrap().port());
    let in_clear = format!("http://{}", clear.local_addr().unwrap());
    let stage = Stage::start(&format!(
        "listen = \"0.0.0.0:0\"\npublic_url = \"{home}\"\n[proxy]\ntrusted = [\"127.0.0.1\"]\n"
    ))
    .await;
    stage.admin("ada").await;
    let hops = [
        hop(safe, stage.port(), Some(&certs)).await,
        hop(clear, stage.port(), None).await,
    ];
    Behind {
        stage,
        certs,
        home,
        clear: in_clear,
        _hops: hops,
    }
}

#[tokio::test]
async fn people_come_through_the_proxy_and_are_known_by_their_own_address() {
    // A sign-in from 127.0.0.2, who claims to be somebody else; then from 127.0.0.3 past the proxy, with the same claim.
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
    let row = &behind.stage.record().await[0];
    assert_eq!(
        (row.action.as_str(), row.ip.as_deref()),
        ("LOGIN", Some("127.0.0.2"))
    );

    let past = client(&behind.certs.ca(), [127, 0, 0, 3]);
    let direct = format!("http://127.0.0.1:{}/sign-in", behind.stage.port());
    let wrong = [("name", "ada"), ("password", "not the password")];
    let guess = past
        .post(direct)
        .header("x-forwarded-for", "6.6.6.6")
        .form(&wrong);
    assert_eq!(guess.send().await.unwrap().status(), StatusCode::UNAUTHORIZED);
    let row = &behind.stage.record().await[0];
    assert_eq!(
        (row.outcome.as_str(), row.ip.as_deref()),
        ("wrong_password", Some("127.0.0.3"))
    );
}

#[tokio::test]
async fn who_came_to_the_proxy_in_clear_is_led_to_https_or_refused() {
    // A page leads to the same page at public_url, never to what the request calls its host; a program is refused; a probe
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
    assert_eq!(problem["mend"], format!("Use {}.", behind.home));
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
