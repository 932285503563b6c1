//! Runs a batch of operations over what a store has loaded and locked: the same code for every store.
//!
//! Pure: loaded state in, answers and changes out. **Invariant:** each store writes these [`Changes`] only while the state they
//! were decided on still stands, held by the transaction that writes, and no answer leaves before it has committed.

mod changes;
mod keys;
mod line;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use domain::lease::invariants::Broken;
use domain::lease::{self, Acquire, Command, How, Lease, LeaseId, Outcome, Renew, Revoke, StoreTime, decide};
use domain::names::Resource;
use domain::observation::Tick;
use hashbrown::hash_map::Entry;

use super::caller::LeasePrincipal;
use super::operation::{AcquireOp, Applied, Done, Head, Operation, Turn};
use super::tally::{Tallied, What};

pub use changes::{ByLease, Changes, Held, Joined, KeyRow, LeaseChange, Loaded, Standing};

/// A batch that was run and waits to be written.
#[derive(Debug, Default)]
pub struct Ran {
    pub done: Vec<Done>,
    pub changes: Changes,
    pub heads: Vec<Head>,
    pub changed: Vec<Resource>,
    /// Leases that time had ended, written down by this batch.
    pub expired: Vec<Lease>,
    /// What was done to which resource.
    pub tally: Vec<Tallied>,
    /// Every resource that was loaded, as it is once the changes are written.
    pub after: HashMap<Resource, Held>,
}

impl Ran {
    /// Once it is written.
    pub fn applied(self, now: StoreTime, read_at: Tick) -> Applied {
        Applied {
            now,
            read_at,
            done: self.done,
            heads: self.heads,
            changed: self.changed,
            expired: self.expired,
            tally: self.tally,
        }
    }
}

/// # Errors
/// [`Broken`] when an operation would break a promise: the transaction must be rolled back.
pub fn run(loaded: Loaded, operations: &[Operation], replica: &Arc<str>) -> Result<Ran, Broken> {
    let mut run = Run {
        loaded,
        replica,
        ran: Ran::default(),
        touched: HashSet::with_capacity(operations.len()),
    };
    run.make_room(operations.len());
    for operation in operations {
        let done = run.one(operation)?;
        run.ran.done.push(done);
    }
    run.name_heads();
    run.ran.changed = run.touched.into_iter().collect();
    run.ran.after = run.loaded.resources;
    Ok(run.ran)
}

struct Run<'a> {
    loaded: Loaded,
    replica: &'a Arc<str>,
    ran: Ran,
    touched: HashSet<Resource>,
}

