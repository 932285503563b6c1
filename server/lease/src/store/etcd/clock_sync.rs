//! The store's time in etcd: written by every replica a few times a second, so that replicas agree on it, a new one
//! adopts it, and it continues after all have stopped.

use std::time::Duration;

use domain::duration::millis;
use etcd_client::{Compare, CompareOp, GetOptions, KeyValue, PutOptions, Txn, TxnOp};
use runtime::clock::Clock;

use super::EtcdStore;
use super::connection::Link;
use super::identity::{raft_position, read_meta, read_page, read_range, run};
use super::keys::Keys;
use super::restore_guard::GuardVerdict;
use super::snapshot::read_results;
use super::store_clock::StoreClock;
use super::values::{ClockValue, StateValue, decode, encode};
use crate::store::StoreError;

const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Reads of one transaction; etcd accepts 128 unless configured.
const READS_MAX: usize = 100;
/// Longer than a dead replica stays registered.
const ADOPT_TIMEOUT: Duration = Duration::from_secs(8);

/// The clock of a replica that starts. It adopts the time of the replicas that were registered before it, whatever its
/// wall clock shows.
///
/// # Errors
/// etcd does not answer, or a registered replica writes no time.
pub(super) async fn begin(
    link: &Link,
    keys: &Keys,
    clock: &Clock,
    replica: &str,
) -> Result<StoreClock, StoreError> {
    let started = clock.tick();
    let mut first_seen = None;
    loop {
        let is_older_registered = has_older_replica(link, keys, replica).await?;
        let meta = read_meta(link, keys).await?;
        let received = clock.tick();
        let (ms, behind_ms, revision) = meta
            .clock
            .map_or((0, 0, 0), |(value, at)| (value.ms, value.behind_ms, at));
        if !is_older_registered {
            let last_ms = last_write_ms(link, keys, revision).await?;
            return Ok(StoreClock::begin(clock.clone(), ms.max(last_ms), behind_ms));
        }
        if *first_seen.get_or_insert(revision) != revision {
            return Ok(StoreClock::at(clock.clone(), ms, received));
        }
        if received.since(started) > millis(ADOPT_TIMEOUT) {
            let why = "another server is registered and writes no time; is it stopped?";
            return Err(StoreError::Etcd(why.to_owned()));
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// The newest time of the resources that were written after the clock, by replicas that have stopped since.
async fn last_write_ms(link: &Link, keys: &Keys, clock_revision: i64) -> Result<i64, StoreError> {
    let mut last_ms = 0;
    for range in [keys.all_free(), keys.all_held()] {
        let mut written = Vec::new();
        let names = GetOptions::new().with_keys_only();
        read_range(link, range, names, |pair| {
            if pair.mod_revision() > clock_revision {
                written.push(TxnOp::get(pair.key(), None));
            }
            Ok(())
        })
        .await?;
        for reads in written.chunks(READS_MAX) {
            let txn = Txn::new().and_then(reads);
            let answer = link.call(|client| run(client, txn.clone())).await?;
            for pair in read_results(answer.op_responses()).iter().flatten() {
                last_ms = last_ms.max(decode::<StateValue>(pair.key(), pair.value())?.touched_at());
            }
        }
    }
    Ok(last_ms)
}

async fn has_older_replica(link: &Link, keys: &Keys, replica: &str) -> Result<bool, StoreError> {
    let range = keys.all_replicas();
    let options = GetOptions::new().with_keys_only();
    let replicas = read_page(link, &range.from, &range.to, options).await?;
    let own_key = keys.replica(replica);
    let own_pair = replicas.iter().find(|pair| pair.key() == own_key);
    let registered = own_pair.map_or(i64::MAX, KeyValue::create_revision);
    Ok(replicas.iter().any(|pair| pair.create_revision() < registered))
}

/// Writes the first time of a store, or of one whose replicas have all stopped.
///
/// # Errors
/// etcd does not answer.
pub(super) async fn publish_first(link: &Link, keys: &Keys, clock: &StoreClock) -> Result<(), StoreError> {
    let position = raft_position(link, keys).await?;
    let meta = read_meta(link, keys).await?;
    let (last_ms, revision) = meta.clock.map_or((0, 0), |(value, at)| (value.ms, at));
    clock.follow(last_ms);
    let value = ClockValue::new(clock.read().now.ms(), clock.wall_now_ms(), position);
    let txn = Txn::new()
        .when(vec![Compare::mod_revision(
            keys.clock(),
            CompareOp::Equal,
            revision,
        )])
        .and_then(vec![TxnOp::put(keys.clock(), encode(&value)?, None)]);
    // If it is not applied, another replica has written it.
    link.call(|client| run(client, txn.clone())).await?;
    Ok(())
}

impl EtcdStore {
    /// Writes our time, and follows the time that another replica wrote before.
    ///
    /// # Errors
    /// etcd does not answer, or was restored: the epoch is raised then.
    pub(super) async fn publish_time(&self, link: &Link) -> Result<(), StoreError> {
        let sent = self.guard.sent();
        let position = raft_position(link, &self.keys).await?;
        if self.guard.is_log_behind(sent, position.0) {
            self.recover(link, GuardVerdict::Rewound, sent).await?;
            return Err(StoreError::Conflict);
        }
        let now = self.store_clock.read().now;
        let value = ClockValue::new(now.ms(), self.store_clock.wall_now_ms(), position);
        let reads = vec![
            TxnOp::get(self.keys.clock(), None),
            TxnOp::get(self.keys.identity(), None),
        ];
        let mut writes = reads.clone();
        writes.push(TxnOp::put(self.keys.clock(), encode(&value)?, None::<PutOptions>));
        let txn = Txn::new()
            .when(self.guard.compares(&self.keys, self.guard.basis()))
            .and_then(writes)
            .or_else(reads);
        let answer = link.call(|client| run(client, txn.clone())).await?;
        let results = read_results(answer.op_responses());
        let first = |place: usize| results.get(place).and_then(|pairs: &Vec<KeyValue>| pairs.first());
        if answer.succeeded() {
            let revision = match self.guard.check(sent, answer.header()) {
                Ok(revision) => revision,
                Err(error) => {
                    tracing::warn!(%error, "the lease store's etcd was restored: {error}");
                    self.recover(link, GuardVerdict::Rewound, sent).await?;
                    return Err(StoreError::Conflict);
                }
            };
            self.guard.clock_seen(revision);
            self.remember_revision(revision);
            if let Some(before) = first(0) {
                let before: ClockValue = decode(before.key(), before.value())?;
                self.store_clock.follow(before.ms);
            }
            self.store_clock.set_compared();
            return Ok(());
        }
        let verdict = self.guard.judge(first(1), first(0));
        self.recover(link, verdict, sent).await?;
        Err(StoreError::Conflict)
    }
}
