//! A whole server with the configuration of a test, and clients that trust its authority.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use domain::access::{Grant, Role};
use domain::audit::{AuditQuery, AuditRow};
use leasehold::audit::{Audit, Heads};
use leasehold::clock::Clock;
use leasehold::config::{Config, ConfigErrors, FileSource, Sources};
use leasehold::db::Db;
use leasehold::identity::{NewPerson, Who};
use leasehold::serve::{self, ServeError, Serving, Setup};
use reqwest::{Certificate, Client, redirect};
use tokio_util::sync::{CancellationToken, DropGuard};

pub(crate) const PASSWORD: &str = "correct horse battery";

pub(crate) struct Stage {
    pub(crate) serving: Serving,
    pub(crate) store: String,
    _stop: DropGuard,
    _folder: tempfile::TempDir,
}

pub(crate) fn config(toml: &str) -> Result<Config, ConfigErrors> {
    let file = FileSource {
        path: "leasehold.toml".into(),
        text: toml.to_owned(),
    };
    Config::load(&Sources {
        file: Some(file),
        ..Sources::default()
    })
}

impl Stage {
    pub(crate) async fn start(toml: &str) -> Self {
        Self::try_start(toml).await.unwrap()
    }

    pub(crate) async fn try_start(toml: &str) -> Result<Self, ServeError> {
        let _installed = rustls::crypto::ring::default_provider().install_default();
        let config = config(toml).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let store = format!("sqlite:{}", folder.path().join("leasehold.db").display());
        let stop = CancellationToken::new();
        let setup = Setup {
            listen: config.listen,
            store: store.clone().into(),
            lease: config.lease,
            backends: config.backends,
            access: config.access,
            history: leasehold::config::HistoryConfig::default(),
            notify: leasehold::config::NotifyConfig::default(),
            clock: Clock::start(),
            stop: stop.clone(),
        };
        Ok(Self {
            serving: serve::start(setup).await?,
            store,
            _stop: stop.drop_guard(),
            _folder: folder,
        })
    }

    pub(crate) fn port(&self) -> u16 {
        self.serving.address.port()
    }

    pub(crate) async fn admin(&self, name: &str) {
        let new = NewPerson {
            name: name.to_owned(),
            grants: vec![Grant::everywhere(Role::Admin)],
            password: Some(PASSWORD.into()),
        };
        self.serving
            .identity
            .add_person(&Who::system("test"), new)
            .await
            .unwrap();
    }

    /// All of the record, newest first.
    pub(crate) async fn record(&self) -> Vec<AuditRow> {
        let db = Db::open(&self.store).await.unwrap();
        let audit = Audit::new(db, Clock::start(), Heads::default());
        let query = AuditQuery {
            limit: 1_000,
            ..AuditQuery::default()
        };
        audit.page(&query).await.unwrap().rows
    }
}

/// Trusts this authority alone, follows nothing, and comes from this address of the machine.
pub(crate) fn client(authority: &Path, from: [u8; 4]) -> Client {
    let pem = std::fs::read(authority).unwrap();
    Client::builder()
        .tls_certs_only([Certificate::from_pem(&pem).unwrap()])
        .redirect(redirect::Policy::none())
        .local_address(IpAddr::from(from))
        .timeout(Duration::from_secs(10))
        .build()
        .unwrap()
}

pub(crate) fn loopback(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

#[expect(
    clippy::disallowed_methods,
    reason = "a test's own server: it ends with its token"
)]
pub(crate) fn aside<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> tokio::task::JoinHandle<T> {
    tokio::spawn(work)
}
