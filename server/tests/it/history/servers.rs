//! The whole server: what is told of a lock after a restart.

use std::path::Path;

use domain::access::{Grant, Role};
use leasehold::clock::Clock;
use leasehold::config::{AccessConfig, HistoryConfig, NotifyConfig};
use leasehold::identity::{NewToken, Who};
use leasehold::lease::LeaseConfig;
use leasehold::serve::{self, Serving, Setup};
use reqwest::{Client, Method};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::support::eventually::eventually;

pub(super) struct Server {
    serving: Serving,
    stop: CancellationToken,
    token: String,
}

impl Server {
    pub(super) async fn start(folder: &Path, name: &str) -> Self {
        let _installed = rustls::crypto::ring::default_provider().install_default();
        let stop = CancellationToken::new();
        let setup = Setup {
            listen: "127.0.0.1:0".parse().unwrap(),
            store: format!("sqlite:{}", folder.join("leasehold.db").display()).into(),
            lease: LeaseConfig::default(),
            backends: Vec::new(),
            access: AccessConfig::default(),
            history: HistoryConfig::default(),
            notify: NotifyConfig::default(),
            clock: Clock::start(),
            stop: stop.clone(),
        };
        let serving = serve::start(setup).await.unwrap();
        let new = NewToken {
            name: name.to_owned(),
            grants: vec![Grant::everywhere(Role::Operator)],
            expires_in: None,
        };
        let token = serving
            .identity
            .create_token(&Who::system("test"), new)
            .await
            .unwrap();
        Self {
            token: token.expose().to_owned(),
            serving,
            stop,
        }
    }

    /// The same server for whoever holds another token.
    pub(super) async fn get_as(&self, token: &str, path: &str) -> (u16, String) {
        let url = format!("http://{}{path}", self.serving.address);
        let answer = Client::new().get(url).bearer_auth(token).send().await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    }

    pub(super) fn token(&self) -> &str {
        &self.token
    }

    pub(super) async fn token_of(&self, name: &str, grant: Grant) -> String {
        let new = NewToken {
            name: name.to_owned(),
            grants: vec![grant],
            expires_in: None,
        };
        let token = self
            .serving
            .identity
            .create_token(&Who::system("test"), new)
            .await;
        token.unwrap().expose().to_owned()
    }

    pub(super) async fn ask(&self, method: Method, path: &str, body: &Value) -> Value {
        let url = format!("http://{}{path}", self.serving.address);
        let request = Client::new()
            .request(method, url)
            .bearer_auth(&self.token)
            .json(body);
        request.send().await.unwrap().json().await.unwrap_or_default()
    }

    async fn acquire(&self) -> String {
        let body = json!({"resource": "jobs/nightly", "ownerId": "worker-7", "ttlSeconds": 600});
        let lease = self.ask(Method::POST, "/v1/locks/acquire", &body).await;
        lease["leaseId"].as_str().unwrap().to_owned()
    }

    async fn detail(&self) -> Value {
        self.ask(Method::GET, "/v1/inventory/builtin/jobs%2Fnightly", &Value::Null)
            .await
    }

    /// Until the newest that is told of the lock is this.
    async fn tells(&self, kind: &str) {
        eventually(kind, async || {
            let detail = self.detail().await;
            detail["seen"][0]["kind"] == kind || detail["detail"].to_string().contains(kind)
        })
        .await;
    }

    pub(super) async fn stopped(self) {
        self.stop.cancel();
        self.serving.ended().await;
    }
}

#[tokio::test]
async fn a_lock_remembers_its_owners_after_a_restart() {
    // Taken and given back; the server ends and starts anew: who asks for the name hears when it was released, and once it
    // is held again its page tells of before.
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), "first").await;
    let lease = server.acquire().await;
    server.tells("acquired").await;
    server
        .ask(Method::DELETE, &format!("/v1/locks/{lease}"), &Value::Null)
        .await;
    server.tells("released").await;
    server.stopped().await;
    let server = Server::start(folder.path(), "second").await;
    let gone = server.detail().await;
    let told = gone["detail"].as_str().unwrap();
    assert!(
        told.contains("is not held on builtin now; last seen released at 2"),
        "{told}"
    );
    server.acquire().await;
    server.tells("acquired").await;
    let seen = server.detail().await["seen"].clone();
    let kinds: Vec<&str> = seen
        .as_array()
        .unwrap()
        .iter()
        .map(|event| event["kind"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["acquired", "released", "acquired"], "{seen}");
    assert_eq!(seen[2]["ownerId"], "worker-7");
    server.stopped().await;
}
