//! From the configuration of a backend to its adapter. Nothing connects yet: adapters do that when first asked.

use std::sync::Arc;

use domain::backend::BackendKind;

use super::broken::BrokenBackend;
use super::{Backend, BackendError};
use crate::clock::Clock;
use crate::config::{BackendConfig, SystemConfig};

/// The adapter of a configured backend. One that cannot be right as configured still gets its place.
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
    }
}
