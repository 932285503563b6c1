//! Opening an etcd store: refusals, registration of the replica, adoption of the store's time, and a raised epoch after
//! a restore.

use std::collections::HashSet;
use std::sync::Arc;

use config::LeaseStoreConfig;
use domain::duration::millis;
use etcd_client::GetOptions;
use parking_lot::Mutex;
use runtime::clock::Clock;
use runtime::random;

use super::clock_sync::{begin, publish_first};
use super::cluster::{EtcdReport, denied, inspect, inspect_keys, unreadable};
use super::connection::{EtcdSettings, Link};
use super::identity::{create, raise_token_floor, read_meta, read_page};
use super::keys::Keys;
use super::replica::Registration;
use super::restore_guard::Guard;
use super::values::IdentityValue;
use super::{EtcdStateCache, EtcdStore};
use crate::error::LeaseOpenError;
use crate::shards::{FoundShard, ShardIdentity, ShardIndex};
use crate::store::StoreError;

impl EtcdStore {
    /// Opens a store that is no shard.
    ///
    /// # Errors
    /// See [`LeaseOpenError`].
    pub async fn open(config: &LeaseStoreConfig, clock: Clock) -> Result<Self, LeaseOpenError> {
        Self::open_as(config, None, clock).await
    }

    /// Opens a store as one of the shards.
    ///
    /// # Errors
    /// See [`LeaseOpenError`].
    pub(crate) async fn open_as(
        config: &LeaseStoreConfig,
        shard: Option<ShardIdentity>,
        clock: Clock,
    ) -> Result<Self, LeaseOpenError> {
        let settings = EtcdSettings::new(config)?;
        let link = Link::new(settings.clone(), clock.clone());
        let keys = Keys::new(config.address.prefix.clone());
        prepare(&link, &keys, (config, shard.clone()), &clock).await?;
        let registration = Registration::default();
        let replica: Arc<str> = random::id().into();
        registration
            .register(&link, &keys, &replica)
            .await
            .map_err(|fault| denied(&link, &keys, fault))?;
        let store_clock = begin(&link, &keys, &clock, &replica).await.map_err(unreadable)?;
        publish_first(&link, &keys, &store_clock)
            .await
            .map_err(unreadable)?;
        let meta = read_meta(&link, &keys).await.map_err(unreadable)?;
        let (Some((identity, identity_at)), Some((time, clock_at))) = (meta.identity, meta.clock) else {
            let why = "the identity or the clock of the store is missing".to_owned();
            return Err(unreadable(StoreError::Corrupt(why)));
        };
        check_shard(&keys, shard.as_ref(), &identity)?;
        store_clock.follow(time.ms);
        Ok(Self {
            guard: Guard::new(&meta.header, identity, (identity_at, clock_at)),
            keys,
            members: settings.cluster_reader(config, clock.clone())?,
            lanes: Link::new(settings, clock.clone()),
            readers: link,
            clock,
            store_clock,
            margin_ms: millis(config.max_clock_skew),
            replica,
            registration,
            cache: Mutex::new(EtcdStateCache::default()),
            own_revisions: Mutex::new(HashSet::new()),
            watch: tokio::sync::Mutex::new(None),
            raising: tokio::sync::Mutex::new(()),
            prune_cursors: Mutex::default(),
            key_cursor: Mutex::new(None),
            expiry_cursor: Mutex::new(None),
        })
    }
}

/// Checks the cluster, creates a missing store, and raises its epoch if the cluster was restored.
async fn prepare(
    link: &Link,
    keys: &Keys,
    (config, shard): (&LeaseStoreConfig, Option<ShardIdentity>),
    clock: &Clock,
) -> Result<(), LeaseOpenError> {
    let mut report = inspect(link, keys).await?;
    for (address, why) in &report.down {
        tracing::warn!(
            etcd.address = address,
            "a member of the lease store's etcd does not answer: {why}"
        );
    }
    if report.members < 3 {
        tracing::warn!(
            etcd.members = report.members,
            "the lease store's etcd has fewer than three members: it does not survive the loss of one"
        );
    }
    let meta = inspect_keys(link, keys, config, &mut report).await?;
    if !report.exists {
        let created = create(link, keys, &meta, (config.installation.clone(), shard)).await;
        return created.map_err(unreadable);
    }
    if let Some(why) = &report.rewound {
        tracing::warn!("the lease store's etcd was restored: {why}");
        let wall_ms = clock.now().wall.timestamp_millis();
        let times = (meta.continued_ms(wall_ms), wall_ms);
        raise_token_floor(link, keys, times, config.known_floor)
            .await
            .map_err(unreadable)?;
    }
    Ok(())
}

