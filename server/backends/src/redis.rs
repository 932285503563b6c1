//! Locks on one Redis server: `SET NX PX` keys with raw or JSON values, and Redisson's hashes.
//!
//! Not supported: cluster, sentinel and redlock. Facts that Redis does not report (waiters,
//! acquisition time, granted TTL) are unknown with the reason, never guessed.
//!
//! **Invariant:** the watching account only reads. The unlocking account runs one script, which
//! deletes one key if its content is unchanged.
//!
//! **Invariant:** no value of more than 64 KiB is kept, whatever a pattern matches: sizes are
//! read first, and `reply_filter` drops values that grew meanwhile.

mod acl;
mod connect;
mod connection;
mod connection_config;
mod error;
mod fingerprint;
mod glob;
mod json;
mod limits;
mod lookup;
mod non_string_keys;
mod notify;
mod page;
mod probe;
mod redisson;
mod release;
mod reply_filter;
mod rows;
mod scan;
mod scan_warnings;
mod server_info;
mod watch;

use std::sync::Arc;
use std::time::Duration;

use domain::backend::{BackendKind, BackendTraits, Capability};
use domain::force_release::{Act, Release};
use domain::generation::Generation;
use domain::names::{Resource, Source};
use domain::observation::Inspection;
use domain::safety::{Safety, SafetyClass};
use futures::future::BoxFuture;
use parking_lot::Mutex;

use super::{Backend, BackendError, Budget, Hints, Pass, Probe, Sink};
use config::BackendConfig;
use config::redis::RedisConfig;
use connection::Link;
use connection_config::Target;
use rows::Rows;
use runtime::clock::Clock;

const SAFETY: &str = "Redis issues no fencing tokens, and a fail-over may forget a lock that was granted";

/// One standalone server. Connects at the first call, and again after each failure.
pub struct RedisBackend {
    target: Arc<Target>,
    clock: Clock,
    rows: Rows,
    patterns: Vec<String>,
    poll_interval: Duration,
    /// Two connections, so that reading one lock does not wait behind the pages of a scan.
    passes: Link,
    asks: Link,
    /// The account of forced unlocks, if configured.
    unlocks: Option<Link>,
    /// Last state of the watch, for the Backends page.
    watching: Mutex<String>,
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
    let target = Arc::new(Target::new(config, redis)?);
    let unlocks = Target::for_unlocks(config, redis)?;
    let mut patterns = redis.patterns.clone();
    patterns.retain(|pattern| !pattern.is_empty());
    if patterns.iter().any(|pattern| pattern == "*") {
        patterns = vec!["*".to_owned()];
    }
    Ok(RedisBackend {
        passes: Link::new(Arc::clone(&target)),
        asks: Link::new(Arc::clone(&target)),
        unlocks: unlocks.map(|target| Link::new(Arc::new(target))),
        target,
        clock,
        rows: Rows::new(redis.value_display),
        patterns,
        poll_interval: config.poll_interval,
        watching: Mutex::new(
            "keyspace notifications, where the server sends them; not connected yet".to_owned(),
        ),
    })
}

impl Backend for RedisBackend {
    fn kind(&self) -> BackendKind {
        BackendKind::Redis
    }

    fn address(&self) -> String {
        self.target.address.clone()
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
        Safety {
            class: SafetyClass::Efficiency,
            why: SAFETY.into(),
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
        Box::pin(scan::run(self, budget, sink))
    }

    fn refresh<'a>(
        &'a self,
        names: &'a [(Source, Resource)],
        sink: &'a mut dyn Sink,
    ) -> BoxFuture<'a, Result<(), BackendError>> {
        Box::pin(lookup::refresh(self, names, sink))
    }

    fn watch<'a>(&'a self, hints: Hints) -> BoxFuture<'a, ()> {
        Box::pin(watch::run(self, hints))
    }

    fn inspect<'a>(
        &'a self,
        source: &'a Source,
        resource: &'a Resource,
    ) -> BoxFuture<'a, Result<Inspection, BackendError>> {
        Box::pin(lookup::inspect(self, source, resource))
    }

    fn release<'a>(
        &'a self,
        source: &'a Source,
        resource: &'a Resource,
        generation: &'a Generation,
        _act: &'a Act,
    ) -> BoxFuture<'a, Result<Release, BackendError>> {
        Box::pin(release::release(self, source, resource, generation))
    }

    fn probe(&self) -> BoxFuture<'_, Result<Probe, BackendError>> {
        Box::pin(probe::run(self))
    }
}
