//! How operations are applied: those on one resource in one transaction, all transactions of a batch at the same time.
//! A transaction compares the revisions of the state that it is based on; if they differ it reads the state instead, and
//! is decided again.
//!
//! **Invariant**: no result is returned before the answer of its transaction, which follows the sync of a majority. A
//! failed transaction fails its own operations only.

use std::collections::HashMap;

use domain::lease::LeaseId;
use domain::names::Resource;
use etcd_client::{KeyValue, Txn, TxnOp};
use futures::future::join_all;
use runtime::random;

use super::EtcdStore;
use super::connection::{Link, with_timeout};
use super::fault::FaultKind;
use super::guard::GuardVerdict;
use super::identity::run as run_txn;
use super::snapshot::{Snapshot, SnapshotRequest, read_results};
use super::store_clock::{StoreReading, lock_for_margin};
use super::values::{LeaseHome, decode};
use super::waves::{Group, group_by_resource};
use super::writes::{RESOURCE_OPERATIONS_MAX, writes};
use crate::batch::{BatchResult, Loaded, run};
use crate::operation::{Applied, Operation, OperationResult};
use crate::store::StoreError;

const CONFLICTS_MAX: usize = 16;
/// A decision of this age is as good as one made now. Milliseconds.
const DECISION_AGE_MS_MAX: i64 = 250;
/// Reads of one transaction; etcd allows 128 operations.
const READS_MAX: usize = 100;

/// Result of a transaction.
enum Committed {
    At(i64),
    /// The state had changed: as it is now.
    Conflict(Box<Snapshot>),
    /// Read it again.
    Retry,
}

impl EtcdStore {
    pub(super) async fn write(&self, link: &Link, operations: &[Operation]) -> Result<Applied, StoreError> {
        if self.store_clock.is_suspect() {
            match self.publish_time(link).await {
                Ok(()) | Err(StoreError::Conflict) => {}
                Err(error) => return Err(error),
            }
        }
        let began = self.store_clock.read();
        let homes = self.locate(link, operations).await?;
        let waves = group_by_resource(operations, &homes);
        let mut applied = Applied {
            now: began.now,
            read_at: began.read_at,
            done: vec![OperationResult::NotFound; operations.len()],
            heads: Vec::new(),
            changed: Vec::new(),
            expired: Vec::new(),
            activity: Vec::new(),
        };
        let mut failures = Vec::new();
        let mut groups_total = 0;
        for groups in &waves {
            groups_total += groups.len();
            let writes = groups
                .iter()
                .map(|group| with_timeout(self.write_group(link, group, began)));
            for (group, written) in groups.iter().zip(join_all(writes).await) {
                match written {
                    Ok(results) => merge(&mut applied, group, results),
                    Err(error) => {
                        for place in &group.places {
                            applied.done[*place] = OperationResult::Failed;
                        }
                        failures.push(error);
                    }
                }
            }
        }
        if failures.len() == groups_total
            && let Some(error) = failures.pop()
        {
            return Err(error);
        }
        for error in &failures {
            tracing::warn!(%error, "an operation of a batch failed: {error}");
        }
        // A clock that followed another one meanwhile shows a later time for the same moment.
        applied.now = self.store_clock.reread(began).now;
        Ok(applied)
    }

    /// The resources of the leases that operations name.
    async fn locate(
        &self,
        link: &Link,
        operations: &[Operation],
    ) -> Result<HashMap<LeaseId, Resource>, StoreError> {
        let mut homes = HashMap::new();
        let mut missing = Vec::new();
        {
            let memory = self.cache.lock();
            for operation in operations {
                if let Some(id) = lease_of(operation) {
                    match memory.home(id) {
                        Some(home) => drop(homes.insert(id, home)),
                        None => missing.push(id),
                    }
                }
            }
        }
        missing.sort_unstable();
        missing.dedup();
        for ids in missing.chunks(READS_MAX) {
            let reads: Vec<TxnOp> = ids
                .iter()
                .map(|id| TxnOp::get(self.keys.lease(*id), None))
                .collect();
            let (_, results) = self.read(link, reads).await?;
            for (id, pairs) in ids.iter().zip(results) {
                if let Some(pair) = pairs.first() {
                    let home: LeaseHome = decode(pair.key(), pair.value())?;
                    homes.insert(*id, super::values::resource(&home.resource));
                }
            }
        }
        let mut memory = self.cache.lock();
        for (id, home) in &homes {
            memory.put_home(*id, home.clone());
        }
        Ok(homes)
    }

