//! Linearizable reads: resources, leases, lists of held leases, queues.

use domain::lease::scope::NameRange;
use domain::lease::{self, Lease, LeaseId, StoreTime};
use domain::names::{OwnerId, Resource};
use etcd_client::{GetOptions, KeyValue, SortOrder, SortTarget, Txn, TxnOp, TxnOpResponse};

use super::EtcdStore;
use super::connection::Link;
use super::identity::{PAGE, run};
use super::keys::KeyRange;
use super::snapshot::{Snapshot, SnapshotRequest, get_range, parse_queue, read_results, replica};
use super::store_clock::StoreReading;
use super::values::{LeaseRecord, StateValue, WaiterValue, decode};
use crate::operation::QueueHead;
use crate::store::{HeldRow, Read, ResourceView, StoreError, WaiterView};

/// Time for one search for expired leases: the next one continues where it ended.
const SEARCH_MS_MAX: i64 = 700;
/// Names of one transaction with three reads each.
const NAMES_MAX: usize = 40;
/// Waiters that a list shows of each lock.
const QUEUE_SHOWN: usize = 32;
/// Queues of one transaction, each with [`QUEUE_SHOWN`] waiters below 1 KiB: gRPC limits an answer to 4 MiB.
const QUEUES_MAX: usize = 100;

/// A held lease with its resource.
type Held = (Resource, Lease);

impl EtcdStore {
    /// Runs a transaction of reads; returns its revision, and the pairs of each.
    ///
    /// # Errors
    /// etcd does not answer; `Rewound`.
    pub(super) async fn read(
        &self,
        link: &Link,
        reads: Vec<TxnOp>,
    ) -> Result<(i64, Vec<Vec<KeyValue>>), StoreError> {
        let (revision, responses) = self.read_responses(link, reads).await?;
        Ok((revision, read_results(responses)))
    }

    async fn read_responses(
        &self,
        link: &Link,
        reads: Vec<TxnOp>,
    ) -> Result<(i64, Vec<TxnOpResponse>), StoreError> {
        let txn = Txn::new().and_then(reads);
        let sent = self.guard.sent();
        let answer = link.call(|client| run(client, txn.clone())).await?;
        let revision = self.guard.check(sent, answer.header())?;
        Ok((revision, answer.op_responses()))
    }

    fn answer<T>(&self, reading: StoreReading, value: T) -> Read<T> {
        let StoreReading { now, read_at } = self.store_clock.reread(reading);
        Read { now, read_at, value }
    }

    pub(super) async fn read_resource(&self, resource: &Resource) -> Result<Read<ResourceView>, StoreError> {
        let reading = self.store_clock.read();
        let request = SnapshotRequest::new(resource.clone(), &[]);
        let (_, results) = self.read(&self.readers, request.reads(&self.keys)).await?;
        let queue = results.get(2).map(|pairs| parse_queue(pairs)).transpose()?;
        let snapshot = Snapshot::parse(&request, results)?;
        let view = ResourceView {
            state: snapshot.held.state,
            waiters: queue
                .into_iter()
                .flatten()
                .map(|(_, _, value)| waiter(value))
                .collect(),
        };
        Ok(self.answer(reading, view))
    }

    pub(super) async fn read_leases(
        &self,
        ids: &[LeaseId],
    ) -> Result<Read<Vec<(Resource, Lease)>>, StoreError> {
        let reading = self.store_clock.read();
        let mut found = Vec::with_capacity(ids.len());
        for ids in ids.chunks(NAMES_MAX * 2) {
            let reads = ids.iter().map(|id| TxnOp::get(self.keys.lease(*id), None));
            let (revision, results) = self.read(&self.readers, reads.collect()).await?;
            let mut live = Vec::new();
            for (id, pairs) in ids.iter().zip(results) {
                let Some(pair) = pairs.first() else { continue };
                let record: LeaseRecord = decode(pair.key(), pair.value())?;
                let resource = Resource::from(record.resource.as_str());
                match record.ended {
                    Some(ended) => found.push((resource, ended.into_lease()?)),
                    None => live.push((*id, resource)),
                }
            }
            found.extend(self.read_live(&live, revision).await?);
        }
        Ok(self.answer(reading, found))
    }

