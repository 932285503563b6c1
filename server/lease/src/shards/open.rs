//! Opens the stores of all shards: first all are inspected, then a set that is not the created one is refused, then each
//! is opened.
//!
//! A database that does not answer does not keep the others from serving: it is opened when it answers, after the same
//! checks. A new set is created only when all of them answer.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use config::{LeaseConfig, LeaseStoreConfig, LeaseStores};
use futures::future::LocalBoxFuture;
use secrecy::{ExposeSecret as _, SecretString};

use super::map::{ShardIndex, ShardMap};
use super::shard_identity::{self, FoundShard, ShardIdentity};
use super::{Shard, Shards};
use crate::common::Common;
use crate::error::LeaseOpenError;
use crate::store::etcd::EtcdStore;
use crate::store::postgres::PostgresStore;
use crate::store::sqlite::SqliteStore;
use crate::store::{LeaseRetention, Store, etcd, postgres, sqlite};
use crate::{Address, store_address};
use runtime::clock::Clock;
use runtime::tasks;

/// Between two attempts to open a shard that did not answer.
const OPEN_AGAIN: Duration = Duration::from_secs(1);

/// Boxed: opening is rare, and its futures are large. Not `Send`, because the future of sqlx's migrator is not `Send` for every
/// lifetime.
type Opening<'a, T> = LocalBoxFuture<'a, Result<T, LeaseOpenError>>;

/// How one store is opened.
#[derive(Clone)]
pub(crate) struct ShardSpec {
    /// Without credentials; empty for `store` itself.
    pub(crate) address: String,
    /// `None` for `store` itself, which is no shard.
    pub(crate) identity: Option<ShardIdentity>,
    pub(crate) kind: StoreSpec,
}

#[derive(Clone)]
pub(crate) enum StoreSpec {
    Sqlite(PathBuf),
    Postgres(SecretString),
    Etcd(Box<LeaseStoreConfig>),
}

/// The stores of the configuration, in order.
///
/// # Errors
/// `BadUrl`.
pub(crate) fn specs(store_url: &str, config: &LeaseConfig) -> Result<Vec<ShardSpec>, LeaseOpenError> {
    let Some(stores) = &config.store else {
        let kind = match store_address(store_url)? {
            Address::Sqlite(path) => StoreSpec::Sqlite(path.to_owned()),
            Address::Postgres => StoreSpec::Postgres(SecretString::from(store_url)),
        };
        return Ok(vec![ShardSpec {
            address: String::new(),
            identity: None,
            kind,
        }]);
    };
    let kinds: Vec<StoreSpec> = match stores {
        LeaseStores::Postgres(stores) => stores
            .iter()
            .map(|store| StoreSpec::Postgres(store.url()))
            .collect(),
        LeaseStores::Etcd(stores) => {
            let boxed = |store: &LeaseStoreConfig| StoreSpec::Etcd(Box::new(store.clone()));
            stores.iter().map(boxed).collect()
        }
    };
    let spec = |((identity, address), kind)| ShardSpec {
        address,
        identity: Some(identity),
        kind,
    };
    Ok(shard_identity::expected(stores)
        .into_iter()
        .zip(kinds)
        .map(spec)
        .collect())
}

impl ShardSpec {
    fn find<'a>(&'a self, clock: &'a Clock) -> Opening<'a, FoundShard> {
        match &self.kind {
            // One file is one store.
            StoreSpec::Sqlite(_) => Box::pin(std::future::ready(Ok(FoundShard {
                identity: None,
                has_tokens: false,
            }))),
            StoreSpec::Postgres(url) => Box::pin(postgres::find_shard(url.expose_secret())),
            StoreSpec::Etcd(config) => Box::pin(etcd::find_shard(config, clock.clone())),
        }
    }

    fn open<'a>(&'a self, clock: &'a Clock) -> Opening<'a, Box<dyn Store>> {
        let (identity, address) = (self.identity.as_ref(), self.address.as_str());
        match &self.kind {
            StoreSpec::Sqlite(path) => boxed(Box::pin(SqliteStore::open(path, clock.clone()))),
            StoreSpec::Postgres(url) => {
                let identity = identity.map(|identity| (identity, address));
                let opening = PostgresStore::open_as(url.expose_secret(), identity, clock.clone());
                boxed(Box::pin(opening))
            }
            StoreSpec::Etcd(config) => {
                let opening = EtcdStore::open_as(config, identity.cloned(), clock.clone());
                boxed(Box::pin(opening))
            }
        }
    }

