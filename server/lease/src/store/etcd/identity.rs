//! Identity and epoch of the store. A cluster that was restored from a snapshot lacks the last commits: every token is
//! raised above any that they may have issued, before anything is granted.

use domain::lease::limits::EPOCH_STEP;
use etcd_client::{Client, Compare, CompareOp, GetOptions, KeyValue, PutOptions, ResponseHeader, Txn, TxnOp};
use runtime::random;

use super::EtcdStore;
use super::connection::Link;
use super::error::EtcdError;
use super::keys::{KeyRange, Keys};
use super::restore_guard::{GuardVerdict, SentAt};
use super::snapshot::read_results;
use super::values::{ClockValue, IdentityValue, StateValue, decode, encode};
use crate::shards::ShardIdentity;
use crate::store::StoreError;

/// Layout of the keys and values.
pub(super) const LAYOUT: u32 = 1;
/// Keys of one answer; values are below 8 KiB, and gRPC limits an answer to 4 MiB.
pub(super) const PAGE: i64 = 400;
const ATTEMPTS_MAX: usize = 20;

/// Identity and clock of the store as read at one revision.
pub(super) struct StoreMeta {
    pub(super) header: ResponseHeader,
    pub(super) identity: Option<(IdentityValue, i64)>,
    pub(super) clock: Option<(ClockValue, i64)>,
}

impl StoreMeta {
    /// The store's time if no server runs, in milliseconds.
    pub(super) fn continued_ms(&self, wall_ms: i64) -> i64 {
        let clock = self.clock.as_ref();
        clock.map_or(wall_ms, |(clock, _)| clock.continued_ms(wall_ms))
    }
}

fn parse<T: serde::de::DeserializeOwned>(pair: Option<&KeyValue>) -> Result<Option<(T, i64)>, StoreError> {
    pair.map(|pair| Ok((decode(pair.key(), pair.value())?, pair.mod_revision())))
        .transpose()
}

/// # Errors
/// etcd does not answer; `Corrupt`.
pub(super) async fn read_meta(link: &Link, keys: &Keys) -> Result<StoreMeta, StoreError> {
    let reads = vec![TxnOp::get(keys.identity(), None), TxnOp::get(keys.clock(), None)];
    let txn = Txn::new().and_then(reads);
    let mut answer = link.call(|client| run(client, txn.clone())).await?;
    let header = answer
        .take_header()
        .ok_or_else(|| StoreError::Etcd("an answer without a header".to_owned()))?;
    let results = read_results(answer.op_responses());
    let first = |place: usize| results.get(place).and_then(|pairs: &Vec<KeyValue>| pairs.first());
    Ok(StoreMeta {
        header,
        identity: parse(first(0))?,
        clock: parse(first(1))?,
    })
}

pub(super) async fn run(
    mut client: Client,
    txn: Txn,
) -> Result<etcd_client::TxnResponse, etcd_client::Error> {
    client.txn(txn).await
}

/// Index and term of the cluster's log, at least those of every answer before the call.
///
/// # Errors
/// etcd does not answer.
pub(super) async fn raft_position(link: &Link, keys: &Keys) -> Result<(u64, u64), EtcdError> {
    let key = keys.clock();
    let status = link.call(|mut client: Client| {
        let key = key.clone();
        async move {
            // A linearizable read first: the member has then all entries committed before it.
            client.get(key, Some(GetOptions::new().with_keys_only())).await?;
            client.status().await
        }
    });
    let status = status.await?;
    Ok((status.raft_index(), status.raft_term()))
}

/// Why the cluster is not the one that wrote the store, if it is not.
pub(super) fn rewound(meta: &StoreMeta, position: (u64, u64), known_floor: u64) -> Option<String> {
    let (identity, _) = meta.identity.as_ref()?;
    if identity.token_floor < known_floor {
        return Some(format!(
            "its tokens are above {}, and were above {known_floor} before",
            identity.token_floor
        ));
    }
    let cluster = format!("{:x}", meta.header.cluster_id());
    if identity.cluster_id != cluster {
        return Some(format!(
            "the store was written in cluster {}, and this is {cluster}",
            identity.cluster_id
        ));
    }
    let (index, term) = position;
    let Some((clock, _)) = &meta.clock else {
        return Some("its clock is missing".to_owned());
    };
    if clock.raft_index > index || clock.raft_term > term {
        return Some(format!(
            "its clock was written at entry {} of term {} of the cluster's log, which ends at entry {index} of term \
             {term}",
            clock.raft_index, clock.raft_term
        ));
    }
    None
}

/// Writes the identity of a new store and a clock that the first replica sets, unless another replica has.
///
/// # Errors
/// etcd does not answer.
pub(super) async fn create(
    link: &Link,
    keys: &Keys,
    meta: &StoreMeta,
    (installation, shard): (Option<String>, Option<ShardIdentity>),
) -> Result<(), StoreError> {
    let identity = IdentityValue {
        layout: LAYOUT,
        store_id: random::id(),
        installation,
        shard,
        epoch: 1,
        token_floor: 0,
        cluster_id: format!("{:x}", meta.header.cluster_id()),
    };
    let clock = ClockValue::new(0, 0, (0, 0));
    let txn = Txn::new()
        .when(vec![
            Compare::mod_revision(keys.identity(), CompareOp::Equal, 0),
            Compare::mod_revision(keys.unfinished_move(), CompareOp::Equal, 0),
        ])
        .and_then(vec![
            TxnOp::put(keys.identity(), encode(&identity)?, None::<PutOptions>),
            TxnOp::put(keys.clock(), encode(&clock)?, None),
        ]);
    link.call(|client| run(client, txn.clone())).await?;
    Ok(())
}