    async fn write_group(
        &self,
        link: &Link,
        group: &Group<'_>,
        began: StoreReading,
    ) -> Result<Vec<BatchResult>, StoreError> {
        let mut results = Vec::new();
        for operations in group.operations.chunks(RESOURCE_OPERATIONS_MAX) {
            results.push(
                self.write_resource(link, &group.resource, operations, began)
                    .await?,
            );
        }
        Ok(results)
    }

    async fn write_resource(
        &self,
        link: &Link,
        resource: &Resource,
        operations: &[&Operation],
        began: StoreReading,
    ) -> Result<BatchResult, StoreError> {
        let request = SnapshotRequest::new(resource.clone(), operations);
        let owned: Vec<Operation> = operations.iter().map(|it| (*it).clone()).collect();
        let mut remembered = self.cache.lock().take(&request);
        let mut known = None;
        let mut now = began.now;
        for _ in 0..CONFLICTS_MAX {
            let is_remembered = remembered.is_some();
            let snapshot = match remembered.take().or_else(|| known.take()) {
                Some(snapshot) => snapshot,
                None => self.load(link, &request).await?,
            };
            let ran = run(self.loaded(&request, &snapshot, now), &owned, &self.replica)?;
            if ran.changes.is_empty() {
                if is_remembered {
                    // Nothing compares it with the store: decided again on a read.
                    continue;
                }
                self.remember(&request, &snapshot);
                return Ok(ran);
            }
            match self.commit(link, &request, &snapshot, &ran, now).await? {
                Committed::At(revision) => {
                    self.remember_written(&request, &snapshot, &ran, revision);
                    return Ok(ran);
                }
                Committed::Conflict(current) => known = Some(*current),
                Committed::Retry => {}
            }
            let current = self.store_clock.read().now;
            if current.since(now) > DECISION_AGE_MS_MAX {
                now = current;
            }
        }
        Err(StoreError::Conflict)
    }

    fn loaded(
        &self,
        request: &SnapshotRequest,
        snapshot: &Snapshot,
        now: domain::lease::StoreTime,
    ) -> Loaded {
        let mut held = snapshot.held.clone();
        lock_for_margin(&mut held.state, now, self.margin_ms);
        let newest = held.state.lease.as_ref().map(|lease| lease.id);
        let known = |id: &LeaseId| Some(*id) == newest || snapshot.ended.contains_key(id);
        let homes = request.leases.iter().filter(|id| known(id));
        Loaded {
            now,
            floor: self.guard.token_floor(),
            homes: homes.map(|id| (*id, request.resource.clone())).collect(),
            resources: HashMap::from([(request.resource.clone(), held)]),
            old_leases: snapshot.ended.clone(),
            keys: snapshot.bound.clone(),
        }
    }

    async fn load(&self, link: &Link, request: &SnapshotRequest) -> Result<Snapshot, StoreError> {
        let (revision, results) = self.read(link, request.reads(&self.keys)).await?;
        let mut snapshot = Snapshot::parse(request, results)?;
        self.load_bound(link, &mut snapshot, revision).await?;
        Ok(snapshot)
    }

    /// Adds the ended leases that idempotency keys name.
    async fn load_bound(
        &self,
        link: &Link,
        snapshot: &mut Snapshot,
        revision: i64,
    ) -> Result<(), StoreError> {
        let missing = snapshot.missing_leases();
        if missing.is_empty() {
            return Ok(());
        }
        let options = || Some(etcd_client::GetOptions::new().with_revision(revision));
        let reads = missing
            .iter()
            .map(|id| TxnOp::get(self.keys.lease(*id), options()));
        let (_, results) = self.read(link, reads.collect()).await?;
        for pair in results.iter().flatten() {
            let home: LeaseHome = decode(pair.key(), pair.value())?;
            if let Some(ended) = home.ended {
                let lease = ended.into_lease()?;
                snapshot.ended.insert(lease.id, lease);
            }
        }
        Ok(())
    }

