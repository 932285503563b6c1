//! The shards of the lease service: which store serves a resource, a lease id or an idempotency key, and reads of all.
//!
//! **Decision:** each shard is a whole [`Core`]: store, lanes, batches, waiters, expiry recorder, clock, notifications and
//! fencing counters of its own. A router in front picks one. The alternative, one `Store` over several inner ones, would make a
//! batch as slow as its slowest shard and fail it with any of them, and its single store time, token floor and rejection ids
//! would be wrong for each shard. With a router, a shard that does not answer fails its own operations only.
//!
//! A resource always belongs to the shard that [`ShardMap`] names, so its fencing counter never moves. A lease id holds the index
//! of its shard. An idempotency key is bound, with its grant, in the shard of its resource, in one transaction as on a single
//! store: at most one grant follows from that alone. Whether a key was used for another request, perhaps in another shard, is
//! decided by the shard of the key, which binds it first ([`claim`]).

mod claim;
mod map;
mod open;
mod shard_identity;

use std::sync::{Arc, OnceLock};

use domain::lease::LeaseId;
use domain::names::Resource;
use tokio::sync::Mutex;
use tokio::task::JoinHandle;

use super::common::Common;
use super::core::Core;
use super::error::LeaseError;
use super::operation::KeyName;
use super::store::{LeaseRetention, Store, StoreError, StoreFuture};
use super::{batch_loops, maintenance};

pub use self::map::{ShardIndex, ShardMap};
pub(super) use self::open::{compare, migrate, open, raise_epoch, specs};
pub use self::shard_identity::ShardError;
pub(crate) use self::shard_identity::{FoundShard, ShardIdentity};

/// The shards in the order of the configuration; one, if the service is not sharded.
pub(super) struct Shards {
    map: ShardMap,
    all: Vec<Arc<Shard>>,
}

pub(super) struct Shard {
    index: ShardIndex,
    /// Address of the store, without credentials.
    address: String,
    /// Set when the store was opened: at the start, or when a shard that was down then answers.
    core: OnceLock<Arc<Core>>,
    lanes: Mutex<Option<[JoinHandle<()>; 2]>>,
}

/// One shard of the service and whether it answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShardState {
    pub index: ShardIndex,
    /// Address of the store, without credentials.
    pub address: String,
    pub is_down: bool,
}

/// Results of the shards that answered: at least one.
#[derive(Debug, Clone)]
pub struct ShardReads<T> {
    pub reads: Vec<T>,
    /// Shards that did not answer.
    pub unread: Vec<ShardIndex>,
}

impl<T> ShardReads<T> {
    /// Whether every shard answered.
    pub fn is_complete(&self) -> bool {
        self.unread.is_empty()
    }
}

impl Shard {
    fn new(index: ShardIndex, address: String) -> Self {
        Self {
            index,
            address,
            core: OnceLock::new(),
            lanes: Mutex::new(None),
        }
    }

    /// Starts to serve the store.
    async fn serve(&self, store: Box<dyn Store>, common: Common, retention: LeaseRetention) {
        let (core, queues) = Core::new(store, common);
        *self.lanes.lock().await = Some(batch_loops::start(&core, queues));
        maintenance::start(&core, retention);
        // Set once: by `open`, or by the one task that opens it later.
        let _ = self.core.set(core);
    }

    fn core(&self) -> Result<&Arc<Core>, LeaseError> {
        self.core.get().ok_or(LeaseError::Unavailable)
    }

    fn is_down(&self) -> bool {
        self.core.get().is_none_or(|core| core.is_down())
    }

    async fn close(&self) {
        for lane in self.lanes.lock().await.take().into_iter().flatten() {
            let _ = lane.await;
        }
        if let Some(core) = self.core.get() {
            core.store.close().await;
        }
    }
}

impl Shards {
    pub(super) fn map(&self) -> ShardMap {
        self.map
    }

    fn at(&self, index: ShardIndex) -> Result<&Arc<Core>, LeaseError> {
        self.all
            .get(index.number())
            .ok_or(LeaseError::NotFound)
            .and_then(|shard| shard.core())
    }

    /// # Errors
    /// `Unavailable` while the shard has not been opened.
    pub(super) fn of_resource(&self, resource: &Resource) -> Result<&Arc<Core>, LeaseError> {
        self.at(self.map.of_resource(resource))
    }

    /// # Errors
    /// `Unavailable` while the shard has not been opened.
    pub(super) fn of_lease(&self, id: LeaseId) -> Result<&Arc<Core>, LeaseError> {
        self.at(self.map.of_lease(id))
    }

    pub(super) fn of_key(&self, key: &KeyName) -> Result<&Arc<Core>, LeaseError> {
        self.at(self.map.of_key(key))
    }

    /// The shards that were opened.
    pub(super) fn opened(&self) -> impl Iterator<Item = (ShardIndex, &Arc<Core>)> {
        self.all
            .iter()
            .filter_map(|shard| Some((shard.index, shard.core.get()?)))
    }

    pub(super) fn cores(&self) -> impl Iterator<Item = &Arc<Core>> {
        self.opened().map(|(_, core)| core)
    }

    pub(super) fn states(&self) -> Vec<ShardState> {
        let state = |shard: &Arc<Shard>| ShardState {
            index: shard.index,
            address: shard.address.clone(),
            is_down: shard.is_down(),
        };
        self.all.iter().map(state).collect()
    }

    /// Reads one shard.
    ///
    /// # Errors
    /// The store does not answer, or has not been opened.
    pub(super) async fn read_at<'s, T>(
        &'s self,
        index: ShardIndex,
        read: impl FnOnce(&'s Core) -> StoreFuture<'s, T>,
    ) -> Result<T, LeaseError> {
        let core = self.at(index)?;
        read(core).await.map_err(|error| core.unread(&error))
    }

    /// Reads every shard at the same time. One that is known to be down is not waited for; its maintenance notices
    /// within a second when it answers again.
    ///
    /// # Errors
    /// `Unavailable` when no shard answers.
    pub(super) async fn read_all<'s, T>(
        &'s self,
        read: impl Fn(ShardIndex, &'s Core) -> StoreFuture<'s, T>,
    ) -> Result<ShardReads<T>, LeaseError> {
        let is_only = self.all.len() == 1;
        let read_shard = |shard: &'s Arc<Shard>| {
            let read = &read;
            async move {
                let core = shard.core()?;
                if core.is_down() && !is_only {
                    return Err(LeaseError::Unavailable);
                }
                let answer: Result<T, StoreError> = read(shard.index, core).await;
                answer.map_err(|error| core.unread(&error))
            }
        };
        let answers = futures::future::join_all(self.all.iter().map(read_shard)).await;
        let (mut reads, mut unread, mut error) = (Vec::new(), Vec::new(), LeaseError::Unavailable);
        for (shard, answer) in self.all.iter().zip(answers) {
            match answer {
                Ok(read) => reads.push(read),
                Err(LeaseError::Unavailable) => unread.push(shard.index),
                Err(broken) => {
                    unread.push(shard.index);
                    error = broken;
                }
            }
        }
        if reads.is_empty() {
            return Err(error);
        }
        Ok(ShardReads { reads, unread })
    }

    pub(super) async fn close(&self) {
        futures::future::join_all(self.all.iter().map(|shard| shard.close())).await;
    }
}
