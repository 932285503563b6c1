//! The server of a measurement: the same stack as `leasehold serve`, on a free port of this process.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, OnceLock};

use domain::access::{Grant, Role};
use domain::lease::Scope;
use secrecy::SecretString;
use tokio_util::sync::CancellationToken;

use super::browser_session;
use super::error::BenchError;
use super::http::Http;
use config::{AccessConfig, BackendConfig, HistoryConfig, NotifyConfig};
use lease::{LeaseCaller, LeaseConfig, LeasePrincipal, LeaseService};
use leasehold::identity::{NewToken, Principal, Secret};
use leasehold::serve::{self, Serving, Setup};
use runtime::clock::Clock;
use testkit::ThrowawayFolder;

pub(super) struct Served {
    pub(super) serving: Serving,
    stop: CancellationToken,
    token: Secret,
    /// Of a user in a browser.
    cookie: String,
    /// Created for the first page or stream.
    client: OnceLock<reqwest::Client>,
}

impl Served {
    pub(super) async fn start(store: SecretString, backends: Vec<BackendConfig>) -> Result<Self, BenchError> {
        Self::start_with(store, backends, LeaseConfig::default()).await
    }

    pub(super) async fn start_with(
        store: SecretString,
        backends: Vec<BackendConfig>,
        lease: LeaseConfig,
    ) -> Result<Self, BenchError> {
        // An already installed provider is the same one.
        let _installed = rustls::crypto::ring::default_provider().install_default();
        let stop = CancellationToken::new();
        let setup = Setup {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            store,
            lease,
            backends,
            identity_rules: Vec::new(),
            access: AccessConfig::default(),
            history: HistoryConfig::default(),
            notify: NotifyConfig::default(),
            demo: None,
            clock: Clock::start(),
            stop: stop.clone(),
        };
        let serving = Box::pin(serve::start(setup)).await?;
        // Several servers may share a store, and one may be served again.
        let new = NewToken {
            name: format!("bench-{}", serving.address.port()),
            grants: vec![Grant::everywhere(Role::Operator)],
            expires_in: None,
        };
        let token = serving
            .identity()
            .create_token(&Principal::system("bench"), new)
            .await?;
        let name = format!("viewer-{}", serving.address.port());
        let grants = vec![Grant::everywhere(Role::Operator)];
        let cookie = browser_session::cookie(serving.identity(), name, grants).await?;
        Ok(Self {
            serving,
            stop,
            token,
            cookie,
            client: OnceLock::new(),
        })
    }

    /// On SQLite in a temporary folder.
    pub(super) async fn on_sqlite() -> Result<(Self, ThrowawayFolder), BenchError> {
        let folder = ThrowawayFolder::create("bench").map_err(BenchError::io("folder"))?;
        let store = format!("sqlite:{}", folder.path().join("leases.db").display());
        Ok((Self::start(store.into(), Vec::new()).await?, folder))
    }

    /// The principal of the token for the lease service.
    pub(super) async fn caller(&self) -> Result<LeaseCaller, BenchError> {
        let token = self.serving.identity().token(self.token.expose()).await;
        let token = token
            .ok()
            .flatten()
            .ok_or_else(|| BenchError::bad_answer("our server", "does not know its token"))?;
        Ok(LeaseCaller {
            principal: LeasePrincipal::new(token.id.clone()),
            scope: Scope::everything(),
        })
    }

    pub(super) fn leases(&self) -> &Arc<LeaseService> {
        &self.serving.leases
    }

    pub(super) async fn connect(&self) -> Result<Http, BenchError> {
        Http::connect(self.serving.address, self.token.expose()).await
    }

    /// Requests a page or a stream as a browser.
    pub(super) async fn get(&self, path: &str) -> Result<reqwest::Response, BenchError> {
        let url = format!("http://{}{path}", self.serving.address);
        let client = self.client.get_or_init(reqwest::Client::new);
        let request = client.get(url).header("cookie", &self.cookie);
        Ok(request.send().await?.error_for_status()?)
    }

    pub(super) async fn end(self) {
        self.stop.cancel();
        self.serving.ended().await;
    }
}
