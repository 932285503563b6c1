//! The built-in lease service as a backend: source `lease`, waiters in queue order, a change
//! notification for every change. Lease ids stay inside.

mod observed;
mod release;
mod scan;
mod stale_writes;

use std::collections::HashSet;
use std::sync::Arc;

use domain::backend::{AccountPermission, BackendKind, BackendTraits, Capability, ClusterView, WatchState};
use domain::force_release::{Act, BlastRadius, Release};
use domain::generation::Generation;
use domain::lease::{Lease, StoreTime};
use domain::names::{Resource, Source};
use domain::observation::{Inspection, RawField, Waiter};
use domain::reported::Reported;
use domain::safety::{Safety, SafetyClass};
use futures::future::BoxFuture;
use tokio::sync::broadcast::error::RecvError;

use self::observed::{from_resource, rows, to_datetime};
use self::stale_writes::{ByResource, StaleWrites};
use super::{Backend, BackendError, Batch, Budget, Hints, Pass, Probe, RELEASE, Sink};
use lease::{LeaseCaller, LeaseError, LeaseService, ResourceNow};
use runtime::clock::Clock;

pub struct Builtin {
    service: Arc<LeaseService>,
    address: String,
    clock: Clock,
    stale_writes: StaleWrites,
}

impl Builtin {
    /// `address` is the store's, for display: without user and password.
    pub fn new(service: Arc<LeaseService>, address: String, clock: Clock) -> Self {
        Self {
            service,
            address,
            clock,
            stale_writes: StaleWrites::default(),
        }
    }

    fn source() -> Source {
        Source::fixed("lease")
    }

    /// Nothing else ends with a lease.
    fn blast_radius(&self, now: &ResourceNow) -> BlastRadius {
        let mut radius = BlastRadius {
            next: now.waiters.first().map(|waiter| waiter.owner.clone()),
            ..BlastRadius::default()
        };
        let delay = self.service.lock_delay();
        if !delay.is_zero() {
            let seconds = delay.as_secs();
            radius.warn(format!(
                "It stays locked for {seconds} s afterwards (lock_delay)."
            ));
        }
        radius
    }

    async fn stale_writes(&self, now: StoreTime) -> Result<ByResource, BackendError> {
        let recent = self.stale_writes.recent(&self.service, &self.clock, now);
        recent.await.map_err(failed)
    }

    async fn read(&self, resource: &Resource) -> Result<ResourceNow, BackendError> {
        let read = self.service.resource(&LeaseCaller::server(), resource).await;
        read.map_err(failed)
    }

    fn inspection(&self, resource: &Resource, now: &ResourceNow) -> Inspection {
        let lock = from_resource(resource, now);
        let raw = now
            .holder
            .as_ref()
            .map(|seen| raw(&seen.lease))
            .unwrap_or_default();
        let waiter = |(place, waiter): (usize, &lease::WaiterNow)| Waiter {
            position: u32::try_from(place + 1).unwrap_or(u32::MAX),
            owner_id: waiter.owner.clone(),
            waited_ms: Reported::Value(waiter.waited_ms),
            lease_remaining_ms: None,
        };
        let blast_radius = match &lock {
            Some(_) => Reported::Value(self.blast_radius(now)),
            None => Reported::absent("the lock is free"),
        };
        Inspection {
            blast_radius,
            owners: now.holder.iter().map(|seen| seen.lease.owner.clone()).collect(),
            waiters: now.waiters.iter().enumerate().map(waiter).collect(),
            lock,
            raw,
            ..Inspection::default()
        }
    }
}

fn failed(error: LeaseError) -> BackendError {
    BackendError::Unreachable {
        detail: error.to_string(),
    }
}

impl Backend for Builtin {
    fn kind(&self) -> BackendKind {
        BackendKind::Builtin
    }

    fn address(&self) -> String {
        self.address.clone()
    }

    fn capabilities(&self) -> Vec<Capability> {
        let can = |name: &str, how: &str| Capability::new(name, true, how);
        vec![
            can(
                "watch",
                "every change of this server at once, of other replicas by notification",
            ),
            can("waiters", "in order"),
            can("fencing", "a token per grant, strictly increasing per resource"),
            can("ttl", "the store's clock judges expiry"),
            can(
                RELEASE,
                "the lease is revoked; its owner gets actor and reason, and the token counter stays",
            ),
            can("clock", "read with each scan"),
        ]
    }

