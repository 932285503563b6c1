//! The built-in lease service: drives domain's state machine over a store, SQLite, Postgres or etcd, or over several as
//! shards.
//!
//! Owns leases, fencing tokens, waiters, idempotency keys and fencing rejections. Knows neither
//! HTTP nor pages.
//!
//! **Invariants:** at most one live lease per resource in commit order; tokens never repeat and
//! never decrease; no answer before COMMIT; expiry is a predicate on the store's clock, the
//! expiry recorder only cleans up; waiters hold no connection.

mod abandoned_requests;
mod acquire;
mod activity_log;
pub mod batch;
mod batch_loops;
mod caller;
mod common;
mod core;
pub mod error;
mod events;
mod expiry_schedule;
mod fencing;
mod grant_receiver;
mod lane_route;
mod maintenance;
mod metrics;
mod move_leases;
pub mod operation;
mod queries;
mod rejections;
mod shards;
mod singleflight;
pub mod store;
pub mod store_inspection;
#[cfg(test)]
mod test_lease;
mod trace_index;
mod waiters;
mod watchers;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use domain::duration::millis;
use domain::lease::{EndCause, Lease, LeaseId, Revocation, Ttl, names};
use parking_lot::Mutex;
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

use self::common::Common;
use self::core::{BatchReply, Core};
use self::operation::{Operation, OperationResult};
use self::shards::Shards;
use self::store::{Lane, LeaseRetention};
use runtime::change_signal::ChangeSignal;
use runtime::clock::Clock;

pub use config::LeaseConfig;

pub use acquire::{AcquireRequest, Acquired};
pub use activity_log::{Activity, ActivityEntry, ActivityLog, DrainedActivity, GrantedAfter};
pub use caller::{LeaseCaller, LeasePrincipal};
pub use error::{LeaseError, LeaseOpenError};
pub use fencing::{FencingCheck, RejectionReport};
pub use grant_receiver::PendingGrant;
pub use metrics::LeaseMetrics;
pub use move_leases::{MovedLeases, move_to_etcd};
pub use queries::{HeldByNames, LeasePage, LeaseView, ResourceNow, WaiterNow};
pub use rejections::{FoundRejections, RejectionPosition, RejectionSpan};
pub use shards::{ShardError, ShardIndex, ShardMap, ShardReads, ShardState};
pub use store::{RejectionCount, RejectionQuery, RejectionRange, RejectionRow};
pub use trace_index::Traced;
pub use watchers::{LeaseChange, LeaseEvent};

/// Below 2 s, the limit within which clients must learn of an outage.
const REPLY_TIMEOUT: Duration = Duration::from_millis(1_850);

pub struct LeaseService {
    shards: Shards,
    common: Common,
    flights: Arc<singleflight::Singleflight>,
    ttl_seconds_max: i64,
    lifetime_ms_max: i64,
    lock_delay: Duration,
    has_own_store: bool,
    rejected: ChangeSignal,
    /// Lock of `store` if it is an SQLite file, which only one server may use, and the leases are in another store.
    store_file: Mutex<Option<std::fs::File>>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Renewed {
    pub lease: Lease,
    pub remaining_ms: i64,
}

/// Result of a release or a revocation.
#[derive(Debug, Clone, PartialEq)]
pub enum Ended {
    /// Ended by this call.
    Now(Lease),
    /// Had already ended.
    Before(EndCause),
}

impl LeaseService {
    /// Opens the store, `sqlite:path` or `postgres://…`, or those that `lease.store` names, migrates their schema,
    /// checks that commits are durable, and starts the lanes. Call [`close`](Self::close) before the process
    /// ends.
    ///
    /// # Errors
    /// See [`LeaseOpenError`]: the file is in use, commits are not durable, or the store was
    /// rewound.
    pub async fn open(
        store_url: &str,
        config: LeaseConfig,
        clock: Clock,
        stop: CancellationToken,
    ) -> Result<Arc<Self>, LeaseOpenError> {
        let ttl_seconds_max = i64::try_from(config.max_ttl.as_secs()).map_err(|_| LeaseOpenError::Limits)?;
        let lifetime_ms_max =
            i64::try_from(config.max_lifetime.as_millis()).map_err(|_| LeaseOpenError::Limits)?;
        if ttl_seconds_max < 1 || ttl_seconds_max * 1_000 > lifetime_ms_max {
            return Err(LeaseOpenError::Limits);
        }
        let retention = LeaseRetention {
            released: config.released_retention,
            ended: config.ended_retention,
            lifetime_max: config.max_lifetime,
        };
        let has_own_store = config.store.is_some();
        let store_file = match store_address(store_url) {
            Ok(Address::Sqlite(path)) if has_own_store => Some(store::sqlite::lock_file(path)?.1),
            _ => None,
        };
        let common = Common::new(clock, stop);
        let specs = shards::specs(store_url, &config)?;
        Ok(Arc::new(Self {
            shards: Box::pin(shards::open(specs, &common, retention)).await?,
            common,
            flights: Arc::default(),
            ttl_seconds_max,
            lifetime_ms_max,
            lock_delay: config.lock_delay,
            has_own_store,
            rejected: ChangeSignal::default(),
            store_file: Mutex::new(store_file),
        }))
    }

