//! The ZooKeeper adapter: lock nodes with their queues of ephemeral sequential children.
//!
//! Owns reading ZooKeeper and forced unlocks. Does not diagnose locks or keep an inventory.
//!
//! **Invariant**: requests of the watching account never write. The unlocking account deletes
//! the holders' nodes whose czxids it compared, and a node of its own, and nothing else.

mod connection;
mod contender;
mod contender_cache;
mod detail;
mod error;
mod lookup;
mod node;
mod packed_children;
mod probe;
mod rate_limit;
mod release;
mod row;
mod scan;
mod settings;
mod watch;

use domain::backend::{BackendKind, BackendTraits, Capability};
use domain::force_release::{Act, Release};
use domain::generation::Generation;
use domain::names::{Resource, Source};
use domain::observation::Inspection;
use domain::safety::{Safety, SafetyClass};
use futures::future::BoxFuture;

use super::error::within;
use super::{Backend, BackendError, Budget, Hints, Pass, Probe, RELEASE, Sink};
use config::BackendConfig;
use config::zookeeper::ZookeeperConfig;
use connection::Link;
use contender_cache::ContenderCache;
use runtime::clock::Clock;
use settings::ZookeeperSettings;

pub struct ZookeeperBackend {
    link: Link,
    cache: ContenderCache,
    /// The account of forced unlocks, if configured.
    unlocks: Option<Box<Link>>,
}

/// Prepares the adapter without a connection: an unreachable server fails later calls.
///
/// # Errors
/// [`BackendError::Misconfigured`]: no paths.
pub fn connect(
    config: &BackendConfig,
    zookeeper: &ZookeeperConfig,
    clock: Clock,
) -> Result<ZookeeperBackend, BackendError> {
    let settings = ZookeeperSettings::check(config, zookeeper)?;
    let unlocks = ZookeeperSettings::for_unlocks(config, zookeeper)?;
    Ok(ZookeeperBackend {
        unlocks: unlocks.map(|settings| Box::new(Link::new(settings, clock.clone()))),
        link: Link::new(settings, clock),
        cache: ContenderCache::default(),
    })
}

impl Backend for ZookeeperBackend {
    fn kind(&self) -> BackendKind {
        BackendKind::Zookeeper
    }

    fn address(&self) -> String {
        self.link.settings.connect.clone()
    }

    fn capabilities(&self) -> Vec<Capability> {
        vec![
            Capability::new(
                "watch",
                true,
                "a recursive watch per path reports new, changed and deleted contenders",
            ),
            Capability::new("waiters", true, "the contenders behind the holder, in order"),
            Capability::new("fencing", true, "the zxid that created the holder's node (czxid)"),
            Capability::new(
                "ttl",
                false,
                "a lock lasts as long as its session, whose timeout ZooKeeper does not report",
            ),
            match self.unlocks {
                Some(_) => Capability::new(RELEASE, true, release::HOW),
                None => Capability::new(RELEASE, false, release::NO_ACCOUNT),
            },
            Capability::new("clock", false, scan::NO_CLOCK),
        ]
    }

    fn traits(&self) -> BackendTraits {
        BackendTraits {
            watches_every_change: true,
            ..BackendTraits::default()
        }
    }

    fn safety(&self, _source: &Source) -> Safety {
        Safety {
            class: SafetyClass::Correctness,
            why: "consensus, and the czxid only rises".into(),
        }
    }

    fn grain_ms(&self, _source: &Source) -> i64 {
        0
    }

    fn observe<'a>(
        &'a self,
        budget: Budget,
        sink: &'a mut dyn Sink,
    ) -> BoxFuture<'a, Result<Pass, BackendError>> {
        Box::pin(self.pass(budget, sink))
    }

    fn refresh<'a>(
        &'a self,
        names: &'a [(Source, Resource)],
        sink: &'a mut dyn Sink,
    ) -> BoxFuture<'a, Result<(), BackendError>> {
        Box::pin(within(
            self.link.settings.timeout * 2,
            self.refresh_named(names, sink),
        ))
    }

    fn watch<'a>(&'a self, hints: Hints) -> BoxFuture<'a, ()> {
        Box::pin(async move { self.watch_sessions(&hints).await })
    }

    fn inspect<'a>(
        &'a self,
        source: &'a Source,
        resource: &'a Resource,
    ) -> BoxFuture<'a, Result<Inspection, BackendError>> {
        let detail = async { self.detail(source, resource).await.map_err(|fault| fault.error) };
        Box::pin(within(self.link.settings.timeout, detail))
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
        Box::pin(within(self.link.settings.timeout * 2, self.probe_server()))
    }
}
