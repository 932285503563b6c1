//! A whole Leasehold server inside the test, configured like any other: by the text of a file.

use std::time::Duration;

use leasehold::clock::Clock;
use leasehold::config::{Config, FileSource, Sources};
use leasehold::serve::{self, Doors, Serving, Setup};
use serde_json::Value;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::eventually::eventually;

pub(crate) struct Console {
    pub(crate) serving: Serving,
    client: reqwest::Client,
    _stop: DropGuard,
    _folder: tempfile::TempDir,
}

impl Console {
    /// Serves the backends of this `leasehold.toml` on a free port.
    pub(crate) async fn start(toml: &str) -> Self {
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
        let folder = tempfile::tempdir().unwrap();
        let setup = Setup {
            store: format!("sqlite:{}", folder.path().join("leasehold.db").display()).into(),
            lease: config.lease,
            listen: "127.0.0.1:0".parse().unwrap(),
            backends: config.backends,
            access: config.access,
            // What is tested here is what is seen; who may come in has tests of its own.
            doors: Doors::Open,
            clock: Clock::start(),
            stop: stop.clone(),
        };
        let client = reqwest::Client::builder()
            .timeout(Duration::from_secs(10))
            .build()
            .unwrap();
        Self {
            serving: serve::start(setup).await.unwrap(),
            client,
            _stop: stop.drop_guard(),
            _folder: folder,
        }
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
