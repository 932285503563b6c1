//! The etcd adapter: keys on leases, and the queues of `concurrency` mutexes and elections.
//!
//! Owns reading etcd and telling what it says, and forced unlocks. Does not judge locks or keep an inventory.
//!
//! **Invariant**: the watching account's requests never write, grant, renew or revoke. The unlocking account deletes one
//! key in a transaction that compares its revisions, and nothing else.

mod detail;
mod fault;
mod leases;
mod link;
mod listing;
mod named;
mod pass;
mod probe;
mod range;
mod record;
mod release;
mod row;
mod settings;
mod watch;

use std::sync::atomic::AtomicI64;
use std::time::Duration;

use domain::backend::{BackendKind, Capability};
use domain::generation::Generation;
use domain::names::{Resource, Source};
use domain::observation::Inspection;
use domain::release::{Act, Release};
use domain::safety::{Safety, SafetyClass};
use futures::future::BoxFuture;

use super::{Backend, BackendError, Budget, Hints, Pass, Probe, RELEASE, Sink};
use crate::clock::Clock;
use crate::config::BackendConfig;
use crate::config::etcd::EtcdConfig;
use fault::Fault;
use leases::Leases;
use link::Link;
use settings::Settings;

/// etcd tells what is left of a lease in whole seconds.
const GRAIN_MS: i64 = 1_000;

pub struct EtcdBackend {
    link: Link,
    leases: Leases,
    /// The account of forced unlocks, where one is configured.
    unlocks: Option<Box<Link>>,
    /// Revision of the last complete list; 0 before there is one. The watch goes on from here.
    snapshot: AtomicI64,
}

/// Prepares the adapter. Opens no connection: a server that is down shows in what is asked of it later.
///
/// # Errors
/// [`BackendError::Misconfigured`]: endpoints that are no URLs, TLS files that cannot be read.
pub fn connect(config: &BackendConfig, etcd: &EtcdConfig, clock: Clock) -> Result<EtcdBackend, BackendError> {
    let settings = Settings::check(config, etcd)?;
    let unlocks = Settings::for_unlocks(config, etcd)?;
    Ok(EtcdBackend {
        unlocks: unlocks.map(|settings| Box::new(Link::new(settings, clock.clone()))),
        link: Link::new(settings, clock),
        leases: Leases::default(),
        snapshot: AtomicI64::new(0),
    })
}

impl EtcdBackend {
    /// Bounds what consists of several calls.
    async fn within<T>(
        &self,
        limit: Duration,
        work: impl Future<Output = Result<T, BackendError>>,
    ) -> Result<T, BackendError> {
        let answer = tokio::time::timeout(limit, work).await;
        let late = i64::try_from(limit.as_millis()).unwrap_or(i64::MAX);
        answer.unwrap_or_else(|_| Err(Fault::no_answer(late).error))
    }
}

impl Backend for EtcdBackend {
    fn kind(&self) -> BackendKind {
        BackendKind::Etcd
    }

    fn address(&self) -> String {
        self.link.settings.endpoints.join(", ")
    }

    fn capabilities(&self) -> Vec<Capability> {
        let capability = |name: &str, can, how: &str| Capability {
            name: name.to_owned(),
            can,
            how: how.to_owned(),
        };
        vec![
            capability(
                "watch",
                true,
                "etcd's watch tells of new, changed and deleted keys; renewals are polled",
            ),
            capability(
                "waiters",
                true,
                "the queue of a mutex or election; none for plain keys",
            ),
            capability("fencing", true, "the key's create revision"),
            capability(
                "ttl",
                true,
                "LeaseTimeToLive, in whole seconds; the granted TTL as well",
            ),
            match self.unlocks {
                Some(_) => capability(RELEASE, true, release::HOW),
                None => capability(RELEASE, false, release::NO_ACCOUNT),
            },
            capability(
                "clock",
                false,
                "etcd tells no wall clock; leases count on its own",
            ),
        ]
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
        Box::pin(self.within(self.link.settings.timeout * 2, self.named(names, sink)))
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
        Box::pin(self.within(self.link.settings.timeout, detail))
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
        Box::pin(self.within(self.link.settings.timeout * 2, self.look()))
    }
}