    /// Finishes submitted operations and closes the stores. Live leases stay valid.
    pub async fn close(&self) {
        self.common.closed.cancel();
        self.shards.close().await;
        drop(self.store_file.lock().take());
    }

    /// Longest TTL that a request may ask for, in seconds.
    pub fn ttl_seconds_max(&self) -> i64 {
        self.ttl_seconds_max
    }

    /// Whether leases and rejections are outside of the SQL store of users and the audit log.
    pub fn has_own_store(&self) -> bool {
        self.has_own_store
    }

    /// How long a resource stays locked after a forced unlock.
    pub fn lock_delay(&self) -> Duration {
        self.lock_delay
    }

    pub fn metrics(&self) -> &LeaseMetrics {
        &self.common.metrics
    }

    /// Activity per resource, for the history writer.
    pub fn activity(&self) -> &ActivityLog {
        &self.common.activity
    }

    /// Trace ids of grants and releases, for the history writer.
    pub fn traced(&self) -> &Traced {
        &self.common.traced
    }

    /// Waiters of this process.
    pub fn waiters(&self) -> usize {
        self.shards.cores().map(|core| core.waiting.count()).sum()
    }

    /// Waits until the lanes have panicked and returns why. The process should then exit: leases
    /// are in the store and a new process continues from there. Until then every change is
    /// refused.
    pub async fn failed(&self) -> String {
        self.common.failure.wait().await.clone()
    }

    /// Cancelled at shutdown; open streams end.
    pub fn stopping(&self) -> &CancellationToken {
        &self.common.stop
    }

    /// Names whose state changed; `None` if changes may have been missed.
    pub fn changes(&self) -> broadcast::Receiver<Option<Arc<[domain::names::Resource]>>> {
        self.common.changes.subscribe()
    }

    /// The shards in the order of `lease.store`; one, if the service is not sharded.
    pub fn shards(&self) -> Vec<ShardState> {
        self.shards.states()
    }

    /// Extends a live lease by its TTL, or by a new TTL that replaces it.
    ///
    /// # Errors
    /// `Lost` with the cause; `NotFound`, also for the lease of another principal;
    /// `LifetimeReached` at the maximum lifetime.
    pub async fn renew(
        &self,
        caller: &LeaseCaller,
        lease: LeaseId,
        ttl: Option<Ttl>,
    ) -> Result<Renewed, LeaseError> {
        let answer = self.try_renew(caller, lease, ttl).await;
        self.common.metrics.renew_attempts.record_answer(&answer);
        if let Err(LeaseError::Lost(how)) = &answer {
            events::lost(lease, how);
        }
        answer
    }

    async fn try_renew(
        &self,
        caller: &LeaseCaller,
        lease: LeaseId,
        ttl: Option<Ttl>,
    ) -> Result<Renewed, LeaseError> {
        let renew = Operation::Renew {
            lease,
            ttl,
            lifetime_ms_max: self.lifetime_ms_max,
            principal: caller.principal.clone(),
            scope: caller.scope.clone(),
        };
        let core = self.shards.of_lease(lease)?;
        let answer = submit(core, Lane::Urgent, renew).await?;
        let age_ms = self.common.clock.tick().since(answer.read_at);
        match answer.done {
            OperationResult::Renewed(lease) => {
                let remaining_ms = lease.remaining_ms(answer.now) - age_ms;
                if remaining_ms > 0 {
                    return Ok(Renewed { lease, remaining_ms });
                }
                // Expired by our clock, but the store's clock decides.
                let read = self.lease(caller, lease.id).await?;
                match read.ending() {
                    Some(how) => Err(LeaseError::Lost(how)),
                    None => Ok(Renewed {
                        remaining_ms: read.remaining_ms,
                        lease: read.lease,
                    }),
                }
            }
            OperationResult::LifetimeReached(lease) => Err(LeaseError::LifetimeReached {
                remaining_ms: (lease.remaining_ms(answer.now) - age_ms).max(0),
            }),
            OperationResult::Lost(_, ending) => Err(LeaseError::Lost(ending.how)),
            OperationResult::NotFound => Err(LeaseError::NotFound),
            _ => Err(LeaseError::Broken),
        }
    }

