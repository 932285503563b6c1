//! The built-in lease service as a backend: source `lease`, waiters in queue order, a change
//! notification for every change. Lease ids stay inside.

mod release;
mod stale_writes;

use std::collections::HashSet;
use std::sync::Arc;

use chrono::DateTime;
use domain::backend::{AccountPermission, BackendKind, BackendTraits, Capability, ClusterView, WatchState};
use domain::duration::millis;
use domain::force_release::{Act, BlastRadius, Release};
use domain::generation::Generation;
use domain::lease::scope::NameRange;
use domain::lease::{Lease, StoreTime};
use domain::names::{OwnerId, Resource, Source};
use domain::observation::{
    Coverage, InLine, Inspection, Lifetime, ObservedLock, RawField, WaitIdentity, Waiter,
};
use domain::reported::Reported;
use domain::safety::{Safety, SafetyClass};
use domain::waits::{IdentityField, WaitParty};
use futures::future::BoxFuture;
use tokio::sync::broadcast::error::RecvError;

use self::stale_writes::{ByResource, StaleWrites};
use super::{
    Backend, BackendError, Batch, Budget, ClockReading, Hints, Pass, Probe, RELEASE, Sink, SourcePass,
};
use lease::store::{HeldRow, Read, WaiterView};
use lease::{LeaseCaller, LeaseError, LeaseService, ResourceNow};
use runtime::clock::Clock;

const PAGE: u32 = 1_000;
/// A lease id authorizes ending the lease, so the inventory does not carry it.
const LEASE_ID_HIDDEN: &str = "a lease id is shown to the principal of the lease alone";

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

    async fn pass(&self, budget: Budget, sink: &mut dyn Sink) -> Result<Pass, BackendError> {
        let began = self.clock.tick();
        let budget_ms = millis(budget.time_max);
        let everything = NameRange::starting_with("");
        let (mut after, mut seen, mut reading) = (None::<Resource>, 0_u64, None);
        let coverage = loop {
            let before = self.clock.now();
            let read = self
                .service
                .held_by(&everything, after.as_ref(), PAGE)
                .await
                .map_err(failed)?;
            let middle = self.clock.tick().since(before.tick) / 2;
            reading.get_or_insert(ClockReading {
                backend_now: moment(read.now),
                our_now: before.wall + chrono::TimeDelta::milliseconds(middle),
                error_ms: middle,
            });
            let full = read.value.len() >= usize::try_from(PAGE).unwrap_or(usize::MAX);
            after = read.value.last().map(|row| row.resource.clone());
            seen += u64::try_from(read.value.len()).unwrap_or(0);
            sink.accept(Batch {
                sent_at: before.tick,
                locks: rows(&read, &self.stale_writes(read.now).await?).collect(),
                gone: Vec::new(),
            });
            if !full {
                break Coverage::Complete;
            }
            if self.clock.tick().since(began) > budget_ms {
                let why = "the scan timed out".into();
                break Coverage::Partial { seen, of: None, why };
            }
        };
        Ok(Pass {
            sources: vec![SourcePass {
                source: Self::source(),
                coverage,
                fault: None,
            }],
            clock: reading.map_or(Reported::unknown("nothing was read"), Reported::Value),
        })
    }
}

fn failed(error: LeaseError) -> BackendError {
    BackendError::Unreachable {
        detail: error.to_string(),
    }
}

fn moment(time: StoreTime) -> DateTime<chrono::Utc> {
    DateTime::from_timestamp_millis(time.ms()).unwrap_or_default()
}

fn observed(
    resource: &Resource,
    lease: &Lease,
    now: StoreTime,
    waiters: u32,
    oldest: Option<i64>,
) -> ObservedLock {
    ObservedLock {
        source: Builtin::source(),
        resource: resource.clone(),
        owner: Reported::Value(lease.owner.clone()),
        owner_count: 1,
        lease_id: Reported::unknown(LEASE_ID_HIDDEN),
        generation: Reported::Value(release::generation(lease)),
        fencing_token: Reported::Value(lease.token),
        acquired_at: Reported::Value(moment(lease.acquired_at)),
        renewed_at: Reported::Value(moment(lease.renewed_at)),
        lifetime: Lifetime::Leased {
            remaining_ms: lease.expires_at.since(now),
            ttl_ms: Reported::Value(lease.ttl.ms()),
        },
        waiter_count: Reported::Value(waiters),
        oldest_waiter_ms: oldest,
        line: Vec::new(),
        condition: None,
    }
}

fn rows(read: &Read<Vec<HeldRow>>, stale_writes: &ByResource) -> impl Iterator<Item = ObservedLock> {
    read.value.iter().map(|row| {
        let oldest = row.first_since.map(|since| read.now.since(since).max(0));
        let write = stale_writes.get(&row.resource);
        ObservedLock {
            condition: stale_writes::condition(&row.lease, write, read.now),
            line: line(row, read.now),
            ..observed(&row.resource, &row.lease, read.now, row.waiters, oldest)
        }
    })
}

/// The service records waits itself: these are for the graph of waits.
fn line(row: &HeldRow, now: StoreTime) -> Vec<InLine> {
    let party = |owner: &OwnerId| {
        let fields = [(IdentityField::Owner, Some(owner.as_str()))];
        Arc::new(WaitParty::new(owner.as_str(), owner.clone(), fields))
    };
    let holder = party(&row.lease.owner);
    let in_line = |(at, waiter): (usize, &WaiterView)| InLine {
        generation: Generation::new(format!("queue:{at}")),
        waited_ms: Some(now.since(waiter.since).max(0)),
        identity: Some(Box::new(WaitIdentity {
            party: party(&waiter.owner),
            wants: None,
            blocked_by: vec![holder.clone()],
            more_blockers: 0,
        })),
    };
    row.queue.iter().enumerate().map(in_line).collect()
}

fn from_resource(resource: &Resource, now: &ResourceNow) -> Option<ObservedLock> {
    let holder = now.holder.as_ref()?;
    let waiters = u32::try_from(now.waiters.len()).unwrap_or(u32::MAX);
    let oldest = now.waiters.first().map(|waiter| waiter.waited_ms);
    Some(observed(resource, &holder.lease, holder.now, waiters, oldest))
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
            // One statement: there may be thousands of names, several times a second.
            let resources: Vec<Resource> = names.iter().map(|(_, resource)| resource.clone()).collect();
            let read = self.service.held_by_names(&resources).await.map_err(failed)?;
            batch.locks = rows(&read, &self.stale_writes(read.now).await?).collect();
            let held: HashSet<&Resource> = read.value.iter().map(|row| &row.resource).collect();
            let gone = names.iter().filter(|(_, resource)| !held.contains(resource));
            batch.gone = gone.cloned().collect();
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

    fn cluster(&self) -> BoxFuture<'_, Option<ClusterView>> {
        Box::pin(self.service.store_cluster())
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
        field("acquired_at", moment(lease.acquired_at).to_rfc3339()),
        field("renewed_at", moment(lease.renewed_at).to_rfc3339()),
        field("expires_at", moment(lease.expires_at).to_rfc3339()),
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