    fn traits(&self) -> BackendTraits {
        BackendTraits {
            counts_grants: true,
            ..BackendTraits::default()
        }
    }

    fn safety(&self, _: &Source) -> Safety {
        Safety {
            class: SafetyClass::Correctness,
            why: "one database grants, with a fencing token that never goes back".into(),
        }
    }

    fn grain_ms(&self, _: &Source) -> i64 {
        1
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
        Box::pin(async move {
            let mut batch = Batch {
                sent_at: self.clock.tick(),
                locks: Vec::new(),
                gone: Vec::new(),
            };
            // One statement for each shard: there may be thousands of names, several times a second.
            let resources: Vec<Resource> = names.iter().map(|(_, resource)| resource.clone()).collect();
            let found = self.service.held_by_names(&resources).await;
            if found.reads.is_empty() && !found.unread.is_empty() {
                return Err(failed(LeaseError::Unavailable));
            }
            // Nothing is known of a shard that did not answer.
            let mut seen: HashSet<Resource> = found.unread.into_iter().collect();
            for read in found.reads {
                batch
                    .locks
                    .extend(rows(&read, &self.stale_writes(read.now).await?));
                seen.extend(read.value.into_iter().map(|row| row.resource));
            }
            let missing = names.iter().filter(|(_, resource)| !seen.contains(resource));
            batch.gone = missing.cloned().collect();
            sink.accept(batch);
            Ok(())
        })
    }

    fn watch<'a>(&'a self, hints: Hints) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let mut changes = self.service.changes();
            let source = Self::source();
            hints.state(WatchState::Live);
            hints.relist();
            loop {
                match changes.recv().await {
                    Ok(Some(names)) => {
                        hints.all_changed(&source, &names);
                    }
                    Ok(None) | Err(RecvError::Lagged(_)) => hints.relist(),
                    Err(RecvError::Closed) => return,
                }
            }
        })
    }

    fn inspect<'a>(
        &'a self,
        _: &'a Source,
        resource: &'a Resource,
    ) -> BoxFuture<'a, Result<Inspection, BackendError>> {
        Box::pin(async move {
            let now = self.read(resource).await?;
            Ok(self.inspection(resource, &now))
        })
    }

    fn release<'a>(
        &'a self,
        source: &'a Source,
        resource: &'a Resource,
        generation: &'a Generation,
        act: &'a Act,
    ) -> BoxFuture<'a, Result<Release, BackendError>> {
        Box::pin(release::release(self, source, resource, generation, act))
    }

    fn clusters(&self) -> BoxFuture<'_, Option<Vec<ClusterView>>> {
        Box::pin(self.service.store_clusters())
    }

    fn probe(&self) -> BoxFuture<'_, Result<Probe, BackendError>> {
        Box::pin(async move {
            let version = self.service.store_version().await.map_err(failed)?;
            Ok(Probe {
                version: Reported::Value(version),
                // No account is involved: the store is this server's own, and it has just
                // answered.
                rights: vec![AccountPermission {
                    what: "read and write the store of the lease service".into(),
                    allowed: Reported::Value(true),
                    wanted: true,
                    remedy: String::new(),
                }],
            })
        })
    }
}

fn raw(lease: &Lease) -> Vec<RawField> {
    let field = |name: &str, value: String| RawField {
        name: name.to_owned(),
        value,
    };
    let mut fields = vec![
        field("owner_id", lease.owner.to_string()),
        field("fencing_token", lease.token.to_string()),
        field("ttl_seconds", lease.ttl.seconds().to_string()),
        field("acquired_at", to_datetime(lease.acquired_at).to_rfc3339()),
        field("renewed_at", to_datetime(lease.renewed_at).to_rfc3339()),
        field("expires_at", to_datetime(lease.expires_at).to_rfc3339()),
        field("renewals", lease.renewals.to_string()),
    ];
    fields.extend(
        lease
            .metadata
            .iter()
            .map(|(name, value)| field(&format!("metadata.{name}"), value.to_owned())),
    );
    fields
}
