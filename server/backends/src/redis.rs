//! Locks on Redis: `SET NX PX` keys with raw or JSON values, Redisson's hashes, and Symfony's sorted sets, on one
//! server, on the master behind Sentinels, on a cluster, or on the nodes of a Redlock.
//!
//! Facts that Redis does not report (waiters, acquisition time, granted TTL) are unknown with the
//! reason, never guessed.
//!
//! **Invariant:** the watching account only reads. The unlocking account runs one script, which
//! deletes one key if its content is unchanged.
//!
//! **Invariant:** no value of more than 64 KiB is kept, whatever a pattern matches: sizes are
//! read first, and `reply_filter` drops values that grew meanwhile.

mod acl;
mod cluster;
mod collections;
mod connect;
mod connection;
mod connection_config;
mod error;
mod fingerprint;
mod glob;
mod json;
mod keyspace_notifications;
mod limits;
mod lookup;
mod node;
mod non_string_keys;
mod page;
mod probe;
mod redirect;
mod redisson;
mod redlock;
mod release;
mod reply_filter;
mod rows;
mod scan;
mod scan_warnings;
mod sentinel;
mod server_info;
mod settings;
mod symfony;
mod tls;
mod topology;
mod waiter_signals;
mod watch;

use domain::backend::{BackendKind, BackendTraits, Capability};
use domain::force_release::{Act, Release};
use domain::generation::Generation;
use domain::names::{Resource, Source};
use domain::observation::Inspection;
use domain::safety::{Safety, SafetyClass};
use futures::future::BoxFuture;

use super::{Backend, BackendError, Budget, Hints, Pass, Probe, Sink};
use config::BackendConfig;
use config::redis::RedisConfig;
use runtime::clock::Clock;
use settings::Settings;
use topology::Topology;

const SAFETY: &str = "Redis issues no fencing tokens, and a fail-over may forget a lock that was granted";
const REDLOCK_SAFETY: &str =
    "Redlock issues no fencing tokens, and depends on the clocks of its nodes and on their memory";

/// One server or several. Connects at the first call, and again after each failure.
pub struct RedisBackend {
    settings: Settings,
    topology: Topology,
}

/// Reads the configuration and its files, without a connection.
///
/// # Errors
/// [`BackendError::Misconfigured`], naming the key.
pub fn connect(
    config: &BackendConfig,
    redis: &RedisConfig,
    clock: Clock,
) -> Result<RedisBackend, BackendError> {
    Ok(RedisBackend {
        topology: Topology::new(config, redis)?,
        settings: Settings::new(config, redis, clock),
    })
}

impl Backend for RedisBackend {
    fn kind(&self) -> BackendKind {
        BackendKind::Redis
    }

    fn address(&self) -> String {
        self.topology.address()
    }

    fn capabilities(&self) -> Vec<Capability> {
        probe::capabilities(self)
    }

    fn traits(&self) -> BackendTraits {
        BackendTraits {
            lacks_fencing_tokens: true,
            ..BackendTraits::default()
        }
    }

    fn safety(&self, _source: &Source) -> Safety {
        let why = match self.topology {
            Topology::Redlock(_) => REDLOCK_SAFETY,
            Topology::Standalone(_) | Topology::Sentinel(_) | Topology::Cluster(_) => SAFETY,
        };
        Safety {
            class: SafetyClass::Efficiency,
            why: why.into(),
        }
    }

    fn grain_ms(&self, _source: &Source) -> i64 {
        1
    }

    fn observe<'a>(
        &'a self,
        budget: Budget,
        sink: &'a mut dyn Sink,
    ) -> BoxFuture<'a, Result<Pass, BackendError>> {
        Box::pin(self.topology.observe(&self.settings, budget, sink))
    }

    fn refresh<'a>(
        &'a self,
        names: &'a [(Source, Resource)],
        sink: &'a mut dyn Sink,
    ) -> BoxFuture<'a, Result<(), BackendError>> {
        Box::pin(self.topology.refresh(&self.settings, names, sink))
    }

    fn watch<'a>(&'a self, hints: Hints) -> BoxFuture<'a, ()> {
        Box::pin(self.topology.watch(&self.settings, hints))
    }

    fn inspect<'a>(
        &'a self,
        source: &'a Source,
        resource: &'a Resource,
    ) -> BoxFuture<'a, Result<Inspection, BackendError>> {
        Box::pin(self.topology.inspect(&self.settings, source, resource))
    }

    fn release<'a>(
        &'a self,
        source: &'a Source,
        resource: &'a Resource,
        generation: &'a Generation,
        _act: &'a Act,
    ) -> BoxFuture<'a, Result<Release, BackendError>> {
        Box::pin(topology::release(self, source, resource, generation))
    }

    fn probe(&self) -> BoxFuture<'_, Result<Probe, BackendError>> {
        Box::pin(self.topology.probe(&self.settings))
    }
}
