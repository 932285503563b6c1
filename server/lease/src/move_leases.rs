//! Moves the leases of an SQL store to the etcd of `lease.store`, while no server runs.
//!
//! **Invariant**: no token repeats and none goes back, because at no time can both stores grant. The old store is marked before
//! anything is read from it, and then also refuses the writes of a server that was suspended. The new store can be served only
//! after everything was written to it.

use config::{LeaseConfig, LeaseStores};
use runtime::clock::Clock;

use crate::error::LeaseOpenError;
use crate::store::StoreError;
use crate::store::etcd::Import;
use crate::store::move_source::MoveSource;
use crate::{Address, store_address};

/// Numbers of moved resources and leases.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MovedLeases {
    /// Resources that were ever locked, each with its token.
    pub resources: u64,
    /// Leases that are held.
    pub held: u64,
}

/// Moves counters, held leases and the newest ended lease of each resource, with their ids. `progress` gets the number
/// of resources that were moved, and of all. May be repeated after a failure: it starts again from the old store.
///
/// Idempotency keys, waiters, fencing rejections and older ended leases stay behind.
///
/// # Errors
/// See [`LeaseOpenError`]: a server runs, the new store is not empty, or one of them does not answer.
pub async fn move_to_etcd(
    store_url: &str,
    config: &LeaseConfig,
    clock: Clock,
    mut progress: impl FnMut(u64, u64),
) -> Result<MovedLeases, LeaseOpenError> {
    let target = match &config.store {
        Some(LeaseStores::Etcd(shards)) => match shards.as_slice() {
            [only] => only,
            several => return Err(LeaseOpenError::SeveralTargets(several.len())),
        },
        Some(LeaseStores::Postgres(_)) | None => return Err(LeaseOpenError::NoTarget),
    };
    let mut source = match store_address(store_url)? {
        Address::Sqlite(path) => MoveSource::open_sqlite(path).await?,
        Address::Postgres => MoveSource::open_postgres(store_url).await?,
    };
    let import = Box::pin(Import::begin(target, &source.store_id, clock.clone())).await?;
    source.mark(&target.address.to_string()).await?;
    let wall_ms = clock.now().wall.timestamp_millis();
    let source_now = source.now(wall_ms).await?;
    // A server on etcd begins at its wall clock or later: an expiry by a clock that is behind would come too early.
    let now = if source_now.ms() < wall_ms {
        domain::lease::StoreTime::from_ms(wall_ms)
    } else {
        source_now
    };
    let shift_ms = now.since(source_now);
    let (all, mut moved, mut after) = (source.resources().await?, MovedLeases::default(), String::new());
    loop {
        let states = source.states(&after).await.map_err(unreadable)?;
        let Some((last, _)) = states.last() else { break };
        after = last.text();
        Box::pin(import.put(&states, shift_ms)).await?;
        let is_held = |lease: &domain::lease::Lease| lease.ending.is_none();
        let held = states
            .iter()
            .filter(|(_, state)| state.lease.as_ref().is_some_and(is_held));
        moved.held += held.count() as u64;
        moved.resources += states.len() as u64;
        progress(moved.resources, all);
    }
    Box::pin(import.finish(source.epoch, source.token_floor, now)).await?;
    Ok(moved)
}

fn unreadable(error: StoreError) -> LeaseOpenError {
    LeaseOpenError::Writer(Box::new(error))
}
