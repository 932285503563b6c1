//! One transaction of etcd for decisions on several resources.

use domain::lease::StoreTime;
use etcd_client::{KeyValue, Txn, TxnOp, TxnOpResponse, TxnResponse};
use runtime::random;

use super::EtcdStore;
use super::connection::Link;
use super::error::EtcdErrorKind;
use super::identity::run as run_txn;
use super::restore_guard::Basis;
use super::snapshot::{Snapshot, SnapshotRequest, read_results};
use super::values::{ClockValue, LeaseRecord, decode};
use super::writes::{WriteOrigin, writes};
use crate::batch::BatchResult;
use crate::store::StoreError;

/// A decision on one resource, to be written.
pub(super) struct Decision<'a> {
    pub(super) request: &'a SnapshotRequest,
    pub(super) snapshot: &'a Snapshot,
    pub(super) ran: &'a BatchResult,
}

/// Reads and writes of a transaction before the nested ones: the clock, and the writer.
const FIRST_OPERATIONS: usize = 2;

/// The outcome for one resource.
pub(super) enum Committed {
    /// At this revision.
    At(i64),
    /// The state had changed; the current state.
    Conflict(Box<Snapshot>),
    /// Read it again.
    Retry,
}

impl EtcdStore {
    /// Commits decisions on different resources. Each compares the state of its own resource; all of them compare the
    /// identity and the clock of the store.
    ///
    /// `None`: etcd refuses a transaction of all of them, and has written nothing.
    ///
    /// # Errors
    /// etcd does not answer, or refuses a transaction of one resource.
    pub(super) async fn commit(
        &self,
        link: &Link,
        decisions: &[Decision<'_>],
        (basis, now): (Basis, StoreTime),
    ) -> Result<Option<Vec<Committed>>, StoreError> {
        let retry = || Some(decisions.iter().map(|_| Committed::Retry).collect());
        let lease = self.registration.lease();
        let (txn, ids) = self.transaction(decisions, lease, (basis, now))?;
        let sent = self.guard.sent();
        let answer = match link.call(|client| run_txn(client, txn.clone())).await {
            Ok(answer) => answer,
            Err(fault) if fault.kind == EtcdErrorKind::NoLease => {
                self.registration
                    .register_again(link, &self.keys, &self.replica, lease)
                    .await?;
                return Ok(retry());
            }
            Err(fault) if fault.kind == EtcdErrorKind::Refused && decisions.len() > 1 => return Ok(None),
            Err(fault) => return Err(fault.into()),
        };
        let revision = self.guard.check(sent, answer.header());
        if !answer.succeeded() {
            let results = read_results(answer.op_responses());
            let first = |place: usize| results.get(place).and_then(|pairs: &Vec<KeyValue>| pairs.first());
            self.recover(link, self.guard.judge(first(0), first(1)), sent)
                .await?;
            return Ok(retry());
        }
        let revision = revision?;
        let mut responses = answer.op_responses();
        let nested = responses.split_off(FIRST_OPERATIONS.min(responses.len()));
        // This process may have been paused, and its clock with it: the answer then has the time of the other servers.
        if let Some(pair) = read_results(responses).into_iter().flatten().next() {
            let clock: ClockValue = decode(pair.key(), pair.value())?;
            self.store_clock.follow(clock.ms);
        }
        let mut outcomes = Vec::new();
        for ((decision, id), response) in decisions.iter().zip(&ids).zip(nested) {
            outcomes.push(match response {
                TxnOpResponse::Txn(response) if response.succeeded() => Committed::At(revision),
                // A failure to read the current state concerns one resource only: that resource is read again.
                TxnOpResponse::Txn(response) => self
                    .conflict(link, decision.request, id, &response, revision)
                    .await
                    .unwrap_or(Committed::Retry),
                _ => Committed::Retry,
            });
        }
        Ok(Some(outcomes))
    }

    /// The transaction, with the id of each nested one.
    fn transaction(
        &self,
        decisions: &[Decision<'_>],
        lease: i64,
        (basis, now): (Basis, StoreTime),
    ) -> Result<(Txn, Vec<String>), StoreError> {
        let (mut ids, mut first_rejection) = (Vec::new(), 0);
        let first: [TxnOp; FIRST_OPERATIONS] = [
            TxnOp::get(self.keys.clock(), None),
            TxnOp::put(self.keys.writer(), &*self.replica, None),
        ];
        let mut nested = Vec::from(first);
        for Decision {
            request,
            snapshot,
            ran,
        } in decisions
        {
            let id = random::id();
            let origin = WriteOrigin {
                id: &id,
                lease,
                replica: &self.replica,
                first_rejection,
            };
            let writes = writes(&self.keys, request, snapshot, ran, origin, now)?;
            first_rejection += ran.changes.rejections.len();
            let mut compares = Vec::new();
            if writes.has_state {
                compares.extend(snapshot.compare_state(&self.keys, &request.resource));
                compares.extend(snapshot.compare_keys(&self.keys));
            }
            let txn = Txn::new()
                .when(compares)
                .and_then(writes.operations)
                .or_else(request.reads(&self.keys));
            nested.push(TxnOp::txn(txn));
            ids.push(id);
        }
        let guard = [self.keys.identity(), self.keys.clock()].map(|key| TxnOp::get(key, None));
        let txn = Txn::new()
            .when(self.guard.compares(&self.keys, basis))
            .and_then(nested)
            .or_else(guard);
        Ok((txn, ids))
    }

    /// The state of a resource that had changed.
    async fn conflict(
        &self,
        link: &Link,
        request: &SnapshotRequest,
        id: &str,
        response: &TxnResponse,
        revision: i64,
    ) -> Result<Committed, StoreError> {
        let mut current = Snapshot::parse(request, read_results(response.op_responses()))?;
        if current.write.as_deref() == Some(id) {
            // Sent twice, and committed the first time.
            return Ok(Committed::At(current.held_revision.max(current.free_revision)));
        }
        self.load_bound(link, &mut current, revision).await?;
        Ok(Committed::Conflict(Box::new(current)))
    }

    pub(super) async fn read_snapshot(
        &self,
        link: &Link,
        request: &SnapshotRequest,
    ) -> Result<Snapshot, StoreError> {
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
            let record: LeaseRecord = decode(pair.key(), pair.value())?;
            if let Some(ended) = record.ended {
                let lease = ended.into_lease()?;
                snapshot.ended.insert(lease.id, lease);
            }
        }
        Ok(())
    }
}