/// Checks everything that start checks, and writes nothing.
///
/// # Errors
/// See [`LeaseOpenError`].
pub async fn inspect_store(config: &LeaseStoreConfig, clock: Clock) -> Result<EtcdReport, LeaseOpenError> {
    let link = Link::new(EtcdSettings::new(config)?, clock);
    let keys = Keys::new(config.address.prefix.clone());
    let mut report = inspect(&link, &keys).await?;
    inspect_keys(&link, &keys, config, &mut report).await?;
    Ok(report)
}

/// As [`inspect_store`], and creates a missing store.
///
/// # Errors
/// See [`LeaseOpenError`].
pub(crate) async fn check(
    config: &LeaseStoreConfig,
    shard: Option<ShardIdentity>,
    clock: Clock,
) -> Result<(), LeaseOpenError> {
    let link = Link::new(EtcdSettings::new(config)?, clock.clone());
    let keys = Keys::new(config.address.prefix.clone());
    prepare(&link, &keys, (config, shard), &clock).await
}

/// Reads the identity of the store as a shard, without changing the store.
///
/// # Errors
/// See [`LeaseOpenError`].
pub(crate) async fn find_shard(
    config: &LeaseStoreConfig,
    clock: Clock,
) -> Result<FoundShard, LeaseOpenError> {
    let link = Link::new(EtcdSettings::new(config)?, clock);
    let keys = Keys::new(config.address.prefix.clone());
    let mut report = inspect(&link, &keys).await?;
    let meta = inspect_keys(&link, &keys, config, &mut report).await?;
    let mut has_tokens = false;
    for range in [keys.all_free(), keys.all_held()] {
        let first_key = GetOptions::new().with_limit(1).with_keys_only();
        let found = read_page(&link, &range.from, &range.to, first_key).await;
        has_tokens |= !found.map_err(|fault| denied(&link, &keys, fault))?.is_empty();
    }
    // A store that was created without shards is its own only shard.
    let identity = meta.identity.map(|(identity, _)| {
        let installation = identity.installation.clone().unwrap_or_default();
        let only_shard = ShardIdentity::new(&installation, ShardIndex::new(0), 1);
        identity.shard.unwrap_or(only_shard)
    });
    Ok(FoundShard { identity, has_tokens })
}

/// Another server may have created the store meanwhile.
fn check_shard(
    keys: &Keys,
    expected: Option<&ShardIdentity>,
    identity: &IdentityValue,
) -> Result<(), LeaseOpenError> {
    match (expected, &identity.shard) {
        (Some(expected), Some(stored)) => Ok(expected.check(stored, keys.prefix())?),
        _ => Ok(()),
    }
}

/// Raises every token of a store that was restored from a snapshot. Recorded as an epoch.
///
/// # Errors
/// See [`LeaseOpenError`].
pub async fn raise_epoch(config: &LeaseStoreConfig, clock: Clock) -> Result<i64, LeaseOpenError> {
    let link = Link::new(EtcdSettings::new(config)?, clock.clone());
    let keys = Keys::new(config.address.prefix.clone());
    let mut report = inspect(&link, &keys).await?;
    let meta = inspect_keys(&link, &keys, config, &mut report).await?;
    let wall_ms = clock.now().wall.timestamp_millis();
    let times = (meta.continued_ms(wall_ms), wall_ms);
    raise_token_floor(&link, &keys, times, config.known_floor)
        .await
        .map_err(unreadable)
}
