//! Read queries of the service: one lease, live leases, a resource, the events of a lease.

use std::sync::Arc;
use std::time::Duration;

use domain::backend::ClusterView;
use domain::lease::scope::NameRange;
use domain::lease::{EndCause, Lease, LeaseId, StoreTime};
use domain::names::{OwnerId, Resource};
use domain::token::FencingToken;
use tokio::sync::mpsc;

use super::caller::LeaseCaller;
use super::core::Core;
use super::error::LeaseError;
use super::operation::Operation;
use super::shards::{ShardIndex, ShardReads};
use super::store::{HeldRow, Lane, Read};
use super::watchers::LeaseEvent;
use super::{LeaseChange, LeaseService, REPLY_TIMEOUT, submit};

/// Pause before a read is repeated that did not show whether the lease has expired.
const READING_PAUSE: Duration = Duration::from_millis(5);

/// A lease as read from the store, aged to now.
#[derive(Debug, Clone, PartialEq)]
pub struct LeaseView {
    pub resource: Resource,
    pub lease: Lease,
    /// Store time, aged to now unless the lease has reached its expiry meanwhile.
    pub now: StoreTime,
    pub remaining_ms: i64,
}

#[derive(Debug, Clone, PartialEq)]
pub struct LeasePage {
    pub leases: Vec<LeaseView>,
    /// The last name of this page, when there are more.
    pub next: Option<Resource>,
    /// Whether every shard answered: otherwise the leases of one or more are missing.
    pub is_complete: bool,
}

