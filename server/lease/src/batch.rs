//! Runs a batch of operations on the state that a store has loaded and locked; the same code for
//! every store.
//!
//! Pure: loaded state in, results and changes out. **Invariant:** a store writes these
//! [`Changes`] only while the state they are based on is unchanged, checked inside the writing
//! transaction, and no result is returned before the commit.

mod changes;
mod idempotency_keys;
mod queue;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use domain::lease::invariants::InvariantError;
use domain::lease::{
    self, Acquire, Command, EndCause, Lease, LeaseId, Renew, Revoke, StoreTime, TransitionOutcome, transition,
};
use domain::names::Resource;
use domain::tick::Tick;
use hashbrown::hash_map::Entry;

use self::idempotency_keys::Unbinding;
use super::activity_log::{Activity, ActivityEntry};
use super::caller::LeasePrincipal;
use super::operation::{AcquireOp, Applied, HeldUntil, Operation, OperationResult, QueueHead, Rejection};

pub use changes::{ByLease, Changes, HeldLease, Joined, KeyRow, LeaseRowChange, Loaded, QueueEntry};

/// A batch that was run and is not yet written.
#[derive(Debug, Default)]
pub struct BatchResult {
    pub done: Vec<OperationResult>,
    pub changes: Changes,
    pub heads: Vec<QueueHead>,
    pub changed: Vec<Resource>,
    /// Expired leases whose end this batch records.
    pub expired: Vec<Lease>,
    /// Activity per resource.
    pub activity: Vec<ActivityEntry>,
    /// Every loaded resource, as it will be after the changes are written.
    pub after: HashMap<Resource, HeldLease>,
}

impl BatchResult {
    /// Call after the commit.
    pub fn applied(self, now: StoreTime, read_at: Tick) -> Applied {
        let leases = self.changes.leases.into_values();
        Applied {
            now,
            read_at,
            done: self.done,
            heads: self.heads,
            changed: self.changed,
            held: leases
                .map(|owned| HeldUntil::new(owned.resource, &owned.lease))
                .collect(),
            expired: self.expired,
            activity: self.activity,
        }
    }
}

/// # Errors
/// [`InvariantError`] when an operation would violate an invariant: the transaction must be rolled back.
pub fn run(
    loaded: Loaded,
    operations: &[Operation],
    replica: &Arc<str>,
) -> Result<BatchResult, InvariantError> {
    let mut run = Run {
        loaded,
        replica,
        ran: BatchResult::default(),
        touched: HashSet::with_capacity(operations.len()),
    };
    run.make_room(operations.len());
    for operation in operations {
        let result = run.execute(operation)?;
        run.ran.done.push(result);
    }
    run.name_heads();
    run.ran.changed = run.touched.into_iter().collect();
    run.ran.after = run.loaded.resources;
    Ok(run.ran)
}

struct Run<'a> {
    loaded: Loaded,
    replica: &'a Arc<str>,
    ran: BatchResult,
    touched: HashSet<Resource>,
}