    /// Creates or migrates the store.
    async fn migrate(&self, clock: &Clock) -> Result<(), LeaseOpenError> {
        let (identity, address) = (self.identity.as_ref(), self.address.as_str());
        match &self.kind {
            StoreSpec::Sqlite(path) => sqlite::migrate_file(path).await,
            StoreSpec::Postgres(url) => {
                let identity = identity.map(|identity| (identity, address));
                postgres::migrate(url.expose_secret(), identity).await
            }
            StoreSpec::Etcd(config) => etcd::check(config, identity.cloned(), clock.clone()).await,
        }
    }

    async fn raise_epoch(&self, clock: &Clock) -> Result<i64, LeaseOpenError> {
        match &self.kind {
            StoreSpec::Sqlite(path) => sqlite::raise_epoch(path).await,
            StoreSpec::Postgres(url) => postgres::raise_epoch(url.expose_secret()).await,
            StoreSpec::Etcd(config) => etcd::raise_epoch(config, clock.clone()).await,
        }
    }

    fn index(&self) -> ShardIndex {
        self.identity
            .as_ref()
            .map_or(ShardIndex::new(0), |identity| identity.index)
    }
}

fn boxed<S: Store>(opening: Opening<'_, S>) -> Opening<'_, Box<dyn Store>> {
    Box::pin(async move {
        let store: Box<dyn Store> = Box::new(opening.await?);
        Ok(store)
    })
}

/// Inspects the stores and refuses a set that is not the created one. Returns which of them answer.
async fn inspect(specs: &[ShardSpec], clock: &Clock) -> Result<Vec<bool>, LeaseOpenError> {
    let finding: Vec<_> = specs.iter().map(|spec| spec.find(clock)).collect();
    let found = futures::future::join_all(finding).await;
    let is_only = specs.len() == 1;
    let mut answered = Vec::new();
    for (spec, found) in specs.iter().zip(found) {
        match found {
            Err(error) if error.is_outage() && !is_only => {
                tracing::debug!(
                    shard.index = spec.index().get(),
                    "shard {} does not answer: {}",
                    spec.index(),
                    error.with_causes()
                );
                answered.push(None);
            }
            Err(error) => return Err(error.of_shard(&spec.address)),
            Ok(found) => answered.push(Some(found)),
        }
    }
    let expected: Vec<(ShardIdentity, String)> = specs
        .iter()
        .filter_map(|spec| Some((spec.identity.clone()?, spec.address.clone())))
        .collect();
    shard_identity::check_all(&expected, &answered)?;
    if answered.iter().all(Option::is_none) {
        return Err(LeaseOpenError::NoAnswer);
    }
    Ok(answered.iter().map(Option::is_some).collect())
}

/// As [`inspect`], for `leasehold doctor`.
pub(crate) async fn compare(specs: &[ShardSpec], clock: &Clock) -> Result<(), LeaseOpenError> {
    inspect(specs, clock).await.map(drop)
}

/// Opens all stores and serves them.
///
/// # Errors
/// See [`LeaseOpenError`].
pub(crate) async fn open(
    specs: Vec<ShardSpec>,
    common: &Common,
    retention: LeaseRetention,
) -> Result<Shards, LeaseOpenError> {
    let map = ShardMap::new(specs.len()).ok_or(LeaseOpenError::BadUrl)?;
    let answers = inspect(&specs, &common.clock).await?;
    let mut stores = Vec::new();
    for (spec, answers) in specs.iter().zip(answers) {
        let store = match answers {
            true => Some(
                spec.open(&common.clock)
                    .await
                    .map_err(|error| error.of_shard(&spec.address))?,
            ),
            false => None,
        };
        stores.push(store);
    }
    let mut shards = Vec::new();
    for (spec, store) in specs.iter().zip(stores) {
        let shard = Arc::new(Shard::new(spec.index(), spec.address.clone()));
        match store {
            Some(store) => shard.serve(store, common.clone(), retention).await,
            None => {
                tracing::warn!(
                    shard.index = shard.index.get(),
                    "shard {} ({}) does not answer: its resources are refused until it does",
                    shard.index,
                    shard.address
                );
                open_later(&specs, &shard, common, retention);
            }
        }
        shards.push(shard);
    }
    Ok(Shards { map, all: shards })
}

/// Opens a shard when it answers.
fn open_later(specs: &[ShardSpec], shard: &Arc<Shard>, common: &Common, retention: LeaseRetention) {
    let (specs, shard, common) = (specs.to_vec(), shard.clone(), common.clone());
    let closed = common.closed.clone();
    tasks::spawn_supervised("lease shard opening", closed, move || {
        open_when_up(specs.clone(), shard.clone(), common.clone(), retention)
    });
}

async fn open_when_up(specs: Vec<ShardSpec>, shard: Arc<Shard>, common: Common, retention: LeaseRetention) {
    let index = shard.index;
    let mut reported = String::new();
    while shard.core.get().is_none() {
        tokio::time::sleep(OPEN_AGAIN).await;
        let (specs, clock) = (specs.clone(), common.clock.clone());
        let runtime = tokio::runtime::Handle::current();
        let opening = tokio::task::spawn_blocking(move || runtime.block_on(open_one(&specs, index, &clock)));
        match opening.await {
            Ok(Ok(Some(store))) => {
                shard.serve(store, common.clone(), retention).await;
                tracing::info!(
                    shard.index = index.get(),
                    "shard {index} ({}) is open",
                    shard.address
                );
            }
            Ok(Ok(None)) => {}
            Ok(Err(error)) => {
                let text = error.with_causes();
                if text != reported {
                    tracing::error!(
                        shard.index = index.get(),
                        "shard {index} cannot be opened: {text}"
                    );
                }
                reported = text;
            }
            // A panic was logged by its thread.
            Err(_) => {}
        }
    }
}

/// `None` while it does not answer.
fn open_one<'a>(
    specs: &'a [ShardSpec],
    index: ShardIndex,
    clock: &'a Clock,
) -> Opening<'a, Option<Box<dyn Store>>> {
    Box::pin(async move {
        let answers = inspect(specs, clock).await?;
        let Some(spec) = specs
            .get(index.number())
            .filter(|_| answers.get(index.number()) == Some(&true))
        else {
            return Ok(None);
        };
        match spec.open(clock).await {
            Err(error) if error.is_outage() => Ok(None),
            opened => opened.map(Some),
        }
    })
}

