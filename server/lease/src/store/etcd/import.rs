//! Leases moved into etcd from another store: all or nothing. The identity is written last; a prefix with the mark of an
//! unfinished move is served by no server.

use config::LeaseStoreConfig;
use domain::duration::millis;
use domain::lease::{ResourceState, StoreTime};
use domain::names::Resource;
use etcd_client::{Client, Compare, CompareOp, DeleteOptions, GetOptions, PutOptions, Txn, TxnOp};
use runtime::clock::Clock;
use runtime::random;
use serde::{Deserialize, Serialize};

use super::cluster::{inspect, inspect_keys, refusal, unreadable};
use super::connection::{EtcdSettings, Link};
use super::identity::{LAYOUT, raft_position, read_page, run};
use super::keys::{KeyRange, Keys};
use super::values::{ClockValue, IdentityValue, LeaseRecord, LeaseValue, StateValue, decode, encode};
use crate::error::LeaseOpenError;
use crate::shards::{ShardIdentity, ShardIndex};
use crate::store::StoreError;

/// Resources of one transaction, which writes two keys for each; etcd allows 128 operations.
const RESOURCES_MAX: usize = 60;

/// Value of `meta/move`, which exists while a move has not finished.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct MoveValue {
    /// Id of the store that the leases come from.
    pub(super) source: String,
    /// Id of this attempt.
    attempt: String,
}

pub(crate) struct Import {
    link: Link,
    keys: Keys,
    mark: Vec<u8>,
    installation: Option<String>,
    /// Margin of the leases that are held, in milliseconds.
    margin_ms: i64,
}

impl Import {
    /// Checks the cluster, and empties the prefix of an earlier attempt from the same source.
    ///
    /// # Errors
    /// `Etcd`: what start refuses; a store that exists; an unfinished move from another source.
    pub(crate) async fn begin(
        config: &LeaseStoreConfig,
        source: &str,
        clock: Clock,
    ) -> Result<Self, LeaseOpenError> {
        let link = Link::new(EtcdSettings::new(config)?, clock);
        let keys = Keys::new(config.address.prefix.clone());
        let mut report = inspect(&link, &keys).await?;
        let before = read_move(&link, &keys).await.map_err(unreadable)?;
        if let Some(other) = before.as_ref().filter(|before| before.source != source) {
            return Err(refusal(
                format!(
                    "a move from another store ({}) has not finished here",
                    other.source
                ),
                format!(
                    "Finish that move, or empty the prefix: etcdctl del --prefix {}",
                    keys.prefix()
                ),
            ));
        }
        if before.is_none() {
            inspect_keys(&link, &keys, config, &mut report).await?;
        }
        let import = Self {
            mark: encode(&MoveValue {
                source: source.to_owned(),
                attempt: random::id(),
            })
            .map_err(unreadable)?,
            link,
            keys,
            installation: config.installation.clone(),
            margin_ms: millis(config.max_clock_skew),
        };
        import.place_mark().await?;
        import.empty().await.map_err(unreadable)?;
        Ok(import)
    }

    /// # Errors
    /// A store exists already.
    async fn place_mark(&self) -> Result<(), LeaseOpenError> {
        let txn = Txn::new()
            .when(vec![Compare::mod_revision(
                self.keys.identity(),
                CompareOp::Equal,
                0,
            )])
            .and_then(vec![TxnOp::put(
                self.keys.unfinished_move(),
                self.mark.clone(),
                None,
            )]);
        let answer = self.link.call(|client| run(client, txn.clone())).await;
        let answer = answer.map_err(|fault| unreadable(fault.into()))?;
        if answer.succeeded() {
            return Ok(());
        }
        let prefix = self.keys.prefix();
        Err(refusal(
            format!("there is a lease store below {prefix} already, and leases are moved into an empty one"),
            format!(
                "Choose another prefix in lease.store. If that store was never used: etcdctl del --prefix {prefix}"
            ),
        ))
    }

    /// Deletes what an earlier attempt has written.
    async fn empty(&self) -> Result<(), StoreError> {
        for KeyRange { from, to } in [self.keys.all_free(), self.keys.all_held(), self.keys.all_leases()] {
            let deleted = self.link.call(|mut client: Client| {
                let (from, options) = (from.clone(), DeleteOptions::new().with_range(to.clone()));
                async move { client.delete(from, Some(options)).await }
            });
            deleted.await?;
        }
        Ok(())
    }