    /// The leases without a recorded end, at the revision of their ids.
    async fn read_live(&self, live: &[(LeaseId, Resource)], revision: i64) -> Result<Vec<Held>, StoreError> {
        let mut found = Vec::with_capacity(live.len());
        for live in live.chunks(NAMES_MAX * 2) {
            let options = || Some(GetOptions::new().with_revision(revision));
            let reads = live
                .iter()
                .map(|(_, resource)| TxnOp::get(self.keys.held(resource), options()));
            let (_, results) = self.read(&self.readers, reads.collect()).await?;
            for ((id, resource), pairs) in live.iter().zip(results) {
                let Some(pair) = pairs.first() else { continue };
                let state = decode::<StateValue>(pair.key(), pair.value())?.into_state()?;
                found.extend(
                    state
                        .lease
                        .filter(|lease| lease.id == *id)
                        .map(|lease| (resource.clone(), lease)),
                );
            }
        }
        Ok(found)
    }

    pub(super) async fn read_held(
        &self,
        range: &NameRange,
        after: Option<&Resource>,
        limit: u32,
    ) -> Result<Read<Vec<HeldRow>>, StoreError> {
        let reading = self.store_clock.read();
        let begin = match after {
            Some(after) if after.as_bytes() >= range.from.as_bytes() => [after.as_bytes(), b"\0"].concat(),
            _ => range.from.clone().into_bytes(),
        };
        let keys = self
            .keys
            .held_from(&begin, range.to.as_deref().map(str::as_bytes));
        let rows_max = usize::try_from(limit).unwrap_or(usize::MAX);
        let mut live = Vec::new();
        self.each_held(keys, limit, |resource, lease| {
            if lease.lives_at(reading.now) {
                live.push((resource, lease));
            }
            live.len() < rows_max
        })
        .await?;
        let rows = self.with_queues(live).await?;
        Ok(self.answer(reading, rows))
    }

    pub(super) async fn read_held_names(&self, names: &[Resource]) -> Result<Read<Vec<HeldRow>>, StoreError> {
        let reading = self.store_clock.read();
        let mut live = Vec::with_capacity(names.len());
        for names in names.chunks(QUEUES_MAX) {
            let reads = names.iter().map(|name| TxnOp::get(self.keys.held(name), None));
            let (_, results) = self.read(&self.readers, reads.collect()).await?;
            for (name, pairs) in names.iter().zip(results) {
                if let Some(lease) = live_lease(&pairs, reading.now)? {
                    live.push((name.clone(), lease));
                }
            }
        }
        live.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        let rows = self.with_queues(live).await?;
        Ok(self.answer(reading, rows))
    }

    pub(super) async fn read_expired(&self, limit: u32) -> Result<Read<Vec<Resource>>, StoreError> {
        let reading = self.store_clock.read();
        let expired_max = usize::try_from(limit).unwrap_or(usize::MAX);
        let begin = self.expiry_cursor.lock().take();
        let begin = begin.map_or_else(Vec::new, |last| [last.as_bytes(), b"\0"].concat());
        let (mut expired, mut last) = (Vec::new(), None);
        self.each_held(self.keys.held_from(&begin, None), u32::MAX, |resource, lease| {
            if !lease.lives_at(reading.now) {
                expired.push(resource.clone());
            }
            let goes_on =
                expired.len() < expired_max && self.clock.tick().since(reading.read_at) < SEARCH_MS_MAX;
            last = Some(resource).filter(|_| !goes_on);
            goes_on
        })
        .await?;
        *self.expiry_cursor.lock() = last;
        Ok(self.answer(reading, expired))
    }

    pub(super) async fn read_heads(
        &self,
        resources: &[Resource],
    ) -> Result<Read<Vec<QueueHead>>, StoreError> {
        let reading = self.store_clock.read();
        let mut heads = Vec::new();
        for names in resources.chunks(NAMES_MAX) {
            let reads = names.iter().flat_map(|name| {
                [
                    TxnOp::get(self.keys.held(name), None),
                    TxnOp::get(self.keys.free(name), None),
                    self.first_waiters(name),
                ]
            });
            let (_, results) = self.read(&self.readers, reads.collect()).await?;
            for (name, pairs) in names.iter().zip(results.chunks(3)) {
                let Some((_, head, value)) = parse_queue(&pairs[2])?.into_iter().next() else {
                    continue;
                };
                let request = SnapshotRequest::new(name.clone(), &[]);
                let state = Snapshot::parse(&request, pairs[..2].to_vec())?.held.state;
                heads.push(QueueHead {
                    resource: name.clone(),
                    waiter: head,
                    replica: replica(&value.replica),
                    in_ms: lease::transition::refusal(&state, reading.now).retry_after_ms,
                });
            }
        }
        Ok(self.answer(reading, heads))
    }

