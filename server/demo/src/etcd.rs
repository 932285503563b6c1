//! The demo's etcd: reconnecting clients, and the workload that holds locks in it.

pub(super) mod election;
pub(super) mod keys;
pub(super) mod mutex;
pub(super) mod session;

use std::time::Duration;

use etcd_client::{Client, ConnectOptions};

use super::fault::WorkloadError;
use testkit::Etcd;

pub(super) const PREFIX: &str = "/locks/";

/// Two clients of one server; both reconnect.
#[derive(Clone)]
pub(super) struct Access {
    /// For calls that return at once.
    pub(super) quick: Client,
    /// For calls that wait until a lock is free; a lost server is detected by a missing ping.
    pub(super) patient: Client,
}

impl Access {
    pub(super) async fn new(server: &Etcd) -> Result<Self, WorkloadError> {
        let options = ConnectOptions::new()
            .with_connect_timeout(Duration::from_secs(3))
            .with_keep_alive(Duration::from_secs(10), Duration::from_secs(5));
        let endpoints = [server.endpoint()];
        let quick = options.clone().with_timeout(Duration::from_secs(3));
        Ok(Self {
            quick: Client::connect(&endpoints, Some(quick)).await?,
            patient: Client::connect(&endpoints, Some(options)).await?,
        })
    }
}
