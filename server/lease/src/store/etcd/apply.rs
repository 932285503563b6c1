//! Applies operations. Those on one resource share one transaction, which compares the revisions of the state that it is based
//! on. If the revisions differ, it reads the state instead, and the operations are decided again. The transactions of several
//! resources are nested in one: each has comparisons and results of its own, and all share one entry of etcd's log.
//!
//! **Invariant**: no result is returned before the answer of its transaction, which follows the sync of a majority. A
//! conflict costs the operations on its resource only.

use std::collections::HashMap;

use domain::lease::{LeaseId, StoreTime};
use futures::future::{join, join_all};

use super::EtcdStore;
use super::cache_updates::Written;
use super::commit::{Committed, Decision};
use super::connection::{Link, with_timeout};
use super::restore_guard::Basis;
use super::snapshot::{Snapshot, SnapshotRequest};
use super::transaction_plan::{ResourceGroup, plan_transactions};
use super::writes::RESOURCES_MAX;
use crate::batch::{BatchResult, Loaded, run};
use crate::operation::{Applied, Operation, OperationResult};
use crate::store::StoreError;

const CONFLICTS_MAX: usize = 16;
/// A decision of this age is as good as one made now. Milliseconds.
const DECISION_AGE_MS_MAX: i64 = 250;

/// Operations on one resource until they are committed.
struct Pending {
    request: SnapshotRequest,
    operations: Vec<Operation>,
    /// State that the decision is based on; `None`: it has to be read.
    snapshot: Option<Snapshot>,
    /// The snapshot is from memory: a decision that writes nothing is not compared with the store, and must be made again on a
    /// read.
    is_remembered: bool,
    ran: Option<BatchResult>,
    done: Option<Result<BatchResult, StoreError>>,
}

impl Pending {
    fn new(group: &ResourceGroup<'_>) -> Self {
        Self {
            request: SnapshotRequest::new(group.resource.clone(), &group.operations),
            operations: group.operations.iter().map(|it| (*it).clone()).collect(),
            snapshot: None,
            is_remembered: false,
            ran: None,
            done: None,
        }
    }

    fn decision(&self) -> Option<Decision<'_>> {
        let (snapshot, ran) = (self.snapshot.as_ref()?, self.ran.as_ref()?);
        Some(Decision {
            request: &self.request,
            snapshot,
            ran,
        })
    }
}

impl EtcdStore {
    pub(super) async fn write(&self, link: &Link, operations: &[Operation]) -> Result<Applied, StoreError> {
        if self.store_clock.is_suspect() {
            match self.publish_time(link).await {
                Ok(()) | Err(StoreError::Conflict) => {}
                Err(error) => return Err(error),
            }
        }
        let start = self.store_clock.read();
        let lease_resources = self.locate(link, operations).await?;
        let rounds = plan_transactions(operations, &lease_resources);
        let mut applied = Applied {
            now: start.now,
            read_at: start.read_at,
            done: vec![OperationResult::NotFound; operations.len()],
            heads: Vec::new(),
            changed: Vec::new(),
            held: Vec::new(),
            expired: Vec::new(),
            activity: Vec::new(),
        };
        let mut failures = Vec::new();
        let mut groups_total = 0;
        for groups in &rounds {
            groups_total += groups.len();
            let writes = groups
                .chunks(RESOURCES_MAX)
                .map(|groups| self.write_groups(link, groups, start.now));
            let written = join_all(writes).await.into_iter().flatten();
            for (group, written) in groups.iter().zip(written) {
                match written {
                    Ok(result) => merge(&mut applied, group, result),
                    Err(error) => {
                        for position in &group.positions {
                            applied.done[*position] = OperationResult::Failed;
                        }
                        failures.push(error);
                    }
                }
            }
        }
        if failures.len() == groups_total && groups_total > 0 {
            // A conflict is repeated, which must not happen while the outcome of another group is unknown.
            let is_unknown = |error: &StoreError| !matches!(error, StoreError::Conflict);
            let place = failures.iter().position(is_unknown).unwrap_or(0);
            return Err(failures.swap_remove(place));
        }
        for error in &failures {
            tracing::warn!(%error, "an operation of a batch failed: {error}");
        }
        // A clock that followed another one meanwhile shows a later time for the same moment.
        applied.now = self.store_clock.reread(start).now;
        Ok(applied)
    }