impl Run<'_> {
    /// Reserves capacity for the usual output of this many operations.
    fn make_room(&mut self, operations: usize) {
        self.ran.done.reserve(operations);
        self.ran.activity.reserve(operations);
        self.ran.changes.resources.reserve(operations);
        self.ran.changes.leases.reserve(operations);
        self.ran.changes.keys.reserve(operations);
    }

    fn execute(&mut self, operation: &Operation) -> Result<OperationResult, InvariantError> {
        match operation {
            Operation::Acquire(acquire) => self.acquire(acquire),
            Operation::Renew {
                lease,
                ttl,
                lifetime_ms_max,
                principal,
                scope,
            } => {
                let renew = Renew {
                    lease: *lease,
                    ttl: *ttl,
                    lifetime_ms_max: *lifetime_ms_max,
                };
                self.by_lease(*lease, Some((principal, scope)), &Command::Renew(renew))
            }
            Operation::Release {
                lease,
                principal,
                scope,
                unbind,
            } => {
                if let Some(name) = unbind
                    && self.unbind(name, *lease) == Unbinding::Claimed
                {
                    return Ok(OperationResult::Nothing);
                }
                let release = Command::Release { lease: *lease };
                self.by_lease(*lease, Some((principal, scope)), &release)
            }
            Operation::Revoke {
                lease,
                revocation,
                delay_ms,
            } => {
                let revoke = Revoke {
                    lease: *lease,
                    revocation: revocation.clone(),
                    delay_ms: *delay_ms,
                };
                self.by_lease(*lease, None, &Command::Revoke(revoke))
            }
            Operation::Expire { resource } => self.step(resource, &Command::Expire),
            Operation::Leave { resource, waiter } => Ok(self.leave(resource, *waiter)),
            Operation::ClaimKey(key) => Ok(self.claim(key)),
            Operation::Reject(rejection) => {
                let now = self.loaded.now;
                self.ran.changes.rejections.push(Rejection {
                    // The reporter's clock may be ahead: a time in the future would count as recent until it has passed.
                    at: rejection.at.map(|at| at.min(now)),
                    ..(**rejection).clone()
                });
                // Fencing rejections are visible to readers of the resource.
                self.touched.insert(rejection.resource.clone());
                let what = Activity::Rejected {
                    owner: rejection.owner.clone(),
                    token: rejection.token,
                };
                self.record(&rejection.resource, what);
                Ok(OperationResult::Nothing)
            }
        }
    }

    fn acquire(&mut self, op: &AcquireOp) -> Result<OperationResult, InvariantError> {
        let is_repeated = self.is_repeated(op);
        if let Some(key) = &op.key
            && let Some(result) = self.replay(key, op)?
        {
            return Ok(result);
        }
        let now = self.loaded.now;
        let held = self.loaded.resources.entry(op.resource.clone()).or_default();
        if let Some(lease) = held.state.lease.as_ref().filter(|lease| lease.id == op.id) {
            let lease = lease.clone();
            return self.earlier_grant(op, lease);
        }
        let place = held.queue.iter().position(|waiting| waiting.waiter == op.id);
        let my_turn = place.map_or(held.queue.is_empty(), |place| place == 0);
        if my_turn && lease::transition::is_free(&held.state, now) {
            let result = self.step(&op.resource, &Command::Acquire(self.request(op)))?;
            self.end_wait(op);
            if let (Some(key), OperationResult::Acquired { lease, .. }) = (&op.key, &result) {
                // Claimed at once unless the client waits, which may be gone: one that does not wait retries to find its lease.
                self.bind(key, Some(lease.id), !op.mode.waits());
            }
            return Ok(result);
        }
        let refusal = lease::transition::refusal(&held.state, now);
        let reserved_for_waiter = lease::transition::is_free(&held.state, now);
        let others = held.queue.len() - usize::from(place.is_some());
        let waiters = u32::try_from(others).unwrap_or(u32::MAX);
        self.touched_line(&op.resource);
        if !op.mode.waits() || (place.is_none() && queue::is_full(op, others)) {
            // Not counted as refused: the caller retries until the first waiter has acquired the
            // lock or left.
            if !reserved_for_waiter {
                self.record(&op.resource, Activity::Refused);
            }
            return Ok(OperationResult::Refused {
                refusal,
                waiters,
                reserved_for_waiter,
            });
        }
        if place.is_none() {
            self.join(op);
        }
        let ahead = place.map_or(waiters, |place| u32::try_from(place).unwrap_or(u32::MAX));
        Ok(OperationResult::Queued {
            refusal,
            ahead,
            is_repeated,
        })
    }

    fn request(&self, op: &AcquireOp) -> Acquire {
        Acquire {
            id: op.id,
            owner: op.owner.clone(),
            issuer: op.issuer.clone(),
            ttl: op.ttl,
            metadata: op.metadata.clone(),
            floor: self.loaded.floor,
            margin_ms: self.loaded.margin_ms,
        }
    }

    fn lease(&self, resource: &Resource, id: LeaseId) -> Option<&Lease> {
        let newest = self
            .loaded
            .resources
            .get(resource)
            .and_then(|held| held.state.lease.as_ref());
        newest
            .filter(|lease| lease.id == id)
            .or_else(|| self.loaded.old_leases.get(&id))
    }

    /// `caller`: only a lease of this principal, within this scope; `None` for a forced unlock.
    fn by_lease(
        &mut self,
        id: LeaseId,
        caller: Option<(&LeasePrincipal, &lease::Scope)>,
        command: &Command,
    ) -> Result<OperationResult, InvariantError> {
        let Some(resource) = self.loaded.lease_resources.get(&id).cloned() else {
            return Ok(OperationResult::NotFound);
        };
        if let Some((principal, scope)) = caller {
            let is_own = self
                .lease(&resource, id)
                .is_some_and(|lease| principal.owns(lease));
            if !is_own || !scope.covers(&resource.text()) {
                return Ok(OperationResult::NotFound);
            }
        }
        let result = match self.step(&resource, command)? {
            OperationResult::NotFound => self.superseded(id)?,
            result => result,
        };
        if let (Command::Renew(_), OperationResult::Lost(lease, ending)) = (command, &result) {
            let believed_ms = self.loaded.now.since(lease.acquired_at).max(0);
            let what = Activity::Lost {
                owner: lease.owner.clone(),
                token: lease.token,
                believed_ms: (ending.how != EndCause::Released).then_some(believed_ms),
            };
            self.record(&resource, what);
        }
        Ok(result)
    }

    fn record(&mut self, resource: &Resource, what: Activity) {
        self.ran.activity.push(ActivityEntry {
            resource: resource.clone(),
            what,
        });
    }

    /// A lease that is not the newest of its resource has ended; its row holds the ending.
    fn superseded(&self, id: LeaseId) -> Result<OperationResult, InvariantError> {
        let Some(lease) = self.loaded.old_leases.get(&id) else {
            return Ok(OperationResult::NotFound);
        };
        let ending = lease.ending.clone();
        let ending = ending.ok_or(InvariantError("an older lease of a resource has no ending"))?;
        Ok(OperationResult::Lost(lease.clone(), ending))
    }

    /// Runs the state machine on one resource and records its changes.
    fn step(&mut self, resource: &Resource, command: &Command) -> Result<OperationResult, InvariantError> {
        let held = self.loaded.resources.entry(resource.clone()).or_default();
        let step = transition(&held.state, command, self.loaded.now)?;
        let before = std::mem::replace(&mut held.state, step.after);
        let after = &held.state;
        let changes = &mut self.ran.changes;
        if before.last_token != after.last_token || before.locked_until != after.locked_until {
            let found = before.last_token.number();
            let entry = changes.resources.entry(resource.clone());
            entry.or_insert_with(|| (found, after.clone())).1 = after.clone();
        }
        if let Some(displaced) = step.displaced {
            if before.lease.as_ref().is_some_and(|lease| lease.ending.is_none()) {
                self.ran.expired.push(displaced.clone());
                self.ran.activity.push(end_activity(resource, &displaced));
            }
            if before.lease.as_ref() != Some(&displaced) {
                record_change(changes, resource, &displaced, false);
            }
            self.loaded.old_leases.insert(displaced.id, displaced);
        }
        let is_new = matches!(step.outcome, TransitionOutcome::Granted { .. });
        if let TransitionOutcome::Granted { lease, reclaimed } = &step.outcome {
            let what = Activity::Granted {
                ttl_ms: lease.ttl.ms(),
                reclaimed: *reclaimed,
            };
            let resource = resource.clone();
            self.ran.activity.push(ActivityEntry { resource, what });
        }
        if let Some(lease) = after
            .lease
            .as_ref()
            .filter(|lease| before.lease.as_ref() != Some(lease))
        {
            record_change(changes, resource, lease, is_new);
            self.touched.insert(resource.clone());
            if matches!(&lease.ending, Some(ending) if ending.how == EndCause::Expired) {
                self.ran.expired.push(lease.clone());
            }
            if lease.ending.is_some() {
                self.ran.activity.push(end_activity(resource, lease));
            }
        }
        if is_new {
            changes.grants += 1;
            if let Some(lease) = &after.lease {
                self.loaded.lease_resources.insert(lease.id, resource.clone());
            }
        }
        Ok(to_result(step.outcome))
    }
}

