//! Principals of a test, and requests in their name.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use domain::access::{Grant, Role};
use leasehold::identity::{NewToken, Principal, Secret};
use leasehold::serve::Serving;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use reqwest::{Method, RequestBuilder, Response};
use serde_json::{Value, json};

use super::test_server::TestServer;

/// How a principal authenticates.
#[derive(Debug, Clone)]
pub(crate) enum TestCaller {
    Token(String),
    /// A user's browser, on a page of the server.
    Session(String),
}

impl TestCaller {
    pub(crate) fn secret(&self) -> &str {
        match self {
            Self::Token(secret) | Self::Session(secret) => secret,
        }
    }

    /// Adds the token, or the cookie of the session.
    pub(crate) fn authenticate(&self, request: RequestBuilder) -> RequestBuilder {
        match self {
            Self::Token(secret) => request.bearer_auth(secret),
            Self::Session(secret) => request
                .header("cookie", format!("leasehold={secret}"))
                .header("sec-fetch-site", "same-origin"),
        }
    }
}

impl From<Secret> for TestCaller {
    fn from(token: Secret) -> Self {
        Self::Token(token.expose().to_owned())
    }
}

/// Status and JSON of an answer; null without a JSON body.
pub(crate) type Reply = (u16, Value);

/// Requests of one principal: `server.as_user(&ada).get("/v1/me")`.
#[derive(Clone, Copy)]
pub(crate) struct AsUser<'a> {
    server: &'a TestServer,
    caller: &'a TestCaller,
}

impl TestServer {
    pub(crate) const fn as_user<'a>(&'a self, caller: &'a TestCaller) -> AsUser<'a> {
        AsUser { server: self, caller }
    }
}

impl AsUser<'_> {
    pub(crate) fn request(self, method: Method, path: &str) -> RequestBuilder {
        let request = self.server.anonymous.request(method, self.server.url(path));
        self.caller.authenticate(request)
    }

    pub(crate) async fn send(self, method: Method, path: &str) -> Response {
        self.request(method, path).send().await.unwrap()
    }

    pub(crate) async fn get(self, path: &str) -> Reply {
        reply(self.request(Method::GET, path)).await
    }

    pub(crate) async fn text(self, path: &str) -> (u16, String) {
        let answer = self.send(Method::GET, path).await;
        (answer.status().as_u16(), answer.text().await.unwrap())
    }

    pub(crate) async fn post(self, path: &str, body: &Value) -> Reply {
        self.json(Method::POST, path, body).await
    }

    pub(crate) async fn delete(self, path: &str) -> Reply {
        reply(self.request(Method::DELETE, path)).await
    }

    /// Of a built-in lease for 30 s.
    pub(crate) async fn acquire(self, resource: &str) -> Reply {
        let body = json!({"resource": resource, "ownerId": "w", "ttlSeconds": 30});
        self.post("/v1/locks/acquire", &body).await
    }

    pub(crate) async fn json(self, method: Method, path: &str, body: &Value) -> Reply {
        reply(self.request(method, path).json(body)).await
    }

    /// For a request that must succeed.
    pub(crate) async fn done(self, method: Method, path: &str, body: &Value) -> Value {
        let (status, reply) = self.json(method.clone(), path, body).await;
        assert!((200..300).contains(&status), "{method} {path}: {status} {reply}");
        reply
    }
}

pub(crate) async fn reply(request: RequestBuilder) -> Reply {
    let answer = request.send().await.unwrap();
    (answer.status().as_u16(), answer.json().await.unwrap_or_default())
}

/// Status and code of a problem.
pub(crate) fn code(reply: &Reply) -> (u16, &str) {
    (reply.0, reply.1["code"].as_str().unwrap_or_default())
}

/// A token of this role on everything.
pub(crate) async fn token(serving: &Serving, role: Role) -> Secret {
    // Several servers on one store, and a server that is started again, each want their own.
    static MADE: AtomicU32 = AtomicU32::new(0);
    let number = MADE.fetch_add(1, Ordering::Relaxed);
    let new = NewToken {
        name: format!("test-{}-{number}", role.as_str()),
        grants: vec![Grant::everywhere(role)],
        expires_in: None,
    };
    let who = Principal::system("test");
    serving.identity().create_token(&who, new).await.unwrap()
}

pub(crate) fn bearer(token: &str) -> HeaderMap {
    let value = HeaderValue::try_from(format!("Bearer {token}")).unwrap();
    HeaderMap::from_iter([(AUTHORIZATION, value)])
}

/// Sends the token with every request.
pub(crate) fn client(token: &str, patience: Duration) -> reqwest::Client {
    reqwest::Client::builder()
        .default_headers(bearer(token))
        .timeout(patience)
        .build()
        .unwrap()
}