impl Run<'_> {
    /// For what so many operations usually leave behind, at once and not in steps.
    fn make_room(&mut self, operations: usize) {
        self.ran.done.reserve(operations);
        self.ran.tally.reserve(operations);
        self.ran.changes.resources.reserve(operations);
        self.ran.changes.leases.reserve(operations);
    }

    fn one(&mut self, operation: &Operation) -> Result<Done, Broken> {
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
                let release = Command::Release { lease: *lease };
                let done = self.by_lease(*lease, Some((principal, scope)), &release)?;
                self.ran.changes.unbound.extend(unbind.clone());
                Ok(done)
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
            Operation::Reject(rejection) => {
                self.ran.changes.rejections.push((**rejection).clone());
                // Whether two owners act as its holders is part of what readers of the resource see.
                self.touched.insert(rejection.resource.clone());
                let what = What::Rejected {
                    owner: rejection.owner.clone(),
                    token: rejection.token,
                };
                self.tally(&rejection.resource, what);
                Ok(Done::Nothing)
            }
        }
    }

    fn acquire(&mut self, op: &AcquireOp) -> Result<Done, Broken> {
        if let Some(key) = &op.key
            && let Some(done) = self.replay(key, op)?
        {
            return Ok(done);
        }
        let now = self.loaded.now;
        let held = self.loaded.resources.entry(op.resource.clone()).or_default();
        let place = held.queue.iter().position(|standing| standing.waiter == op.id);
        let my_turn = place.map_or(held.queue.is_empty(), |place| place == 0);
        if my_turn && lease::decide::is_free(&held.state, now) {
            let done = self.step(&op.resource, &Command::Acquire(self.request(op)))?;
            if place.is_some() {
                self.remove(&op.resource, op.id);
            }
            if let (Some(key), Done::Acquired { lease, .. }) = (&op.key, &done) {
                self.bind(key, Some(lease.id));
            }
            return Ok(done);
        }
        let refusal = lease::decide::refusal(&held.state, now);
        let turn_of_others = lease::decide::is_free(&held.state, now);
        let others = held.queue.len() - usize::from(place.is_some());
        let waiters = u32::try_from(others).unwrap_or(u32::MAX);
        self.touched_line(&op.resource);
        if op.turn == Turn::Once {
            // Somebody else's turn is over in a moment, and then it is asked for again.
            if !turn_of_others {
                self.tally(&op.resource, What::Refused);
            }
            return Ok(Done::Refused {
                refusal,
                waiters,
                turn_of_others,
            });
        }
        if place.is_none() {
            self.join(op);
        }
        let ahead = place.map_or(waiters, |place| u32::try_from(place).unwrap_or(u32::MAX));
        Ok(Done::Queued { refusal, ahead })
    }

    fn request(&self, op: &AcquireOp) -> Acquire {
        Acquire {
            id: op.id,
            owner: op.owner.clone(),
            issuer: op.issuer.clone(),
            ttl: op.ttl,
            metadata: op.metadata.clone(),
            floor: self.loaded.floor,
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

    /// `caller`: only a lease of this principal, within this scope; none for a forced unlock.
    fn by_lease(
        &mut self,
        id: LeaseId,
        caller: Option<(&LeasePrincipal, &lease::Scope)>,
        command: &Command,
    ) -> Result<Done, Broken> {
        let Some(resource) = self.loaded.homes.get(&id).cloned() else {
            return Ok(Done::NotFound);
        };
        if let Some((principal, scope)) = caller {
            let is_own = self
                .lease(&resource, id)
                .is_some_and(|lease| principal.owns(lease));
            if !is_own || !scope.covers(&resource.text()) {
                return Ok(Done::NotFound);
            }
        }
        let done = match self.step(&resource, command)? {
            Done::NotFound => self.superseded(id)?,
            done => done,
        };
        if let (Command::Renew(_), Done::Lost(lease, ending)) = (command, &done) {
            let believed_ms = self.loaded.now.since(lease.acquired_at).max(0);
            let what = What::Lost {
                owner: lease.owner.clone(),
                token: lease.token,
                believed_ms: (ending.how != How::Released).then_some(believed_ms),
            };
            self.tally(&resource, what);
        }
        Ok(done)
    }

    fn tally(&mut self, resource: &Resource, what: What) {
        self.ran.tally.push(Tallied {
            resource: resource.clone(),
            what,
        });
    }

    /// A lease that is not its resource's newest has ended: its row says how.
    fn superseded(&self, id: LeaseId) -> Result<Done, Broken> {
        let Some(lease) = self.loaded.old_leases.get(&id) else {
            return Ok(Done::NotFound);
        };
        let ending = lease.ending.clone();
        let ending = ending.ok_or(Broken("an older lease of a resource has no ending"))?;
        Ok(Done::Lost(lease.clone(), ending))
    }

    /// Runs the state machine on one resource and notes what it changed.
    fn step(&mut self, resource: &Resource, command: &Command) -> Result<Done, Broken> {
        let held = self.loaded.resources.entry(resource.clone()).or_default();
        let step = decide(&held.state, command, self.loaded.now)?;
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
                self.ran.tally.push(ended(resource, &displaced));
            }
            if before.lease.as_ref() != Some(&displaced) {
                note(changes, resource, &displaced, false);
            }
            self.loaded.old_leases.insert(displaced.id, displaced);
        }
        let is_new = matches!(step.outcome, Outcome::Granted { .. });
        if let Outcome::Granted { lease, reclaimed } = &step.outcome {
            let what = What::Granted {
                ttl_ms: lease.ttl.ms(),
                reclaimed: *reclaimed,
            };
            let resource = resource.clone();
            self.ran.tally.push(Tallied { resource, what });
        }
        if let Some(lease) = after
            .lease
            .as_ref()
            .filter(|lease| before.lease.as_ref() != Some(lease))
        {
            note(changes, resource, lease, is_new);
            self.touched.insert(resource.clone());
            if matches!(&lease.ending, Some(ending) if ending.how == How::Expired) {
                self.ran.expired.push(lease.clone());
            }
            if lease.ending.is_some() {
                self.ran.tally.push(ended(resource, lease));
            }
        }
        if is_new {
            changes.grants += 1;
            if let Some(lease) = &after.lease {
                self.loaded.homes.insert(lease.id, resource.clone());
            }
        }
        Ok(answer(step.outcome))
    }
}

fn note(changes: &mut Changes, resource: &Resource, lease: &Lease, is_new: bool) {
    let lease = lease.clone();
    match changes.leases.entry(lease.id) {
        Entry::Occupied(mut entry) => entry.get_mut().lease = lease,
        Entry::Vacant(entry) => {
            let resource = resource.clone();
            entry.insert(LeaseChange {
                resource,
                lease,
                is_new,
            });
        }
    }
}

/// A lease that has its ending, or that time has ended.
fn ended(resource: &Resource, lease: &Lease) -> Tallied {
    let at = lease.ending.as_ref().map_or(lease.expires_at, |ending| ending.at);
    let held_ms = at.since(lease.acquired_at).max(0);
    let what = match lease.ending.as_ref().map(|ending| &ending.how) {
        Some(How::Released) => What::Released { held_ms },
        Some(How::Revoked(_)) => What::Revoked { held_ms },
        Some(How::Expired) | None => What::Expired { held_ms },
    };
    let resource = resource.clone();
    Tallied { resource, what }
}

fn answer(outcome: Outcome) -> Done {
    match outcome {
        Outcome::Granted { lease, reclaimed } => Done::Acquired {
            lease,
            reclaimed,
            replayed: false,
        },
        Outcome::Refused(refusal) => Done::Refused {
            refusal,
            waiters: 0,
            turn_of_others: false,
        },
        Outcome::Renewed(lease) => Done::Renewed(lease),
        Outcome::LifetimeReached(lease) => Done::LifetimeReached(lease),
        Outcome::Released(lease) => Done::Released(lease),
        Outcome::Revoked(lease) => Done::Revoked(lease),
        Outcome::Expired(lease) => Done::Expired(lease),
        Outcome::Lost(lease, ending) => Done::Lost(lease, ending),
        Outcome::NotThisLease => Done::NotFound,
        Outcome::Unchanged => Done::Nothing,
    }
}