fn record_change(changes: &mut Changes, resource: &Resource, lease: &Lease, is_new: bool) {
    let lease = lease.clone();
    match changes.leases.entry(lease.id) {
        Entry::Occupied(mut entry) => entry.get_mut().lease = lease,
        Entry::Vacant(entry) => {
            let resource = resource.clone();
            entry.insert(LeaseRowChange {
                resource,
                lease,
                is_new,
            });
        }
    }
}

/// Activity for a lease that has an ending, or has expired without one.
fn end_activity(resource: &Resource, lease: &Lease) -> ActivityEntry {
    let at = lease.ending.as_ref().map_or(lease.expires_at, |ending| ending.at);
    let held_ms = at.since(lease.acquired_at).max(0);
    let what = match lease.ending.as_ref().map(|ending| &ending.how) {
        Some(EndCause::Released) => Activity::Released { held_ms },
        Some(EndCause::Revoked(_)) => Activity::Revoked { held_ms },
        Some(EndCause::Expired) | None => Activity::Expired { held_ms },
    };
    let resource = resource.clone();
    ActivityEntry { resource, what }
}

fn to_result(outcome: TransitionOutcome) -> OperationResult {
    match outcome {
        TransitionOutcome::Granted { lease, reclaimed } => OperationResult::Acquired {
            lease,
            reclaimed,
            replayed: false,
        },
        TransitionOutcome::Refused(refusal) => OperationResult::Refused {
            refusal,
            waiters: 0,
            reserved_for_waiter: false,
        },
        TransitionOutcome::Renewed(lease) => OperationResult::Renewed(lease),
        TransitionOutcome::LifetimeReached(lease) => OperationResult::LifetimeReached(lease),
        TransitionOutcome::Released(lease) => OperationResult::Released(lease),
        TransitionOutcome::Revoked(lease) => OperationResult::Revoked(lease),
        TransitionOutcome::Expired(lease) => OperationResult::Expired(lease),
        TransitionOutcome::Lost(lease, ending) => OperationResult::Lost(lease, ending),
        TransitionOutcome::NotThisLease => OperationResult::NotFound,
        TransitionOutcome::Unchanged => OperationResult::Nothing,
    }
}
