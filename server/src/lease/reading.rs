//! What the service shows: one lease, the leases held now, a resource, the fate of a lease as it happens.

use domain::lease::scope::NameRange;
use domain::lease::{How, Lease, LeaseId, StoreTime};
use domain::names::{OwnerId, Resource};
use domain::token::FencingToken;
use tokio::sync::mpsc;

use super::caller::Caller;
use super::error::LeaseError;
use super::followers::LeaseEvent;
use super::operation::Operation;
use super::store::{HeldRow, Lane, Read};
use super::{LeaseChange, LeaseService};

/// A reading that became too old to judge by, because our process or its way to the store stood still, is repeated.
const READINGS_MAX: usize = 3;

/// A lease as it was seen a moment ago.
#[derive(Debug, Clone, PartialEq)]
pub struct Seen {
    pub resource: Resource,
    pub lease: Lease,
    /// The store's clock at the reading.
    pub now: StoreTime,
    pub remaining_ms: i64,
}

#[derive(Debug, Clone, PartialEq)]
pub struct LeasePage {
    pub leases: Vec<Seen>,
    /// The last name of this page, when there are more.
    pub next: Option<Resource>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ResourceNow {
    pub holder: Option<Seen>,
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
    pub async fn lease(&self, caller: &Caller, id: LeaseId) -> Result<Seen, LeaseError> {
        for _ in 0..READINGS_MAX {
            let read = self.core.store.leases(&[id]).await;
            let read = read.map_err(|error| self.unread(&error))?;
            let age_ms = self.age_ms(&read);
            let (resource, lease) = read.value.into_iter().next().ok_or(LeaseError::NotFound)?;
            caller.may_use(&resource, &lease)?;
            if has_unstored_expiry(&lease, read.now) {
                self.store_expiry(resource).await?;
            } else if !is_too_old(&lease, read.now, age_ms) {
                return Ok(seen(resource, lease, read.now, age_ms));
            }
        }
        Err(LeaseError::Unavailable)
    }

    /// **Invariant:** an expiry is in the store before an answer reports it. A reading holds no lock, so a renewal of before
    /// the expiry may be on its way; and the clock of a later reading may show a few milliseconds less.
    async fn store_expiry(&self, resource: Resource) -> Result<(), LeaseError> {
        self.ask(Lane::Main, Operation::Expire { resource }).await?;
        Ok(())
    }

    /// Leases that live now, whose names start with `prefix` and lie in the caller's scope, in order of name.
    ///
    /// # Errors
    /// `Unavailable`.
    pub async fn leases(
        &self,
        caller: &Caller,
        prefix: &str,
        after: Option<&Resource>,
        limit: u32,
    ) -> Result<LeasePage, LeaseError> {
        let mut leases: Vec<Seen> = Vec::new();
        let most = usize::try_from(limit).unwrap_or(usize::MAX);
        for range in caller.scope.ranges(prefix) {
            // One more than asked for tells whether there is another page.
            let left = u32::try_from(most + 1 - leases.len()).unwrap_or(u32::MAX);
            let read = self.held(&range, after, left).await?;
            let age_ms = self.age_ms(&read);
            let now = read.now;
            leases.extend(
                read.value
                    .into_iter()
                    .map(|row| seen(row.resource, row.lease, now, age_ms)),
            );
            if leases.len() > most {
                break;
            }
        }
        let more = leases.len() > most;
        leases.truncate(most);
        let next = leases.last().filter(|_| more).map(|last| last.resource.clone());
        Ok(LeasePage { leases, next })
    }

    pub(crate) async fn held(
        &self,
        range: &NameRange,
        after: Option<&Resource>,
        limit: u32,
    ) -> Result<Read<Vec<HeldRow>>, LeaseError> {
        let read = self.core.store.held(range, after, limit).await;
        read.map_err(|error| self.unread(&error))
    }

    pub(crate) async fn held_of(&self, names: &[Resource]) -> Result<Read<Vec<HeldRow>>, LeaseError> {
        let read = self.core.store.held_of(names).await;
        read.map_err(|error| self.unread(&error))
    }

    /// # Errors
    /// `OutOfScope`, the same whether or not it is held.
    pub async fn resource(&self, caller: &Caller, resource: &Resource) -> Result<ResourceNow, LeaseError> {
        caller.may_name(resource)?;
        for _ in 0..READINGS_MAX {
            let read = self.core.store.resource(resource).await;
            let read = read.map_err(|error| self.unread(&error))?;
            let (age_ms, now) = (self.age_ms(&read), read.now);
            let state = read.value.state;
            if let Some(lease) = &state.lease {
                if has_unstored_expiry(lease, now) {
                    self.store_expiry(resource.clone()).await?;
                    continue;
                }
                if is_too_old(lease, now, age_ms) {
                    continue;
                }
            }
            let waiter = |waiter: super::store::WaiterView| WaiterNow {
                owner: waiter.owner,
                waited_ms: now.since(waiter.since).max(0),
            };
            return Ok(ResourceNow {
                holder: state
                    .holder_at(now)
                    .map(|lease| seen(resource.clone(), lease.clone(), now, age_ms)),
                last_token: state.last_token,
                waiters: read.value.waiters.into_iter().map(waiter).collect(),
                last: state.lease,
                now,
            });
        }
        Err(LeaseError::Unavailable)
    }

    /// The fate of a lease from now on. Ends with its loss; subscribed after that, it is this one event.
    ///
    /// # Errors
    /// `NotFound` when it was never known, is out of the caller's scope, or belongs to another principal.
    pub async fn events(
        &self,
        caller: &Caller,
        id: LeaseId,
    ) -> Result<mpsc::Receiver<LeaseEvent>, LeaseError> {
        let found = self.lease(caller, id).await?;
        let Some(ending) = found.lease.ending_at(found.now) else {
            return Ok(self.core.followers.follow(found.lease));
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

    /// Version of the store, for the Backends page.
    ///
    /// # Errors
    /// `Unavailable`.
    pub async fn store_version(&self) -> Result<String, LeaseError> {
        self.core
            .store
            .version()
            .await
            .map_err(|error| self.unread(&error))
    }

    pub(super) fn age_ms<T>(&self, read: &Read<T>) -> i64 {
        self.core.clock.tick().since(read.read_at)
    }

    pub(super) fn unread(&self, error: &super::store::StoreError) -> LeaseError {
        self.core.metrics.unavailable.one();
        tracing::warn!(%error, "leases could not be read: {error}");
        LeaseError::from(error)
    }
}

/// Whether a lease that lived when it was read seems to have run out only because that was a while ago: it may have been
/// renewed since, which another reading tells.
fn is_too_old(lease: &Lease, now: StoreTime, age_ms: i64) -> bool {
    lease.lives_at(now) && !lease.lives_at(now.plus(age_ms))
}

/// Whether a lease has run out and its row does not say so yet.
pub(super) fn has_unstored_expiry(lease: &Lease, now: StoreTime) -> bool {
    lease.ending.is_none() && !lease.lives_at(now)
}

fn seen(resource: Resource, lease: Lease, now: StoreTime, age_ms: i64) -> Seen {
    let remaining_ms = (lease.remaining_ms(now) - age_ms).max(0);
    Seen {
        resource,
        lease,
        now: now.plus(age_ms),
        remaining_ms,
    }
}

impl Seen {
    pub fn state(&self) -> &'static str {
        self.lease.state_at(self.now)
    }

    /// How it ended, if it has.
    pub fn ending(&self) -> Option<How> {
        self.lease.ending_at(self.now).map(|ending| ending.how)
    }
}