    /// Groups that share transactions; the results in their order.
    async fn write_groups(
        &self,
        link: &Link,
        groups: &[ResourceGroup<'_>],
        start: StoreTime,
    ) -> Vec<Result<BatchResult, StoreError>> {
        let mut entries: Vec<Pending> = groups.iter().map(Pending::new).collect();
        let basis = {
            let mut cache = self.cache.lock();
            for pending in &mut entries {
                pending.snapshot = cache.take(&pending.request);
                pending.is_remembered = pending.snapshot.is_some();
            }
            self.guard.basis()
        };
        // Those that must be read first do not delay the others.
        let (known, unknown): (Vec<_>, Vec<_>) = entries.iter_mut().partition(|entry| entry.is_remembered);
        join(
            self.write_in_time(link, known, (basis, start)),
            self.write_in_time(link, unknown, (basis, start)),
        )
        .await;
        entries
            .into_iter()
            .map(|pending| pending.done.unwrap_or(Err(StoreError::Conflict)))
            .collect()
    }

    /// Leaves a result in each entry.
    async fn write_in_time(
        &self,
        link: &Link,
        mut open: Vec<&mut Pending>,
        (basis, start): (Basis, StoreTime),
    ) {
        let written = with_timeout(self.write_pending(link, &mut open, (basis, start))).await;
        if let Err(error) = written {
            for pending in open {
                pending.done.get_or_insert_with(|| Err(repeated(&error)));
            }
        }
    }

    /// # Errors
    /// `Conflict` after [`CONFLICTS_MAX`] attempts. The error of a transaction is in `done` of its groups.
    async fn write_pending(
        &self,
        link: &Link,
        open: &mut Vec<&mut Pending>,
        (mut basis, start): (Basis, StoreTime),
    ) -> Result<(), StoreError> {
        let mut now = start;
        let mut is_shared = true;
        for _ in 0..CONFLICTS_MAX {
            self.load(link, open).await;
            for pending in open.iter_mut() {
                self.decide(pending, (basis, now));
            }
            is_shared &= self.commit_decided(link, open, is_shared, (basis, now)).await;
            open.retain(|pending| pending.done.is_none());
            if open.is_empty() {
                return Ok(());
            }
            if !self.guard.is_current(basis) {
                // What was read before may be of the epoch before.
                basis = self.guard.basis();
                for pending in open.iter_mut() {
                    pending.snapshot = None;
                }
            }
            let current = self.store_clock.read().now;
            if current.since(now) > DECISION_AGE_MS_MAX {
                now = current;
            }
        }
        Err(StoreError::Conflict)
    }

    fn decide(&self, pending: &mut Pending, (basis, now): (Basis, StoreTime)) {
        let Some(snapshot) = pending.snapshot.as_ref().filter(|_| pending.done.is_none()) else {
            return;
        };
        let loaded = self.loaded(&pending.request, snapshot, (basis, now));
        match run(loaded, &pending.operations, &self.replica) {
            Ok(ran) if !ran.changes.is_empty() => pending.ran = Some(ran),
            // Decided again on a read.
            Ok(_) if pending.is_remembered => pending.snapshot = None,
            Ok(ran) => {
                self.register_queued(&pending.operations, snapshot);
                self.remember(&pending.request, snapshot, basis);
                pending.done = Some(Ok(ran));
            }
            Err(error) => pending.done = Some(Err(error.into())),
        }
        pending.is_remembered = false;
    }

    /// Commits what was decided, in one transaction if it is `shared`. Returns whether later ones may be shared too.
    async fn commit_decided(
        &self,
        link: &Link,
        open: &mut [&mut Pending],
        shared: bool,
        (basis, now): (Basis, StoreTime),
    ) -> bool {
        let mut decided: Vec<&mut Pending> = open
            .iter_mut()
            .filter(|pending| pending.ran.is_some())
            .map(|pending| &mut **pending)
            .collect();
        let size = if shared { RESOURCES_MAX } else { 1 };
        let commits = decided
            .chunks_mut(size)
            .map(|pending| self.commit_pending(link, pending, (basis, now)));
        join_all(commits).await.into_iter().all(|is_accepted| is_accepted)
    }

    /// Returns whether etcd accepts a transaction of this size.
    async fn commit_pending(
        &self,
        link: &Link,
        pending: &mut [&mut Pending],
        (basis, now): (Basis, StoreTime),
    ) -> bool {
        let decisions = pending.iter().filter_map(|it| it.decision()).collect::<Vec<_>>();
        let registered = self.registration.lease();
        let committed = self.commit(link, &decisions, (basis, now)).await;
        drop(decisions);
        let committed = match committed {
            Ok(Some(committed)) => committed,
            Ok(None) => {
                for pending in pending {
                    pending.ran = None;
                }
                return false;
            }
            Err(error) => {
                for pending in pending {
                    pending.done = Some(Err(repeated(&error)));
                }
                return true;
            }
        };
        for (pending, committed) in pending.iter_mut().zip(committed) {
            let (Some(snapshot), Some(ran)) = (pending.snapshot.take(), pending.ran.take()) else {
                continue;
            };
            match committed {
                Committed::At(revision) => {
                    let written = Written {
                        revision,
                        registered,
                        basis,
                    };
                    self.remember_written(&pending.request, &snapshot, &ran, written);
                    pending.done = Some(Ok(ran));
                }
                Committed::Conflict(current) => pending.snapshot = Some(*current),
                Committed::Retry => {}
            }
        }
        true
    }

    /// Reads the resources of which nothing is known, each by a transaction of its own.
    async fn load(&self, link: &Link, open: &mut [&mut Pending]) {
        let missing = open.iter_mut().filter(|pending| pending.snapshot.is_none());
        let loads = missing.map(|pending| async move {
            match self.read_snapshot(link, &pending.request).await {
                Ok(snapshot) => pending.snapshot = Some(snapshot),
                Err(error) => pending.done = Some(Err(error)),
            }
        });
        join_all(loads).await;
    }

    fn loaded(
        &self,
        request: &SnapshotRequest,
        snapshot: &Snapshot,
        (basis, now): (Basis, StoreTime),
    ) -> Loaded {
        let held = snapshot.held.clone();
        let newest = held.state.lease.as_ref().map(|lease| lease.id);
        let known = |id: &LeaseId| Some(*id) == newest || snapshot.ended.contains_key(id);
        let lease_resources = request.leases.iter().filter(|id| known(id));
        Loaded {
            now,
            floor: basis.token_floor,
            margin_ms: self.margin_ms,
            lease_resources: lease_resources
                .map(|id| (*id, request.resource.clone()))
                .collect(),
            resources: HashMap::from([(request.resource.clone(), held)]),
            old_leases: snapshot.ended.clone(),
            keys: snapshot.bound.clone(),
        }
    }
}

/// The same failure for another resource.
fn repeated(error: &StoreError) -> StoreError {
    match error {
        StoreError::NoAnswer(after_ms) => StoreError::NoAnswer(*after_ms),
        StoreError::Conflict => StoreError::Conflict,
        StoreError::Rewound(why) => StoreError::Rewound(why.clone()),
        StoreError::Etcd(why) => StoreError::Etcd(why.clone()),
        other => StoreError::Etcd(other.to_string()),
    }
}

fn merge(applied: &mut Applied, group: &ResourceGroup<'_>, result: BatchResult) {
    let part = result.applied(applied.now, applied.read_at);
    for (done, position) in part.done.into_iter().zip(&group.positions) {
        applied.done[*position] = done;
    }
    applied.heads.extend(part.heads);
    applied.changed.extend(part.changed);
    applied.held.extend(part.held);
    applied.expired.extend(part.expired);
    applied.activity.extend(part.activity);
}