/// Creates or migrates all stores.
///
/// # Errors
/// See [`LeaseOpenError`]; also when one of them does not answer.
pub(crate) async fn migrate(specs: &[ShardSpec], clock: &Clock) -> Result<(), LeaseOpenError> {
    refuse_outage(specs, &inspect(specs, clock).await?)?;
    for spec in specs {
        let migrated = Box::pin(spec.migrate(clock)).await;
        migrated.map_err(|error| error.of_shard(&spec.address))?;
    }
    Ok(())
}

/// Raises the epoch of every shard, or of one. Returns the new epochs in order.
///
/// # Errors
/// See [`LeaseOpenError`]; also when one of all shards does not answer.
pub(crate) async fn raise_epoch(
    specs: &[ShardSpec],
    only: Option<ShardIndex>,
    clock: &Clock,
) -> Result<Vec<i64>, LeaseOpenError> {
    refuse_outage(specs, &inspect(specs, clock).await?)?;
    let mut epochs = Vec::new();
    for spec in specs {
        if only.is_none_or(|only| only == spec.index()) {
            let epoch = Box::pin(spec.raise_epoch(clock)).await;
            epochs.push(epoch.map_err(|error| error.of_shard(&spec.address))?);
        }
    }
    Ok(epochs)
}

fn refuse_outage(specs: &[ShardSpec], answers: &[bool]) -> Result<(), LeaseOpenError> {
    match answers.iter().position(|answers| !answers) {
        Some(down) => Err(LeaseOpenError::NoAnswer.of_shard(&specs[down].address)),
        None => Ok(()),
    }
}
