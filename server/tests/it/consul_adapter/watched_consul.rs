//! One throwaway Consul with an adapter and a client that holds locks in it.

use std::time::Duration;

use ::backends::BackendError;
use ::backends::consul::{ConsulBackend, connect};
use ::config::backend::{BackendConfig, SystemConfig};
use ::config::consul::ConsulConfig;
use ::testkit::{Consul, ConsulOptions, Throwaway};
use domain::names::{Resource, Source};
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::watching::{backend_config, clock};

/// For everything, where ACLs are on.
pub(crate) const ROOT_TOKEN: &str = "5b1c8f0a-6f0e-4d7e-9a55-2f9f0b7a1c11";
/// A token that no test makes: any token is accepted where ACLs are off.
const ANY_TOKEN: &str = "00000000-0000-0000-0000-0000000000aa";

/// Consul's API as its clients use it.
#[derive(Debug, Clone)]
pub(crate) struct ConsulClient {
    http: reqwest::Client,
    url: String,
    token: Option<String>,
}

pub(crate) struct WatchedConsul {
    pub(crate) consul: Consul,
    pub(crate) client: ConsulClient,
    pub(crate) backend: ConsulBackend,
}

impl WatchedConsul {
    /// With ACLs off, and an adapter that may unlock.
    pub(crate) async fn start() -> Self {
        let consul = consul(false).await;
        Self {
            client: ConsulClient::new(&consul.url(), None),
            backend: unlocker(&consul.url()),
            consul,
        }
    }
}

pub(crate) async fn consul(acls: bool) -> Consul {
    let options = ConsulOptions {
        root_token: acls.then(|| ROOT_TOKEN.to_owned()),
        ..ConsulOptions::default()
    };
    Throwaway::consul(options).await.unwrap()
}

impl ConsulClient {
    pub(crate) fn new(url: &str, token: Option<&str>) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        Self {
            http: reqwest::Client::builder().no_proxy().build().unwrap(),
            url: url.to_owned(),
            token: token.map(str::to_owned),
        }
    }

    /// Status and text of the answer.
    pub(crate) async fn request(
        &self,
        method: Method,
        path: &str,
        body: impl Into<reqwest::Body>,
    ) -> (u16, String) {
        let mut request = self
            .http
            .request(method, format!("{}/v1/{path}", self.url))
            .body(body);
        if let Some(token) = &self.token {
            request = request.header("X-Consul-Token", token);
        }
        let answer = request.send().await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    }

    pub(crate) async fn put(&self, path: &str, body: impl Into<reqwest::Body>) -> String {
        let (status, text) = self.request(Method::PUT, path, body).await;
        assert_eq!(status, 200, "{path}: {text}");
        text.trim().to_owned()
    }

    /// A session without checks, so that only its TTL ends it.
    pub(crate) async fn session(&self, name: &str, ttl: &str, lock_delay: &str, behavior: &str) -> String {
        let session = json!({
            "Name": name, "TTL": ttl, "LockDelay": lock_delay, "Behavior": behavior, "NodeChecks": [],
        });
        let made: Value =
            serde_json::from_str(&self.put("session/create", session.to_string()).await).unwrap();
        made["ID"].as_str().unwrap().to_owned()
    }

    /// A session that lasts longer than a test.
    pub(crate) async fn long_session(&self, name: &str) -> String {
        self.session(name, "1h", "0s", "release").await
    }

    pub(crate) async fn acquire(&self, key: &str, session: &str, value: &str) -> bool {
        self.put(&format!("kv/{key}?acquire={session}&flags=7"), value.to_owned())
            .await
            == "true"
    }

    pub(crate) async fn release(&self, key: &str, session: &str) -> bool {
        self.put(&format!("kv/{key}?release={session}"), "").await == "true"
    }

    pub(crate) async fn destroy(&self, session: &str) {
        self.put(&format!("session/destroy/{session}"), "").await;
    }

    /// The key as Consul has it; `None` without one.
    pub(crate) async fn key(&self, key: &str) -> Option<Value> {
        let (status, text) = self
            .request(Method::GET, &format!("kv/{key}?consistent"), "")
            .await;
        (status == 200).then(|| serde_json::from_str::<Value>(&text).unwrap()[0].clone())
    }

    pub(crate) async fn holder(&self, key: &str) -> Option<String> {
        Some(self.key(key).await?["Session"].as_str()?.to_owned())
    }
}

/// The defaults of the configuration, changed by `change`.
pub(crate) fn backend(
    url: &str,
    change: impl FnOnce(&mut BackendConfig, &mut ConsulConfig),
) -> ConsulBackend {
    try_backend(url, change).unwrap()
}

pub(crate) fn try_backend(
    url: &str,
    change: impl FnOnce(&mut BackendConfig, &mut ConsulConfig),
) -> Result<ConsulBackend, BackendError> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut consul = ConsulConfig {
        url: url.to_owned(),
        token: None,
        prefixes: vec!["locks/".to_owned()],
        unlock_token: None,
        datacenter: None,
        namespace: None,
    };
    let mut config = backend_config("dc1", SystemConfig::Consul(consul.clone()));
    change(&mut config, &mut consul);
    connect(&config, &consul, clock())
}

pub(crate) fn unlocker(url: &str) -> ConsulBackend {
    backend(url, |config, consul| {
        config.timeout = Duration::from_secs(10);
        consul.unlock_token = Some(ANY_TOKEN.to_owned().into());
    })
}

pub(crate) fn kv(key: &str) -> (Source, Resource) {
    (Source::parse("kv").unwrap(), key.into())
}
