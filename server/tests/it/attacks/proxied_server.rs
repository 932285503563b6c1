//! A server behind a declared proxy: the test is the proxy and chooses the address of each client.

use crate::support::{PASSWORD, TestServer};
use reqwest::{Client, RequestBuilder, Response, StatusCode, header, redirect};

use crate::support::form::Form as _;

pub(super) struct ProxiedServer {
    pub(super) server: TestServer,
    pub(super) http: Client,
}

impl ProxiedServer {
    pub(super) async fn start() -> Self {
        Self::start_with(
            "listen = \"127.0.0.1:0\"\npublic_url = \"https://leasehold.test\"\n[proxy]\ntrusted = [\"127.0.0.1\"]\n",
        )
        .await
    }

    /// With this `leasehold.toml`, which declares the proxy.
    pub(super) async fn start_with(toml: &str) -> Self {
        Self {
            server: TestServer::builder().config(toml).start().await,
            http: Client::builder()
                .redirect(redirect::Policy::none())
                .build()
                .unwrap(),
        }
    }

    /// Another server on the same store; this one ends first.
    pub(super) async fn restart(self) -> Self {
        Self {
            server: self.server.restart().await,
            http: self.http,
        }
    }

    pub(super) fn post(&self, from: &str, path: &str) -> RequestBuilder {
        let url = format!("http://127.0.0.1:{}{path}", self.server.port());
        self.http.post(url).header("x-forwarded-for", from)
    }

    pub(super) async fn sign_in(&self, from: &str, name: &str, password: &str) -> Response {
        let form = [("name", name), ("password", password)];
        self.post(from, "/sign-in").form(&form).send().await.unwrap()
    }

    /// The cookie of a session that has just begun.
    pub(super) async fn session(&self, from: &str, name: &str) -> String {
        let answer = self.sign_in(from, name, PASSWORD).await;
        assert_eq!(answer.status(), StatusCode::SEE_OTHER);
        let cookie = answer.headers()[header::SET_COOKIE].to_str().unwrap();
        cookie.split(';').next().unwrap().to_owned()
    }

    /// Passwords hashed since the server started.
    pub(super) fn hashes(&self) -> u64 {
        self.server.serving.identity().hashes_evaluated()
    }
}

/// How many answers had each status.
pub(super) fn count(statuses: &[StatusCode], status: StatusCode) -> usize {
    statuses.iter().filter(|one| **one == status).count()
}