    /// Releases a lease. Idempotent.
    ///
    /// # Errors
    /// `NotFound` when the id is unknown or belongs to another principal.
    pub async fn release(&self, caller: &LeaseCaller, lease: LeaseId) -> Result<Ended, LeaseError> {
        let release = Operation::Release {
            lease,
            principal: caller.principal.clone(),
            scope: caller.scope.clone(),
            unbind: None,
        };
        let answer = self.end(lease, release).await;
        let attempts = &self.common.metrics.release_attempts;
        match &answer {
            Ok(Ended::Before(_)) => attempts.lost.increment(),
            other => attempts.record_answer(other),
        }
        if let Ok(Ended::Now(ended)) = &answer {
            events::released(ended);
        }
        answer
    }

    /// Revokes exactly this lease. The principal and the reason are stored with it and shown to
    /// its owner. `delay` keeps the resource locked for that long afterwards.
    ///
    /// # Errors
    /// `NotFound` when the id is unknown; `Invalid` when principal or reason is empty or too
    /// long.
    pub async fn revoke(
        &self,
        lease: LeaseId,
        revocation: Revocation,
        delay: Duration,
    ) -> Result<Ended, LeaseError> {
        names::operator_text("by", &revocation.by)?;
        names::operator_text("reason", &revocation.reason)?;
        names::operator_text("auditId", &revocation.audit_id)?;
        let audit_id = revocation.audit_id.clone();
        let revoke = Operation::Revoke {
            lease,
            revocation,
            delay_ms: millis(delay),
        };
        let answer = self.end(lease, revoke).await;
        if let Ok(Ended::Now(ended)) = &answer {
            events::revoked(ended, &audit_id);
        }
        answer
    }

    async fn end(&self, lease: LeaseId, operation: Operation) -> Result<Ended, LeaseError> {
        let core = self.shards.of_lease(lease)?;
        submit(core, Lane::Main, operation).await.and_then(ended)
    }
}

async fn submit(core: &Core, lane: Lane, operation: Operation) -> Result<BatchReply, LeaseError> {
    let submitted = core.submit_and_wait(lane, operation);
    tokio::time::timeout(REPLY_TIMEOUT, submitted)
        .await
        .unwrap_or(Err(LeaseError::Unavailable))
}

impl Drop for LeaseService {
    fn drop(&mut self) {
        self.common.closed.cancel();
    }
}

fn ended(answer: BatchReply) -> Result<Ended, LeaseError> {
    match answer.done {
        OperationResult::Released(lease) | OperationResult::Revoked(lease) => Ok(Ended::Now(lease)),
        OperationResult::Lost(_, ending) => Ok(Ended::Before(ending.how)),
        OperationResult::NotFound => Err(LeaseError::NotFound),
        _ => Err(LeaseError::Broken),
    }
}

enum Address<'a> {
    Sqlite(&'a Path),
    Postgres,
}

fn store_address(url: &str) -> Result<Address<'_>, LeaseOpenError> {
    if url.starts_with("postgres://") || url.starts_with("postgresql://") {
        return Ok(Address::Postgres);
    }
    let path = url
        .strip_prefix("sqlite:")
        .map(|path| path.strip_prefix("//").unwrap_or(path));
    match path {
        Some(path) if !path.is_empty() && !path.starts_with(":memory:") => {
            Ok(Address::Sqlite(Path::new(path)))
        }
        _ => Err(LeaseOpenError::BadUrl),
    }
}

/// Creates or migrates the tables of the stores without serving them. No server may have the SQLite file open.
///
/// # Errors
/// See [`LeaseOpenError`].
pub async fn migrate(store_url: &str, config: &LeaseConfig) -> Result<(), LeaseOpenError> {
    Box::pin(shards::migrate(
        &shards::specs(store_url, config)?,
        &Clock::start(),
    ))
    .await
}

/// Raises the fencing counter of each store, or of one shard, above every token that a lost part of it may have
/// issued, after a restore from a backup. No server may be running on it. Returns the new epochs in order.
///
/// # Errors
/// See [`LeaseOpenError`].
pub async fn raise_epoch(
    store_url: &str,
    config: &LeaseConfig,
    shard: Option<ShardIndex>,
) -> Result<Vec<i64>, LeaseOpenError> {
    let specs = shards::specs(store_url, config)?;
    Box::pin(shards::raise_epoch(&specs, shard, &Clock::start())).await
}
