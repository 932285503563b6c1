//! A whole Leasehold server inside the test, configured like any other: by the text of a file.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use domain::access::{Grant, Role};
use leasehold::clock::Clock;
use leasehold::config::{Config, FileSource, Sources};
use leasehold::identity::{NewToken, Secret, Who};
use leasehold::serve::{self, Serving, Setup};
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use serde_json::Value;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::eventually::eventually;

pub(crate) struct Console {
    pub(crate) serving: Serving,
    /// Of an operator of everything, which `client` sends: what is tested here is what is seen; who may come in has tests
    /// of its own.
    pub(crate) token: Secret,
    pub(crate) client: reqwest::Client,
    stop: DropGuard,
    _folder: Option<tempfile::TempDir>,
}

/// A token of this role on everything.
pub(crate) async fn token(serving: &Serving, role: Role) -> Secret {
    // Several servers on one store, and a server that is started again, each want their own.
    static MADE: AtomicU32 = AtomicU32::new(0);
    let number = MADE.fetch_add(1, Ordering::Relaxed);
    let new = NewToken {
        name: format!("test-{}-{number}", role.wire()),
        grants: vec![Grant::everywhere(role)],
        expires_in: None,
    };
    let who = Who::system("test");
    serving.identity.create_token(&who, new).await.unwrap()
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

impl Console {
    /// Serves the backends of this `leasehold.toml` on a free port.
    pub(crate) async fn start(toml: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = format!("sqlite:{}", folder.path().join("leasehold.db").display());
        Self {
            _folder: Some(folder),
            ..Box::pin(Self::start_on(toml, &store)).await
        }
    }

    /// The same on a store that outlives it.
    pub(crate) async fn start_on(toml: &str, store: &str) -> Self {
        // Another test of this process may have been first.
        let _installed = rustls::crypto::ring::default_provider().install_default();
        let file = FileSource {
            path: "leasehold.toml".into(),
            text: toml.to_owned(),
        };
        let config = Config::load(&Sources {
            file: Some(file),
            ..Sources::default()
        })
        .unwrap();
        let stop = CancellationToken::new();
        let setup = Setup {
            store: store.to_owned().into(),
            lease: config.lease,
            listen: "127.0.0.1:0".parse().unwrap(),
            backends: config.backends,
            access: config.access,
            history: leasehold::config::HistoryConfig::default(),
            notify: config.notify,
            clock: Clock::start(),
            stop: stop.clone(),
        };
        let serving = Box::pin(serve::start(setup)).await.unwrap();
        let token = token(&serving, Role::Operator).await;
        Self {
            client: client(token.expose(), Duration::from_secs(10)),
            serving,
            token,
            stop: stop.drop_guard(),
            _folder: None,
        }
    }

    /// Ends the server, and returns when it has ended.
    pub(crate) async fn end(self) {
        drop(self.stop);
        self.serving.ended().await;
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.serving.address)
    }

    pub(crate) async fn get(&self, path: &str) -> reqwest::Response {
        self.client.get(self.url(path)).send().await.unwrap()
    }

    pub(crate) async fn json(&self, path: &str) -> Value {
        self.get(path).await.json().await.unwrap()
    }

    /// Until every backend was observed once.
    pub(crate) async fn ready(&self) {
        eventually("every backend observed once", || async {
            self.get("/readyz").await.status() == 200
        })
        .await;
    }

    /// Until `/v1/inventory` with this query satisfies `check`; answers the page.
    pub(crate) async fn inventory_where(&self, query: &str, check: impl Fn(&Value) -> bool) -> Value {
        let path = format!("/v1/inventory?{query}");
        let found = std::cell::RefCell::new(Value::Null);
        eventually(&format!("{path} as wanted"), || async {
            let page = self.json(&path).await;
            let fits = check(&page);
            found.replace(page);
            fits
        })
        .await;
        found.into_inner()
    }
}
