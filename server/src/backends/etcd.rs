//! The etcd adapter: keys on leases, and the queues of `concurrency` mutexes and elections.
//!
//! Owns reading etcd and telling what it says. Does not judge locks, keep an inventory, or change anything in etcd.
//!
//! **Invariant**: no request of this adapter writes, grants, renews or revokes.

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
mod row;
mod settings;
mod watch;

use std::sync::atomic::AtomicI64;
use std::time::Duration;

use domain::backend::{BackendKind, Capability};
use domain::names::{Resource, Source};
use domain::observation::Inspection;
use domain::safety::{Safety, SafetyClass};
use futures::future::BoxFuture;

use super::{Backend, BackendError, Budget, Hints, Pass, Probe, Sink};
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
    /// Revision of the last complete list; 0 before there is one. The watch goes on from here.
    snapshot: AtomicI64,
}

/// Prepares the adapter. Opens no connection: a server that is down shows in what is asked of it later.
///
/// # Errors
/// [`BackendError::Misconfigured`]: endpoints that are no URLs, TLS files that cannot be read.
pub fn connect(config: &BackendConfig, etcd: &EtcdConfig, clock: Clock) -> Result<EtcdBackend, BackendError> {
    let settings = Settings::check(config, etcd)?;
    Ok(EtcdBackend {
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
            capability("release", false, "not offered yet"),
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

    fn probe(&self) -> BoxFuture<'_, Result<Probe, BackendError>> {
        Box::pin(self.within(self.link.settings.timeout * 2, self.look()))
    }
}
