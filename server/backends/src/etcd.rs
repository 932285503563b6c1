//! The etcd adapter: keys on leases, and the queues of `concurrency` mutexes and elections.
//!
//! Owns reading etcd and forced unlocks. Does not diagnose locks or keep an inventory.
//!
//! **Invariant**: requests of the watching account never write, grant, renew or revoke. The
//! unlocking account deletes one key in a transaction that compares its revisions, and nothing
//! else.

mod connection;
mod detail;
mod error;
mod leases;
mod list;
mod lookup;
mod probe;
mod range;
mod record;
mod refreshed_names;
mod release;
mod row;
mod scan;
mod settings;
mod watch;

use std::sync::atomic::AtomicI64;

use domain::backend::{BackendKind, BackendTraits, Capability, ClusterView};
use domain::force_release::{Act, Release};
use domain::generation::Generation;
use domain::names::{Resource, Source};
use domain::observation::Inspection;
use domain::safety::{Safety, SafetyClass};
use etcd_cluster::{ClusterAccess, ClusterReader};
use futures::future::BoxFuture;

use super::error::within;
use super::{Backend, BackendError, Budget, Hints, Pass, Probe, RELEASE, Sink};
use config::BackendConfig;
use config::etcd::EtcdConfig;
use connection::Link;
use leases::Leases;
use refreshed_names::RefreshedNames;
use runtime::clock::Clock;
use settings::EtcdSettings;

/// etcd reports the time left of a lease in whole seconds.
const GRAIN_MS: i64 = 1_000;

pub struct EtcdBackend {
    link: Link,
    leases: Leases,
    refreshed: RefreshedNames,
    /// One by one, for the Backends page.
    members: ClusterReader,
    /// The account of forced unlocks, if configured.
    unlocks: Option<Box<Link>>,
    /// Revision of the last complete list; 0 before the first. The watch continues from here.
    snapshot: AtomicI64,
}

/// Prepares the adapter without a connection: an unreachable server fails later calls.
///
/// # Errors
/// [`BackendError::Misconfigured`]: invalid endpoint URLs, unreadable TLS files.
pub fn connect(config: &BackendConfig, etcd: &EtcdConfig, clock: Clock) -> Result<EtcdBackend, BackendError> {
    let settings = EtcdSettings::check(config, etcd)?;
    let unlocks = EtcdSettings::for_unlocks(config, etcd)?;
    let access = ClusterAccess {
        endpoints: settings.endpoints.clone(),
        options: settings.options(settings.user.is_some()),
        without_login: settings.user.is_some().then(|| settings.options(false)),
        tls: &config.tls,
    };
    Ok(EtcdBackend {
        members: ClusterReader::new(access, clock.clone())?,
        unlocks: unlocks.map(|settings| Box::new(Link::new(settings, clock.clone()))),
        link: Link::new(settings, clock),
        leases: Leases::default(),
        refreshed: RefreshedNames::default(),
        snapshot: AtomicI64::new(0),
    })
}

impl Backend for EtcdBackend {
    fn kind(&self) -> BackendKind {
        BackendKind::Etcd
    }

    fn address(&self) -> String {
        self.link.settings.endpoints.join(", ")
    }

    fn capabilities(&self) -> Vec<Capability> {
        vec![
            Capability::new(
                "watch",
                true,
                "etcd's watch reports new, changed and deleted keys; renewals are polled",
            ),
            Capability::new(
                "waiters",
                true,
                "the queue of a mutex or election; plain keys have none",
            ),
            Capability::new("fencing", true, "the key's create revision"),
            Capability::new(
                "ttl",
                true,
                "LeaseTimeToLive, in whole seconds; the granted TTL as well",
            ),
            match self.unlocks {
                Some(_) => Capability::new(RELEASE, true, release::HOW),
                None => Capability::new(RELEASE, false, release::NO_ACCOUNT),
            },
            Capability::new(
                "clock",
                false,
                "etcd reports no wall clock; leases use its internal clock",
            ),
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
            why: "consensus, and the create revision only rises".into(),
        }
    }

    fn grain_ms(&self, _source: &Source) -> i64 {
        GRAIN_MS
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
            self.refresh_named(names, lookup::HINT_PAGES_MAX, sink),
        ))
    }

    fn watch<'a>(&'a self, hints: Hints) -> BoxFuture<'a, ()> {
        Box::pin(async move { self.watch_for_ever(&hints).await })
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

    fn clusters(&self) -> BoxFuture<'_, Option<Vec<ClusterView>>> {
        Box::pin(async move { Some(vec![self.members.read().await]) })
    }

    fn probe(&self) -> BoxFuture<'_, Result<Probe, BackendError>> {
        Box::pin(within(self.link.settings.timeout * 2, self.probe_server()))
    }
}
