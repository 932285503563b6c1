//! A server with the default configuration on a store that outlives it.

use leasehold::clock::Clock;
use leasehold::config::{AccessConfig, HistoryConfig, LeaseConfig, NotifyConfig};
use leasehold::serve::{self, Serving, Setup};
use tokio_util::sync::CancellationToken;

/// Serves on a free port until it is stopped.
pub(crate) async fn serve_on(store: &str, stop: &CancellationToken) -> Serving {
    let _installed = rustls::crypto::ring::default_provider().install_default();
    let setup = Setup {
        listen: "127.0.0.1:0".parse().unwrap(),
        store: store.to_owned().into(),
        lease: LeaseConfig::default(),
        backends: Vec::new(),
        access: AccessConfig::default(),
        history: HistoryConfig::default(),
        notify: NotifyConfig::default(),
        clock: Clock::start(),
        stop: stop.clone(),
    };
    Box::pin(serve::start(setup)).await.unwrap()
}
