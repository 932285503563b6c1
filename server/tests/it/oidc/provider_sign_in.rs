//! A console configured for the provider, and a browser that signs in through it.

use crate::support::TestServer;
use std::net::IpAddr;

use reqwest::{Client, Response, StatusCode, header, redirect};
use tokio_util::sync::DropGuard;

use super::provider::{CLIENT, Provider, SECRET};

pub(super) struct ProviderSignIn {
    pub(super) console: TestServer,
    pub(super) provider: Provider,
    pub(super) http: Client,
    pub(super) away: Option<DropGuard>,
}

/// The redirect from the provider, before the request to the console.
#[derive(Debug, Clone)]
pub(super) struct Back {
    pub(super) url: String,
    pub(super) cookie: String,
}

impl ProviderSignIn {
    pub(super) async fn start() -> Self {
        let _installed = rustls::crypto::ring::default_provider().install_default();
        let (provider, away) = Provider::start().await;
        let toml = format!(
            r#"
listen = "127.0.0.1:0"
[oidc]
name = "Example ID"
issuer = "{}"
client_id = "{CLIENT}"
client_secret = "{SECRET}"
[[oidc.role]]
value = "lock-operators"
role = "operator"
prefix = "team_1:"
[[oidc.role]]
value = "lock-admins"
role = "admin"
"#,
            provider.issuer()
        );
        let http = Client::builder()
            .redirect(redirect::Policy::none())
            .local_address(IpAddr::from([127, 0, 0, 1]))
            .build()
            .unwrap();
        Self {
            console: TestServer::builder().config(&toml).start().await,
            provider,
            http,
            away: Some(away),
        }
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.console.port())
    }

    /// From the button to the provider and to the address that it sends the browser back to.
    pub(super) async fn go(&self, path: &str) -> Back {
        let sent = self.http.get(self.url(path)).send().await.unwrap();
        assert_eq!(sent.status(), StatusCode::SEE_OTHER);
        let cookie = cookies(&sent).remove(0);
        assert!(cookie.starts_with("leasehold-oidc=lho_"), "{cookie}");
        let form = self.http.get(location(&sent)).send().await.unwrap();
        let status = form.status();
        let back = location(&form);
        assert_eq!(status, StatusCode::SEE_OTHER, "{back}");
        Back { url: back, cookie }
    }

    pub(super) async fn come_back(&self, back: &Back) -> Response {
        let request = self.http.get(&back.url).header(header::COOKIE, &back.cookie);
        request.send().await.unwrap()
    }

    /// All of it; returns the cookie of the session.
    pub(super) async fn sign_in(&self) -> String {
        let answer = self.come_back(&self.go("/sign-in/oidc").await).await;
        let cookies = cookies(&answer);
        let status = answer.status();
        assert_eq!(status, StatusCode::SEE_OTHER, "{}", answer.text().await.unwrap());
        cookies
            .into_iter()
            .find(|cookie| cookie.starts_with("leasehold=lhs_"))
            .unwrap()
    }

    /// `/v1/me`, as this session.
    pub(super) async fn me(&self, cookie: &str) -> serde_json::Value {
        let request = self.http.get(self.url("/v1/me")).header(header::COOKIE, cookie);
        request.send().await.unwrap().json().await.unwrap()
    }
}

pub(super) fn location(answer: &Response) -> String {
    let location = answer.headers().get(header::LOCATION);
    location
        .map(|value| value.to_str().unwrap().to_owned())
        .unwrap_or_default()
}

/// Name and value of each cookie that is set.
pub(super) fn cookies(answer: &Response) -> Vec<String> {
    let set = answer.headers().get_all(header::SET_COOKIE).iter();
    set.map(|value| value.to_str().unwrap().split(';').next().unwrap().to_owned())
        .collect()
}
