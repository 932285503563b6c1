//! The direct path of acquire, renew and release: the same answers as the router's, for requests that the router would admit.
//!
//! Behind the direct path is an empty router here, which answers every request that reaches it with 404 and no body.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{ConnectInfo, Request};
use axum::http::request::Builder;
use axum::response::Response;
use domain::access::Role;
use leasehold::http;
use leasehold::http::lease::direct::WithDirectLeases;
use leasehold::identity::Principal;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use crate::support::{TestServer, on};

const UNKNOWN_LEASE: &str = "0192e4a0-0000-7000-8000-000000000001";
/// Of a loopback address, which needs no HTTPS.
const PEER: ([u8; 4], u16) = ([127, 0, 0, 1], 4711);

struct Ways {
    server: TestServer,
    direct: WithDirectLeases,
    router: Router,
    token: String,
}

/// What a client sees, without what differs between two calls.
#[derive(Debug, PartialEq)]
struct Answer {
    status: u16,
    headers: BTreeMap<String, String>,
    body: Value,
}

impl Ways {
    async fn open() -> Self {
        let server = TestServer::start().await;
        let token = server
            .token("worker", on(Role::Client, None, None))
            .await
            .secret()
            .to_owned();
        let state = server.serving.state.clone();
        Self {
            direct: WithDirectLeases::new(state.clone(), Router::new()),
            router: http::router(state),
            server,
            token,
        }
    }

    fn request(&self, method: &str, path: &str) -> Builder {
        let request = Request::builder().method(method).uri(path);
        request
            .header("authorization", format!("Bearer {}", self.token))
            .extension(ConnectInfo(SocketAddr::from(PEER)))
    }

    async fn direct(&self, request: Request) -> Response {
        self.direct.clone().oneshot(request).await.unwrap()
    }

    /// Whether the direct path passes the request on to the router.
    async fn is_left(&self, request: Request) -> bool {
        let answer = self.direct(request).await;
        let (is_missing, body) = (answer.status() == 404, to_bytes(answer.into_body(), 1).await);
        is_missing && body.is_ok_and(|body| body.is_empty())
    }
}

async fn read(answer: Response) -> (u16, BTreeMap<String, String>, String) {
    let (parts, body) = answer.into_parts();
    let text = |value: &axum::http::HeaderValue| value.to_str().unwrap().to_owned();
    let headers = parts.headers.iter();
    let mut headers: BTreeMap<_, _> = headers
        .map(|(name, value)| (name.to_string(), text(value)))
        .collect();
    // The router adds it, hyper otherwise.
    headers.remove("content-length");
    let body = to_bytes(body, 1 << 20).await.unwrap();
    (
        parts.status.as_u16(),
        headers,
        String::from_utf8(body.to_vec()).unwrap(),
    )
}

/// One of the two paths, with a lease of its own.
struct Caller<'a> {
    ways: &'a Ways,
    way: &'static str,
    lease: String,
}

impl Caller<'_> {
    async fn call(&mut self, step: &Step) -> Answer {
        let fill = |text: &str| text.replace("{way}", self.way).replace("{lease}", &self.lease);
        let mut request = self.ways.request(step.method, &fill(step.path));
        for (name, value) in &step.headers {
            request = request.header(*name, fill(value));
        }
        let request = request.body(Body::from(fill(&step.body))).unwrap();
        let answer = match self.way {
            "direct" => self.ways.direct(request).await,
            _ => self.ways.router.clone().oneshot(request).await.unwrap(),
        };
        let (status, mut headers, text) = read(answer).await;
        let mut body: Value = serde_json::from_str(&text).unwrap_or(Value::String(text));
        if let Some(lease) = body["leaseId"].as_str().filter(|_| body["acquired"] == true) {
            lease.clone_into(&mut self.lease);
        }
        if !step.headers.iter().any(|(name, _)| *name == "x-request-id") {
            let id = headers.insert("x-request-id".to_owned(), String::new());
            assert_eq!(id.map(|id| id.len()), Some(32), "{step:?}");
            mask(&mut body, "requestId");
        }
        for name in [
            "leaseId",
            "fencingToken",
            "expiresAt",
            "remainingMs",
            "retryAfterMs",
        ] {
            mask(&mut body, name);
        }
        Answer {
            status,
            headers,
            body: self.without_names(&body),
        }
    }

    fn without_names(&self, body: &Value) -> Value {
        let text = body
            .to_string()
            .replace(self.way, "way")
            .replace(&self.lease, "lease");
        serde_json::from_str(&text).unwrap()
    }
}

/// Keeps only whether the members of this name are there.
fn mask(body: &mut Value, name: &str) {
    match body {
        Value::Object(members) => members.iter_mut().for_each(|(key, value)| match value {
            Value::Null => {}
            _ if key == name => *value = "some".into(),
            _ => mask(value, name),
        }),
        Value::Array(values) => values.iter_mut().for_each(|value| mask(value, name)),
        _ => {}
    }
}

#[derive(Debug)]
struct Step {
    method: &'static str,
    path: &'static str,
    headers: Vec<(&'static str, &'static str)>,
    body: String,
    status: u16,
}

const JSON: (&str, &str) = ("content-type", "application/json");

impl Step {
    fn acquire(status: u16, body: impl ToString) -> Self {
        Self {
            method: "POST",
            path: "/v1/locks/acquire",
            headers: vec![JSON],
            body: body.to_string(),
            status,
        }
    }

    fn renew(status: u16, path: &'static str, body: impl ToString) -> Self {
        Self {
            path,
            ..Self::acquire(status, body)
        }
    }