    /// Visits the held leases of a range in order of names, until `visit` returns false.
    async fn each_held(
        &self,
        range: KeyRange,
        page: u32,
        mut visit: impl FnMut(Resource, Lease) -> bool + Send,
    ) -> Result<(), StoreError> {
        let page = i64::from(page).clamp(1, PAGE);
        let KeyRange { mut from, to } = range;
        let mut revision = 0;
        loop {
            let options = GetOptions::new().with_limit(page).with_revision(revision);
            let next = KeyRange {
                from: from.clone(),
                to: to.clone(),
            };
            if next.from >= next.to {
                return Ok(());
            }
            let (at, results) = self.read(&self.readers, vec![get_range(next, options)]).await?;
            // All pages at one revision.
            if revision == 0 {
                revision = at;
            }
            let pairs = results.into_iter().next().unwrap_or_default();
            for pair in &pairs {
                let state = decode::<StateValue>(pair.key(), pair.value())?.into_state()?;
                let resource = Resource::from_bytes(self.keys.name(pair.key()));
                if let Some(lease) = state.lease.filter(|lease| lease.ending.is_none())
                    && !visit(resource, lease)
                {
                    return Ok(());
                }
            }
            match pairs.last().filter(|_| pairs.len() as i64 >= page) {
                Some(last) => from = [last.key(), b"\0"].concat(),
                None => return Ok(()),
            }
        }
    }

    /// The first waiters of a queue; the answer also counts all of them.
    fn first_waiters(&self, resource: &Resource) -> TxnOp {
        let options = GetOptions::new()
            .with_sort(SortTarget::Create, SortOrder::Ascend)
            .with_limit(i64::try_from(QUEUE_SHOWN).unwrap_or(i64::MAX));
        get_range(self.keys.queue(resource), options)
    }

    /// Adds their queues to held leases in the order of their names.
    async fn with_queues(&self, held: Vec<Held>) -> Result<Vec<HeldRow>, StoreError> {
        let (Some((first, _)), Some((last, _))) = (held.first(), held.last()) else {
            return Ok(Vec::new());
        };
        // Usually none of them has waiters.
        let count = get_range(self.keys.queues(first, last), GetOptions::new().with_count_only());
        let (_, counted) = self.read_responses(&self.readers, vec![count]).await?;
        if counted.iter().all(|response| total(response) == 0) {
            let row = |(resource, lease)| held_row(resource, lease, Vec::new(), 0);
            return Ok(held.into_iter().map(row).collect());
        }
        let mut rows = Vec::with_capacity(held.len());
        for held in held.chunks(QUEUES_MAX) {
            let reads = held.iter().map(|(resource, _)| self.first_waiters(resource));
            let (_, responses) = self.read_responses(&self.readers, reads.collect()).await?;
            let totals: Vec<u32> = responses.iter().map(total).collect();
            let queues = read_results(responses).into_iter().zip(totals);
            for ((resource, lease), (pairs, total)) in held.iter().zip(queues) {
                let queue = parse_queue(&pairs)?.into_iter();
                let queue = queue.map(|(_, _, value)| waiter(value)).collect();
                rows.push(held_row(resource.clone(), lease.clone(), queue, total));
            }
        }
        Ok(rows)
    }
}

/// Keys of a range, also those beyond the limit of the read.
fn total(response: &TxnOpResponse) -> u32 {
    match response {
        TxnOpResponse::Get(response) => u32::try_from(response.count()).unwrap_or(u32::MAX),
        _ => 0,
    }
}

fn live_lease(pairs: &[KeyValue], now: StoreTime) -> Result<Option<Lease>, StoreError> {
    let Some(pair) = pairs.first() else {
        return Ok(None);
    };
    let state = decode::<StateValue>(pair.key(), pair.value())?.into_state()?;
    Ok(state.lease.filter(|lease| lease.lives_at(now)))
}

/// `queue` begins with the first of all `waiters`.
fn held_row(resource: Resource, lease: Lease, queue: Vec<WaiterView>, waiters: u32) -> HeldRow {
    let first_since = queue.iter().map(|waiter| waiter.since).min();
    HeldRow {
        resource,
        lease,
        waiters,
        first_since,
        queue,
    }
}

fn waiter(value: WaiterValue) -> WaiterView {
    WaiterView {
        owner: OwnerId::new(value.owner),
        since: StoreTime::from_ms(value.since),
    }
}