    /// Writes some resources. `shift_ms` is added to the expiries.
    ///
    /// # Errors
    /// etcd does not answer; another move has begun.
    pub(crate) async fn put(
        &self,
        states: &[(Resource, ResourceState)],
        shift_ms: i64,
    ) -> Result<(), LeaseOpenError> {
        for chunk in states.chunks(RESOURCES_MAX) {
            let mut writes = Vec::with_capacity(chunk.len() * 2);
            for (resource, state) in chunk {
                writes.extend(
                    self.writes(resource, state.clone(), shift_ms)
                        .map_err(unreadable)?,
                );
            }
            self.commit(writes).await?;
        }
        Ok(())
    }

    fn writes(
        &self,
        resource: &Resource,
        mut state: ResourceState,
        shift_ms: i64,
    ) -> Result<Vec<TxnOp>, StoreError> {
        state.locked_until = state.locked_until.map(|until| until.plus(shift_ms));
        let mut writes = Vec::with_capacity(2);
        let mut is_held = false;
        if let Some(lease) = &mut state.lease {
            is_held = lease.ending.is_none();
            if is_held {
                lease.expires_at = lease.expires_at.plus(shift_ms);
                lease.margin_ms = self.margin_ms;
            }
            let record = LeaseRecord {
                resource: resource.text(),
                ended: (!is_held).then(|| LeaseValue::new(lease)),
            };
            writes.push(TxnOp::put(
                self.keys.lease(lease.id),
                encode(&record)?,
                None::<PutOptions>,
            ));
        }
        let key = if is_held {
            self.keys.held(resource)
        } else {
            self.keys.free(resource)
        };
        writes.push(TxnOp::put(
            key,
            encode(&StateValue::new(&state, random::id()))?,
            None,
        ));
        Ok(writes)
    }

    /// Only while the mark is ours: a second move that began meanwhile has replaced it.
    async fn commit(&self, writes: Vec<TxnOp>) -> Result<(), LeaseOpenError> {
        let txn = Txn::new()
            .when(vec![Compare::value(
                self.keys.unfinished_move(),
                CompareOp::Equal,
                self.mark.clone(),
            )])
            .and_then(writes);
        let answer = self.link.call(|client| run(client, txn.clone())).await;
        match answer.map_err(|fault| unreadable(fault.into()))?.succeeded() {
            true => Ok(()),
            false => Err(refusal(
                "another move into the same prefix has begun",
                "Let one of them finish.",
            )),
        }
    }

    /// Creates the store: from here on servers use it.
    ///
    /// # Errors
    /// etcd does not answer: repeat the move.
    pub(crate) async fn finish(
        self,
        epoch: i64,
        token_floor: u64,
        now: StoreTime,
    ) -> Result<(), LeaseOpenError> {
        let position = raft_position(&self.link, &self.keys)
            .await
            .map_err(|fault| unreadable(fault.into()))?;
        let header = self
            .link
            .call(|mut client: Client| async move { client.status().await });
        let status = header.await.map_err(|fault| unreadable(fault.into()))?;
        let installation = self.installation.as_deref().unwrap_or_default();
        let identity = IdentityValue {
            layout: LAYOUT,
            store_id: random::id(),
            installation: self.installation.clone(),
            shard: Some(ShardIdentity::new(installation, ShardIndex::new(0), 1)),
            epoch,
            token_floor,
            cluster_id: format!(
                "{:x}",
                status.header().map_or(0, etcd_client::ResponseHeader::cluster_id)
            ),
        };
        let clock = ClockValue::new(now.ms(), now.ms(), position);
        let writes = vec![
            TxnOp::put(
                self.keys.identity(),
                encode(&identity).map_err(unreadable)?,
                None::<PutOptions>,
            ),
            TxnOp::put(self.keys.clock(), encode(&clock).map_err(unreadable)?, None),
            TxnOp::delete(self.keys.unfinished_move(), None),
        ];
        self.commit(writes).await
    }
}

/// # Errors
/// etcd does not answer; `Corrupt`.
pub(super) async fn read_move(link: &Link, keys: &Keys) -> Result<Option<MoveValue>, StoreError> {
    let key = keys.unfinished_move();
    let to = [key.as_slice(), b"\0"].concat();
    let found = read_page(link, &key, &to, GetOptions::new()).await?;
    found
        .first()
        .map(|pair| decode(pair.key(), pair.value()))
        .transpose()
}
