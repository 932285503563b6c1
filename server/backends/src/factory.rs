//! Creates the adapter of a configured backend. Without a connection: adapters connect at the
//! first call.

use std::sync::Arc;

use domain::backend::BackendKind;

use super::misconfigured::BrokenBackend;
use super::{Backend, BackendError};
use config::{BackendConfig, SystemConfig};
use runtime::clock::Clock;

/// The adapter of a configured backend. An invalid configuration still gets an entry.
pub fn connect(config: &BackendConfig, clock: &Clock) -> Arc<dyn Backend> {
    let (kind, made) = make(config, clock);
    made.unwrap_or_else(|error| Arc::new(BrokenBackend { kind, error }))
}

type Made = Result<Arc<dyn Backend>, BackendError>;

fn make(config: &BackendConfig, clock: &Clock) -> (BackendKind, Made) {
    fn shared<B: Backend>(backend: B) -> Arc<dyn Backend> {
        Arc::new(backend)
    }
    match &config.system {
        SystemConfig::Postgres(postgres) => (
            BackendKind::Postgres,
            super::postgres::connect(config, postgres, clock.clone()).map(shared),
        ),
        SystemConfig::Redis(redis) => (
            BackendKind::Redis,
            super::redis::connect(config, redis, clock.clone()).map(shared),
        ),
        SystemConfig::Etcd(etcd) => (
            BackendKind::Etcd,
            super::etcd::connect(config, etcd, clock.clone()).map(shared),
        ),
        SystemConfig::Zookeeper(zookeeper) => (
            BackendKind::Zookeeper,
            super::zookeeper::connect(config, zookeeper, clock.clone()).map(shared),
        ),
        SystemConfig::Consul(consul) => (
            BackendKind::Consul,
            super::consul::connect(config, consul, clock.clone()).map(shared),
        ),
    }
}
