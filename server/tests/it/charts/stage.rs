//! A guarded server over a throwaway store with SQLite, a client of its leases, and readers of its pages.

use domain::access::{Grant, Role};
use leasehold::clock::Clock;
use leasehold::config::{AccessConfig, Config, Sources};
use leasehold::identity::{NewToken, Who};
use leasehold::serve::{self, Serving, Setup};
use reqwest::{Client, Method, StatusCode};
use serde_json::{Value, json};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::support::eventually::eventually;

pub(super) struct Stage {
    serving: Serving,
    http: Client,
    client: String,
    viewer: String,
    _stop: DropGuard,
    _folder: tempfile::TempDir,
}

impl Stage {
    pub(super) async fn start() -> Self {
        let _installed = rustls::crypto::ring::default_provider().install_default();
        let folder = tempfile::tempdir().unwrap();
        let stop = CancellationToken::new();
        let config = Config::load(&Sources::default()).unwrap();
        let store = format!("sqlite:{}", folder.path().join("leasehold.db").display());
        let setup = Setup {
            listen: "127.0.0.1:0".parse().unwrap(),
            store: store.into(),
            lease: config.lease,
            backends: config.backends,
            access: AccessConfig::default(),
            history: leasehold::config::HistoryConfig::default(),
            notify: leasehold::config::NotifyConfig::default(),
            clock: Clock::start(),
            stop: stop.clone(),
        };
        let serving = Box::pin(serve::start(setup)).await.unwrap();
        let client = token(&serving, Role::Client, None).await;
        let viewer = token(&serving, Role::Viewer, None).await;
        Self {
            serving,
            http: Client::new(),
            client,
            viewer,
            _stop: stop.drop_guard(),
            _folder: folder,
        }
    }

    /// A token that sees the names under one prefix alone.
    pub(super) async fn viewer_of(&self, prefix: &str) -> String {
        token(&self.serving, Role::Viewer, Some(prefix)).await
    }

    /// As the viewer of everything.
    pub(super) async fn page(&self, path: &str) -> (StatusCode, String) {
        self.page_as(&self.viewer, path).await
    }

    pub(super) async fn page_as(&self, token: &str, path: &str) -> (StatusCode, String) {
        let url = format!("http://{}{path}", self.serving.address);
        let answer = self.http.get(url).bearer_auth(token).send().await.unwrap();
        (answer.status(), answer.text().await.unwrap())
    }

    /// The page, once it holds all of `told`. On one page: a chart whose read took too long says so in its place, and the
    /// next page is whole.
    pub(super) async fn page_telling(&self, path: &str, told: &[&str]) -> String {
        self.page_telling_as(&self.viewer, path, told).await
    }

    pub(super) async fn page_telling_as(&self, token: &str, path: &str, told: &[&str]) -> String {
        let mut html = String::new();
        let what = format!("{path} tells {told:?}");
        eventually(&what, async || {
            let (status, page) = self.page_as(token, path).await;
            html = page;
            status == StatusCode::OK && told.iter().all(|told| html.contains(told))
        })
        .await;
        html
    }

    async fn call(&self, method: Method, path: &str, body: &Value) -> Value {
        let url = format!("http://{}{path}", self.serving.address);
        let request = self
            .http
            .request(method, url)
            .bearer_auth(&self.client)
            .json(body);
        let answer = request.send().await.unwrap();
        assert!(answer.status().is_success(), "{path}: {answer:?}");
        answer.json().await.unwrap_or_default()
    }

    /// Answers lease and token.
    pub(super) async fn acquire(&self, resource: &str, owner: &str) -> (String, u64) {
        let body = json!({"resource": resource, "ownerId": owner, "ttlSeconds": 30});
        let lease = self.call(Method::POST, "/v1/locks/acquire", &body).await;
        let id = lease["leaseId"].as_str().unwrap().to_owned();
        (id, lease["fencingToken"].as_u64().unwrap())
    }

    pub(super) async fn release(&self, lease: &str) {
        self.call(Method::DELETE, &format!("/v1/locks/{lease}"), &json!({}))
            .await;
    }

    /// A write that a resource refused.
    pub(super) async fn refuse(&self, resource: &str, token: u64, source: &str) {
        let body =
            json!({"resource": resource, "fencingToken": token, "highestToken": token + 1, "source": source});
        self.call(Method::POST, "/v1/fencing/rejections", &body).await;
    }
}

async fn token(serving: &Serving, role: Role, prefix: Option<&str>) -> String {
    let grants = vec![Grant {
        role,
        backend: None,
        prefix: prefix.map(str::to_owned),
    }];
    let new = NewToken {
        name: format!("{}-{}", role.wire(), prefix.unwrap_or("all")),
        grants,
        expires_in: None,
    };
    let who = Who::system("test");
    let secret = serving.identity.create_token(&who, new).await.unwrap();
    secret.expose().to_owned()
}
