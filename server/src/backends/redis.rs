//! Locks on one Redis server: `SET NX PX` keys with raw or JSON values, and Redisson's hashes.
//!
//! Deliberately not here: cluster, sentinel and redlock. What Redis does not tell (who waits, since when, what TTL was
//! granted) is unknown with the reason, never guessed.
//!
//! **Invariant:** the watching account only reads. The unlocking account runs one script, which deletes one key if it
//! still holds what was seen.
//!
//! **Invariant:** no value of more than 64 KiB is kept, whatever lies below a pattern: sizes are asked first, and
//! `reply_filter` drops what grew in between.

mod dial;
mod fault;
mod fingerprint;
mod glob;
mod json;
mod limits;
mod link;
mod named;
mod notify;
mod odd;
mod page;
mod pass;
mod probe;
mod redisson;
mod release;
mod reply_filter;
mod rights;
mod rows;
mod server_info;
mod target;
mod troubles;
mod watch;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use domain::backend::{BackendKind, Capability};
use domain::generation::Generation;
use domain::names::{Resource, Source};
use domain::observation::Inspection;
use domain::release::{Act, Release};
use domain::safety::{Safety, SafetyClass};
use futures::future::BoxFuture;

use super::{Backend, BackendError, Budget, Hints, Pass, Probe, Sink};
use crate::clock::Clock;
use crate::config::BackendConfig;
use crate::config::redis::RedisConfig;
use link::Link;
use rows::Rows;
use target::Target;

const SAFETY: &str = "Redis issues no fencing tokens, and a fail-over may forget a lock that was granted";

/// One standalone server. Connects when it is first asked, and again after each failure.
pub struct RedisBackend {
    target: Arc<Target>,
    clock: Clock,
    rows: Rows,
    patterns: Vec<String>,
    poll: Duration,
    /// Two connections, so that one look at a lock does not queue behind the pages of a pass.
    passes: Link,
    asks: Link,
    /// The account of forced unlocks, where one is configured.
    unlocks: Option<Link>,
    /// What the watch last found out, for the Backends page.
    watching: Mutex<String>,
}

/// Reads the configuration and its files; connects to nothing.
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
        rows: Rows::new(redis.values),
        patterns,
        poll: config.poll,
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
        Box::pin(pass::run(self, budget, sink))
    }

    fn refresh<'a>(
        &'a self,
        names: &'a [(Source, Resource)],
        sink: &'a mut dyn Sink,
    ) -> BoxFuture<'a, Result<(), BackendError>> {
        Box::pin(named::refresh(self, names, sink))
    }

    fn watch<'a>(&'a self, hints: Hints) -> BoxFuture<'a, ()> {
        Box::pin(watch::run(self, hints))
    }

    fn inspect<'a>(
        &'a self,
        source: &'a Source,
        resource: &'a Resource,
    ) -> BoxFuture<'a, Result<Inspection, BackendError>> {
        Box::pin(named::inspect(self, source, resource))
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