    fn release(status: u16, path: &'static str) -> Self {
        Self {
            method: "DELETE",
            headers: Vec::new(),
            ..Self::renew(status, path, "")
        }
    }

    fn with(mut self, name: &'static str, value: &'static str) -> Self {
        self.headers.push((name, value));
        self
    }
}

const LEASE: &str = "/v1/locks/{lease}";
const RENEW: &str = "/v1/locks/{lease}/renew";

fn acquire_steps() -> Vec<Step> {
    let lock =
        |name: &str, ttl| json!({"resource": format!("{{way}}:{name}"), "ownerId": "o", "ttlSeconds": ttl});
    let keyed = || Step::acquire(200, lock("keyed", 30)).with("idempotency-key", "{way}-1");
    let mut named = lock("named", 30);
    named["metadata"] = json!({"host": "näme \" < ${x}", "zone": "z"});
    named["waitSeconds"] = 1.into();
    vec![
        Step::acquire(200, lock("a", 30)),
        Step::acquire(200, lock("a", 30)),
        Step::acquire(200, named),
        keyed(),
        keyed(),
        Step::acquire(409, lock("other", 30)).with("idempotency-key", "{way}-1"),
        Step::acquire(400, lock("b", 30)).with("idempotency-key", "two words"),
        Step::acquire(400, lock("b", 30))
            .with("idempotency-key", "one")
            .with("idempotency-key", "two"),
        Step::acquire(400, lock("b", 0)),
        Step::acquire(
            400,
            json!({"resource": " ", "ownerId": "", "ttlSeconds": -1, "waitSeconds": 61}),
        ),
        Step::acquire(
            400,
            json!({"resource": "b", "ownerId": "o", "ttlSeconds": 1, "more": 1}),
        ),
        Step::acquire(400, "{\"resource\":\"b\",\"resource\":\"b\"}"),
        Step::acquire(400, "[1]"),
        Step::acquire(400, "{"),
        Step::acquire(400, ""),
        Step::acquire(413, "x".repeat(70_000)),
        Step {
            headers: vec![("content-type", "text/plain")],
            ..Step::acquire(415, lock("b", 30))
        },
        Step::acquire(200, lock("c", 30)).with("x-request-id", "chosen-1"),
        Step::acquire(400, lock("c", 0)).with("x-request-id", "chosen-2"),
        Step::acquire(200, lock("d", 30)).with(
            "traceparent",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        ),
        Step::acquire(200, lock("e", 30)).with("cookie", "leasehold_session=x"),
    ]
}

fn lease_steps() -> Vec<Step> {
    let lock = json!({"resource": "{way}:lease", "ownerId": "o", "ttlSeconds": 30});
    vec![
        Step::acquire(200, lock),
        Step::renew(200, RENEW, ""),
        Step::renew(200, RENEW, json!({"ttlSeconds": 60})),
        Step::renew(400, RENEW, json!({"ttlSeconds": 0})),
        Step::renew(400, RENEW, json!({"ttl": 1})),
        Step::renew(404, "/v1/locks/0192e4a0-0000-7000-8000-000000000001/renew", ""),
        Step::release(404, "/v1/locks/0192e4a0-0000-7000-8000-000000000001"),
        Step::release(200, "/v1/locks/{lease}?why=no"),
        Step::release(200, LEASE),
        Step::renew(410, RENEW, "").with("x-request-id", "chosen-3"),
    ]
}

#[tokio::test]
async fn direct_calls_have_the_answers_of_the_router() {
    // Fails if status, a header or a member differs, or if a request of these is left to the router.
    let ways = Ways::open().await;
    let of = |way| Caller {
        ways: &ways,
        way,
        lease: UNKNOWN_LEASE.to_owned(),
    };
    let (mut direct, mut routed) = (of("direct"), of("routed"));
    for step in acquire_steps().into_iter().chain(lease_steps()) {
        let answer = routed.call(&step).await;
        assert_eq!(answer.status, step.status, "{step:?}: {answer:?}");
        assert_eq!(direct.call(&step).await, answer, "{step:?}");
    }
}

#[tokio::test]
async fn requests_that_the_router_may_refuse_go_to_the_router() {
    // No token, an unknown one, one of a viewer, another scheme, a client without HTTPS, an invalid id, and a revoked token.
    let ways = Ways::open().await;
    let viewer = ways.server.token("viewer", on(Role::Viewer, None, None)).await;
    let path = format!("/v1/locks/{UNKNOWN_LEASE}");
    let release = || ways.request("DELETE", &path);
    let with = |token: &str| {
        let mut request = release().body(Body::empty()).unwrap();
        let value = token.parse().unwrap();
        request.headers_mut().insert("authorization", value);
        request
    };
    assert!(!ways.is_left(release().body(Body::empty()).unwrap()).await);
    let mut anonymous = release().body(Body::empty()).unwrap();
    anonymous.headers_mut().remove("authorization");
    let far = ConnectInfo(SocketAddr::from(([203, 0, 113, 9], 4711)));
    for request in [
        anonymous,
        with("Bearer lht_unknown"),
        with(&format!("Bearer {}", viewer.secret())),
        with(&format!("Basic {}", ways.token)),
        release().extension(far).body(Body::empty()).unwrap(),
        ways.request("DELETE", "/v1/locks/1").body(Body::empty()).unwrap(),
        ways.request("GET", &path).body(Body::empty()).unwrap(),
    ] {
        let what = format!("{request:?}");
        assert!(ways.is_left(request).await, "{what}");
    }
    let who = Principal::system("test");
    let identity = ways.server.identity();
    identity.revoke_token(&who, "worker").await.unwrap();
    assert!(ways.is_left(release().body(Body::empty()).unwrap()).await);
}
