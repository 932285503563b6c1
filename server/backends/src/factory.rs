//! Creates the adapter of a configured backend. Without a connection: adapters connect at the
//! first call.

use std::sync::Arc;

use super::misconfigured::BrokenBackend;
use super::{Backend, BackendError};
use config::{BackendConfig, SystemConfig};
use runtime::clock::Clock;

/// The adapter of a configured backend. An invalid configuration still gets an entry.
pub fn connect(config: &BackendConfig, clock: &Clock) -> Arc<dyn Backend> {
    let kind = config.system.kind();
    make(config, clock).unwrap_or_else(|error| Arc::new(BrokenBackend { kind, error }))
}

fn make(config: &BackendConfig, clock: &Clock) -> Result<Arc<dyn Backend>, BackendError> {
    fn shared<B: Backend>(backend: B) -> Arc<dyn Backend> {
        Arc::new(backend)
    }
    match &config.system {
        SystemConfig::Postgres(postgres) => {
            super::postgres::connect(config, postgres, clock.clone()).map(shared)
        }
        SystemConfig::Redis(redis) => super::redis::connect(config, redis, clock.clone()).map(shared),
        SystemConfig::Etcd(etcd) => super::etcd::connect(config, etcd, clock.clone()).map(shared),
        SystemConfig::Zookeeper(zookeeper) => {
            super::zookeeper::connect(config, zookeeper, clock.clone()).map(shared)
        }
        SystemConfig::Consul(consul) => super::consul::connect(config, consul, clock.clone()).map(shared),
    }
}