    async fn commit(
        &self,
        link: &Link,
        request: &SnapshotRequest,
        snapshot: &Snapshot,
        ran: &BatchResult,
        now: domain::lease::StoreTime,
    ) -> Result<Committed, StoreError> {
        let write = random::id();
        let lease = self.registration.lease();
        let writes = writes(
            &self.keys,
            request,
            snapshot,
            ran,
            (&write, lease, &self.replica),
            now,
        )?;
        let mut compares = self.guard.compares(&self.keys);
        if writes.has_state {
            compares.extend(snapshot.compare_state(&self.keys, &request.resource));
            compares.extend(snapshot.compare_keys(&self.keys));
        }
        let mut reads = vec![
            TxnOp::get(self.keys.identity(), None),
            TxnOp::get(self.keys.clock(), None),
        ];
        reads.extend(request.reads(&self.keys));
        let txn = Txn::new()
            .when(compares)
            .and_then(writes.operations)
            .or_else(reads);
        let sent = self.guard.sent();
        let answer = match link.call(|client| run_txn(client, txn.clone())).await {
            Ok(answer) => answer,
            Err(fault) if fault.kind == FaultKind::NoLease => {
                self.registration
                    .register_again(link, &self.keys, &self.replica, lease)
                    .await?;
                return Ok(Committed::Retry);
            }
            Err(fault) => return Err(fault.into()),
        };
        let revision = self.guard.check(sent, answer.header());
        if answer.succeeded() {
            return revision.map(Committed::At);
        }
        let mut results = read_results(answer.op_responses()).into_iter();
        let (identity, clock) = (
            results.next().unwrap_or_default(),
            results.next().unwrap_or_default(),
        );
        let first = |pairs: &Vec<KeyValue>| pairs.first().cloned();
        match self
            .guard
            .judge(first(&identity).as_ref(), first(&clock).as_ref())
        {
            GuardVerdict::Holds => {}
            verdict => {
                self.recover(link, verdict, sent).await?;
                return Ok(Committed::Retry);
            }
        }
        let revision = revision?;
        let mut current = Snapshot::parse(request, results)?;
        if current.write.as_ref() == Some(&write) {
            // Sent twice, and committed the first time.
            return Ok(Committed::At(current.held_revision.max(current.free_revision)));
        }
        self.load_bound(link, &mut current, revision).await?;
        Ok(Committed::Conflict(Box::new(current)))
    }

    fn remember(&self, request: &SnapshotRequest, snapshot: &Snapshot) {
        if snapshot.held.queue.is_empty() && snapshot.held_revision.max(snapshot.free_revision) > 0 {
            let state = snapshot.held.state.clone();
            let revisions = (snapshot.held_revision, snapshot.free_revision);
            self.cache
                .lock()
                .put(request.resource.clone(), state, revisions.0, revisions.1);
        }
    }

    fn remember_written(
        &self,
        request: &SnapshotRequest,
        snapshot: &Snapshot,
        ran: &BatchResult,
        revision: i64,
    ) {
        self.remember_revision(revision);
        for joined in &ran.changes.joined {
            self.registration.join(&joined.resource, joined.waiter);
        }
        for waiter in &ran.changes.left {
            self.registration.leave(&request.resource, *waiter);
        }
        let mut memory = self.cache.lock();
        for change in ran.changes.leases.values().filter(|change| change.is_new) {
            memory.put_home(change.lease.id, change.resource.clone());
        }
        let only_rejections = ran.changes.leases.is_empty() && ran.changes.resources.is_empty();
        let Some(after) = ran.after.get(&request.resource) else {
            return;
        };
        if !after.queue.is_empty() || !snapshot.held.queue.is_empty() || only_rejections {
            return;
        }
        let is_held = after
            .state
            .lease
            .as_ref()
            .is_some_and(|lease| lease.ending.is_none());
        let revisions = if is_held { (revision, 0) } else { (0, revision) };
        memory.put(
            request.resource.clone(),
            after.state.clone(),
            revisions.0,
            revisions.1,
        );
    }
}

fn lease_of(operation: &Operation) -> Option<LeaseId> {
    match operation {
        Operation::Renew { lease, .. }
        | Operation::Release { lease, .. }
        | Operation::Revoke { lease, .. } => Some(*lease),
        _ => None,
    }
}

fn merge(applied: &mut Applied, group: &Group<'_>, results: Vec<BatchResult>) {
    let mut places = group.places.iter();
    for result in results {
        for (done, place) in result.done.into_iter().zip(&mut places) {
            applied.done[*place] = done;
        }
        applied.heads.extend(result.heads);
        applied.changed.extend(result.changed);
        applied.expired.extend(result.expired);
        applied.activity.extend(result.activity);
    }
}