/// Raises every token above any that the lost part of the store may have issued. Returns the new epoch; another
/// replica may have raised it meanwhile. `known_floor`: of an epoch that the lost part may have had. The store's time and the
/// wall clock are in milliseconds.
///
/// # Errors
/// etcd does not answer.
pub(super) async fn raise_token_floor(
    link: &Link,
    keys: &Keys,
    (now_ms, wall_ms): (i64, i64),
    known_floor: u64,
) -> Result<i64, StoreError> {
    for _ in 0..ATTEMPTS_MAX {
        let meta = read_meta(link, keys).await?;
        let Some((identity, revision)) = &meta.identity else {
            return Err(StoreError::Corrupt(
                "the identity of the store is missing".to_owned(),
            ));
        };
        let highest = highest_token(link, keys).await?;
        let next = IdentityValue {
            epoch: identity.epoch + 1,
            token_floor: identity.token_floor.max(highest).max(known_floor) + EPOCH_STEP,
            cluster_id: format!("{:x}", meta.header.cluster_id()),
            ..identity.clone()
        };
        let position = raft_position(link, keys).await?;
        let ms = now_ms.max(meta.clock.as_ref().map_or(0, |(clock, _)| clock.ms));
        let clock = ClockValue::new(ms, wall_ms, position);
        let txn = Txn::new()
            .when(vec![Compare::mod_revision(
                keys.identity(),
                CompareOp::Equal,
                *revision,
            )])
            .and_then(vec![
                TxnOp::put(keys.identity(), encode(&next)?, None::<PutOptions>),
                TxnOp::put(keys.clock(), encode(&clock)?, None),
            ]);
        if link.call(|client| run(client, txn.clone())).await?.succeeded() {
            tracing::warn!(
                store.epoch = next.epoch,
                "the lease store's etcd was restored: every fencing token is raised by 2^32"
            );
            return Ok(next.epoch);
        }
        // Another replica was faster, or this call was sent twice: both are checked by the caller's next read.
        let current = read_meta(link, keys).await?;
        if let Some((identity, at)) = current.identity
            && at != *revision
        {
            return Ok(identity.epoch);
        }
    }
    Err(StoreError::Conflict)
}

async fn highest_token(link: &Link, keys: &Keys) -> Result<u64, StoreError> {
    let mut highest = 0;
    for range in [keys.all_free(), keys.all_held()] {
        read_range(link, range, GetOptions::new(), |pair| {
            highest = highest.max(decode::<StateValue>(pair.key(), pair.value())?.token());
            Ok(())
        })
        .await?;
    }
    Ok(highest)
}

/// Visits the keys of a range in order, a page at a time: not as of one revision.
///
/// # Errors
/// etcd does not answer; what `visit` returns.
pub(super) async fn read_range(
    link: &Link,
    range: KeyRange,
    options: GetOptions,
    mut visit: impl FnMut(&KeyValue) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let KeyRange { mut from, to } = range;
    loop {
        let pairs = read_page(link, &from, &to, options.clone().with_limit(PAGE)).await?;
        pairs.iter().try_for_each(&mut visit)?;
        let is_full = pairs.len() >= PAGE.unsigned_abs() as usize;
        match pairs.last().filter(|_| is_full) {
            Some(last) => from = [last.key(), b"\0"].concat(),
            None => return Ok(()),
        }
    }
}

/// A range, without the checks of a replica that serves.
///
/// # Errors
/// etcd does not answer.
pub(super) async fn read_page(
    link: &Link,
    from: &[u8],
    to: &[u8],
    options: GetOptions,
) -> Result<Vec<KeyValue>, EtcdError> {
    let answer = link.call(|mut client: Client| {
        let (from, options) = (from.to_vec(), options.clone().with_range(to.to_vec()));
        async move { client.get(from, Some(options)).await }
    });
    Ok(answer.await?.take_kvs())
}

impl EtcdStore {
    /// Raises the epoch, or adopts one that was raised; call after an answer to a request `sent` showed that the cluster
    /// was restored.
    ///
    /// # Errors
    /// etcd does not answer.
    pub(super) async fn recover(
        &self,
        link: &Link,
        verdict: GuardVerdict,
        sent: SentAt,
    ) -> Result<(), StoreError> {
        let _turn = self.raising.lock().await;
        if self.guard.is_recovered_since(sent) {
            return Ok(());
        }
        let mut meta = read_meta(link, &self.keys).await?;
        let (epoch, token_floor) = self.guard.epoch();
        let is_raised = meta
            .identity
            .as_ref()
            .is_some_and(|(identity, _)| identity.epoch > epoch);
        if verdict == GuardVerdict::Rewound && !is_raised {
            let times = (self.store_clock.read().now.ms(), self.store_clock.wall_now_ms());
            raise_token_floor(link, &self.keys, times, token_floor).await?;
            meta = read_meta(link, &self.keys).await?;
        }
        let (Some((identity, at)), Some((clock, clock_at))) = (meta.identity, meta.clock) else {
            return Err(StoreError::Corrupt(
                "the identity or the clock of the store is missing".to_owned(),
            ));
        };
        self.store_clock.follow(clock.ms);
        // Together: nothing of the epoch before is remembered in this one.
        let mut cache = self.cache.lock();
        self.guard.renew(&meta.header, identity, (at, clock_at));
        cache.clear();
        Ok(())
    }
}
