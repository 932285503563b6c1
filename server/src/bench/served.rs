//! Our own server for a measurement: the very stack that `leasehold serve` runs, on a free port of this process.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use secrecy::SecretString;
use tokio_util::sync::CancellationToken;

use super::error::BenchError;
use crate::clock::Clock;
use crate::config::{AccessConfig, BackendConfig};
use crate::lease::{LeaseConfig, LeaseService};
use crate::serve::{self, Doors, Serving, Setup};
use crate::throwaway::ThrowawayFolder;

pub(super) struct Served {
    pub(super) serving: Serving,
    stop: CancellationToken,
}

impl Served {
    pub(super) async fn start(store: SecretString, backends: Vec<BackendConfig>) -> Result<Self, BenchError> {
        let stop = CancellationToken::new();
        let setup = Setup {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            store,
            lease: LeaseConfig::default(),
            backends,
            access: AccessConfig::default(),
            doors: Doors::Open,
            clock: Clock::start(),
            stop: stop.clone(),
        };
        let serving = Box::pin(serve::start(setup)).await?;
        Ok(Self { serving, stop })
    }

    /// On SQLite in a folder of its own.
    pub(super) async fn on_sqlite() -> Result<(Self, ThrowawayFolder), BenchError> {
        let folder = ThrowawayFolder::create("bench").map_err(BenchError::io("folder"))?;
        let store = format!("sqlite:{}", folder.path().join("leases.db").display());
        Ok((Self::start(store.into(), Vec::new()).await?, folder))
    }

    pub(super) fn leases(&self) -> &Arc<LeaseService> {
        &self.serving.leases
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.serving.address
    }

    pub(super) async fn end(self) {
        self.stop.cancel();
        self.serving.ended().await;
    }
}