/// Held leases of given names, by shard.
#[derive(Debug, Clone, Default)]
pub struct HeldByNames {
    pub reads: Vec<Read<Vec<HeldRow>>>,
    /// Names whose shard did not answer.
    pub unread: Vec<Resource>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ResourceNow {
    pub holder: Option<LeaseView>,
    pub last_token: FencingToken,
    pub waiters: Vec<WaiterNow>,
    pub(crate) last: Option<Lease>,
    pub now: StoreTime,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaiterNow {
    pub owner: OwnerId,
    pub waited_ms: i64,
}

impl LeaseService {
    /// # Errors
    /// `NotFound` when it was never known, is out of the caller's scope, or belongs to another principal.
    pub async fn lease(&self, caller: &LeaseCaller, id: LeaseId) -> Result<LeaseView, LeaseError> {
        read_until_decided(|| self.read_lease(caller, id)).await
    }

    async fn read_lease(&self, caller: &LeaseCaller, id: LeaseId) -> Result<Option<LeaseView>, LeaseError> {
        let core = self.shards.of_lease(id)?;
        let read = core.store.leases(&[id]).await;
        let read = read.map_err(|error| core.unread(&error))?;
        let age_ms = self.age_ms(&read);
        let (resource, lease) = read.value.into_iter().next().ok_or(LeaseError::NotFound)?;
        caller.may_use(&resource, &lease)?;
        if has_unstored_expiry(&lease, read.now) {
            self.store_expiry(resource).await?;
            return Ok(None);
        }
        let is_decided = !is_too_old(&lease, read.now, age_ms);
        Ok(is_decided.then(|| lease_view(resource, lease, read.now, age_ms)))
    }

    /// **Invariant:** an expiry is stored before an answer reports it. A reading holds no lock:
    /// a renewal sent before the expiry may still be in flight, and the clock of a later reading
    /// may be a few milliseconds behind.
    async fn store_expiry(&self, resource: Resource) -> Result<(), LeaseError> {
        let core = self.shards.of_resource(&resource)?;
        submit(core, Lane::Main, Operation::Expire { resource }).await?;
        Ok(())
    }

    /// Live leases whose names start with `prefix` and lie in the caller's scope, ordered by
    /// name.
    ///
    /// # Errors
    /// `Unavailable`.
    pub async fn leases(
        &self,
        caller: &LeaseCaller,
        prefix: &str,
        after: Option<&Resource>,
        limit: u32,
    ) -> Result<LeasePage, LeaseError> {
        let mut leases: Vec<LeaseView> = Vec::new();
        let mut is_complete = true;
        let leases_max = usize::try_from(limit).unwrap_or(usize::MAX);
        for range in caller.scope.ranges(prefix) {
            // One more than requested, to know whether there is another page.
            let left = u32::try_from(leases_max + 1 - leases.len()).unwrap_or(u32::MAX);
            let found = self
                .shards
                .read_all(|_, core| core.store.held_leases(&range, after, left))
                .await?;
            is_complete &= found.is_complete();
            leases.extend(self.merge(found, leases_max + 1 - leases.len()));
            if leases.len() > leases_max {
                break;
            }
        }
        let has_more = leases.len() > leases_max;
        leases.truncate(leases_max);
        let next = leases
            .last()
            .filter(|_| has_more)
            .map(|last| last.resource.clone());
        Ok(LeasePage {
            leases,
            next,
            is_complete,
        })
    }

    /// The first `leases_max` of the leases that each shard has listed by name. What a shard has beyond its list comes after
    /// the last one taken.
    fn merge(&self, found: ShardReads<Read<Vec<HeldRow>>>, leases_max: usize) -> Vec<LeaseView> {
        let mut leases: Vec<LeaseView> = Vec::new();
        for read in found.reads {
            let (now, age_ms) = (read.now, self.age_ms(&read));
            let rows = read.value.into_iter();
            leases.extend(rows.map(|row| lease_view(row.resource, row.lease, now, age_ms)));
        }
        // Each list is in order, which a stable sort uses.
        leases.sort_by(|one, other| one.resource.cmp(&other.resource));
        leases.truncate(leases_max);
        leases
    }

    /// Held leases of one shard with their waiters, ordered by name.
    ///
    /// # Errors
    /// `Unavailable` when the shard does not answer.
    pub async fn held_in(
        &self,
        shard: ShardIndex,
        range: &NameRange,
        after: Option<&Resource>,
        limit: u32,
    ) -> Result<Read<Vec<HeldRow>>, LeaseError> {
        let read = self
            .shards
            .read_at(shard, |core| core.store.held_leases(range, after, limit));
        read.await
    }

    /// Held leases of these names, read in their shards. Names of a shard that did not answer are in `unread`.
    pub async fn held_by_names(&self, names: &[Resource]) -> HeldByNames {
        let map = self.shards.map();
        let mut names_by_shard: Vec<Vec<Resource>> = vec![Vec::new(); map.shards() as usize];
        for name in names {
            names_by_shard[map.of_resource(name).number()].push(name.clone());
        }
        let requests = (0..).zip(&names_by_shard).filter(|(_, names)| !names.is_empty());
        let reads = requests.map(|(index, names)| async move {
            let shard = ShardIndex::new(index);
            let read = self
                .shards
                .read_at(shard, |core| core.store.held_by_names(names))
                .await;
            (names, read)
        });
        let mut found = HeldByNames::default();
        for (names, read) in futures::future::join_all(reads).await {
            match read {
                Ok(read) => found.reads.push(read),
                Err(_) => found.unread.extend(names.iter().cloned()),
            }
        }
        found
    }

    /// # Errors
    /// `OutOfScope`, the same whether or not it is held.
    pub async fn resource(
        &self,
        caller: &LeaseCaller,
        resource: &Resource,
    ) -> Result<ResourceNow, LeaseError> {
        caller.may_name(resource)?;
        read_until_decided(|| self.read_resource(resource)).await
    }

    async fn read_resource(&self, resource: &Resource) -> Result<Option<ResourceNow>, LeaseError> {
        let core = self.shards.of_resource(resource)?;
        let read = core.store.resource(resource).await;
        let read = read.map_err(|error| core.unread(&error))?;
        let (age_ms, now) = (self.age_ms(&read), read.now);
        let state = read.value.state;
        if let Some(lease) = &state.lease {
            if has_unstored_expiry(lease, now) {
                self.store_expiry(resource.clone()).await?;
                return Ok(None);
            }
            if is_too_old(lease, now, age_ms) {
                return Ok(None);
            }
        }
        let waiter = |waiter: super::store::WaiterView| WaiterNow {
            owner: waiter.owner,
            waited_ms: now.since(waiter.since).max(0),
        };
        Ok(Some(ResourceNow {
            holder: state
                .holder_at(now)
                .map(|lease| lease_view(resource.clone(), lease.clone(), now, age_ms)),
            last_token: state.last_token,
            waiters: read.value.waiters.into_iter().map(waiter).collect(),
            last: state.lease,
            now,
        }))
    }

    /// The events of a lease from now on. The stream closes after the end of the lease; for an
    /// ended lease it has that one event.
    ///
    /// # Errors
    /// `NotFound` when it was never known, is out of the caller's scope, or belongs to another principal.
    pub async fn events(
        &self,
        caller: &LeaseCaller,
        id: LeaseId,
    ) -> Result<mpsc::Receiver<LeaseEvent>, LeaseError> {
        let found = self.lease(caller, id).await?;
        let Some(ending) = found.lease.ending_at(found.now) else {
            return Ok(self.shards.of_lease(id)?.followers.follow(found.lease));
        };
        let (to, events) = mpsc::channel(1);
        let event = LeaseEvent {
            resource: found.resource,
            lease: found.lease,
            at: ending.at,
            what: LeaseChange::Ended(ending.how),
        };
        let _ = to.try_send(event);
        Ok(events)
    }

    /// Version of the stores, for the Backends page: of the first shard that answers.
    ///
    /// # Errors
    /// `Unavailable` when none does.
    pub async fn store_version(&self) -> Result<String, LeaseError> {
        let found = self.shards.read_all(|_, core| core.store.version()).await?;
        found.reads.into_iter().next().ok_or(LeaseError::Unavailable)
    }

    /// Members of replicated stores, for the Backends page: of each shard that was opened. `None` for the others.
    pub async fn store_clusters(&self) -> Option<Vec<ClusterView>> {
        let is_sharded = self.shards.map().shards() > 1;
        let views = self.shards.opened().map(|(index, core)| async move {
            let view = core.store.cluster().await?;
            Some(ClusterView {
                shard: is_sharded.then_some(index.get()),
                ..view
            })
        });
        let views: Vec<ClusterView> = futures::future::join_all(views)
            .await
            .into_iter()
            .flatten()
            .collect();
        (!views.is_empty()).then_some(views)
    }

    /// Token floors of the shards that a restored snapshot sets back, of those that were opened; empty for SQL stores.
    pub fn token_floors(&self) -> Vec<(ShardIndex, u64)> {
        let floor = |(index, core): (ShardIndex, &Arc<Core>)| Some((index, core.store.token_floor()?));
        self.shards.opened().filter_map(floor).collect()
    }

    pub(super) fn age_ms<T>(&self, read: &Read<T>) -> i64 {
        self.common.clock.tick().since(read.read_at)
    }
}

impl Core {
    pub(super) fn unread(&self, error: &super::store::StoreError) -> LeaseError {
        self.metrics.unavailable.increment();
        tracing::warn!(%error, "leases could not be read: {error}");
        LeaseError::from(error)
    }
}

/// Repeats a read that returns `None`: the lease reached its expiry while it was read, or the store's writer does not count it as
/// expired yet. The limit is a time and not a number of reads: any number of them can fall into a stall of this process, or
/// between two clocks that differ by milliseconds.
///
/// # Errors
/// Those of the read; `Unavailable` after [`REPLY_TIMEOUT`].
async fn read_until_decided<T, F>(reading: impl Fn() -> F) -> Result<T, LeaseError>
where
    F: Future<Output = Result<Option<T>, LeaseError>>,
{
    let answer_loop = async {
        loop {
            if let Some(answer) = reading().await? {
                return Ok(answer);
            }
            tokio::time::sleep(READING_PAUSE).await;
        }
    };
    tokio::time::timeout(REPLY_TIMEOUT, answer_loop)
        .await
        .unwrap_or(Err(LeaseError::Unavailable))
}

/// Whether a lease that was live when it was read seems expired only because of the reading's
/// age: it may have been renewed since, so it is read again.
fn is_too_old(lease: &Lease, now: StoreTime, age_ms: i64) -> bool {
    lease.lives_at(now) && !lease.lives_at(now.plus(age_ms))
}

/// Whether a lease has expired and its row does not record it yet.
pub(super) fn has_unstored_expiry(lease: &Lease, now: StoreTime) -> bool {
    lease.ending.is_none() && !lease.lives_at(now)
}

/// A lease that was live when it was read is never shown as expired: its expiry is not stored yet.
fn lease_view(resource: Resource, lease: Lease, now: StoreTime, age_ms: i64) -> LeaseView {
    let remaining_ms = (lease.remaining_ms(now) - age_ms).max(0);
    let now = if is_too_old(&lease, now, age_ms) {
        now
    } else {
        now.plus(age_ms)
    };
    LeaseView {
        resource,
        lease,
        now,
        remaining_ms,
    }
}

impl LeaseView {
    pub fn state(&self) -> &'static str {
        self.lease.state_at(self.now)
    }

    /// How the lease ended, if it has.
    pub fn ending(&self) -> Option<EndCause> {
        self.lease.ending_at(self.now).map(|ending| ending.how)
    }
}

#[cfg(test)]
mod tests;
