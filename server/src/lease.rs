//! The built-in lease service: drives domain's state machine over a store, SQLite or Postgres.
//!
//! Owns leases, fencing tokens, waiters, idempotency keys, the ledger of rejections. Knows no HTTP and no page.
//!
//! **Invariants:** at most one live lease per resource in commit order; tokens never repeat and never go back; no answer
//! before COMMIT; expiry is a predicate on the store's clock, the reaper only cleans; waiters hold no connection.

mod acquire;
pub mod batch;
mod caller;
mod chance;
mod core;
pub mod error;
mod events;
pub mod examine;
mod fence;
mod flights;
mod followers;
mod lanes;
mod metrics;
pub mod operation;
mod reading;
pub mod store;
mod tally;
mod tending;
mod traced;
mod waiting;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use domain::lease::{How, Lease, LeaseId, Revocation, Ttl, names};
use tokio::sync::{Mutex, broadcast};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use self::core::{Answer, Core};
use self::operation::{Done, Operation};
use self::store::postgres::PostgresStore;
use self::store::sqlite::SqliteStore;
use self::store::{Lane, Store};
use crate::clock::Clock;

pub use crate::config::LeaseConfig;

pub use acquire::{AcquireRequest, Acquired};
pub use caller::{Caller, LeasePrincipal};
pub use error::{LeaseError, LeaseOpenError};
pub use fence::{Checked, Report};
pub use followers::{LeaseChange, LeaseEvent};
pub use metrics::LeaseMetrics;
pub use reading::{LeasePage, ResourceNow, Seen, WaiterNow};
pub use store::{RejectionCount, RejectionRange, RejectionRow, RejectionsAsked};
pub use tally::{GrantedAfter, TakenTally, Tallied, Tally, What};
pub use traced::Traced;

/// An outage is told within 2 s.
const PATIENCE: Duration = Duration::from_millis(1_850);

pub struct LeaseService {
    core: Arc<Core>,
    flights: Arc<flights::Flights>,
    ttl_seconds_max: i64,
    lifetime_ms_max: i64,
    lock_delay: Duration,
    lanes: Mutex<Option<[JoinHandle<()>; 2]>>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Renewed {
    pub lease: Lease,
    pub remaining_ms: i64,
}

/// How a release or a revocation found the lease.
#[derive(Debug, Clone, PartialEq)]
pub enum Ended {
    /// This call has ended it.
    Now(Lease),
    /// It had ended before.
    Before(How),
}

impl LeaseService {
    /// Opens the store, `sqlite:path` or `postgres://…`, brings its schema up to date, asserts that it keeps what it
    /// confirms, and starts serving. Call [`close`](Self::close) before the process ends.
    ///
    /// # Errors
    /// See [`LeaseOpenError`]: the file is in use, settings are not durable, or tokens were rewound.
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
        let store = open_store(store_url, clock.clone()).await?;
        let (core, queues) = Core::new(store, clock, stop);
        let lanes = lanes::start(&core, queues);
        tending::start(&core);
        Ok(Arc::new(Self {
            core,
            flights: Arc::default(),
            ttl_seconds_max,
            lifetime_ms_max,
            lock_delay: config.lock_delay,
            lanes: Mutex::new(Some(lanes)),
        }))
    }

    /// Finishes what is in flight and closes the store. Live leases stay valid.
    pub async fn close(&self) {
        self.core.closed.cancel();
        for lane in self.lanes.lock().await.take().into_iter().flatten() {
            let _ = lane.await;
        }
        self.core.store.close().await;
    }

    /// Longest TTL that may be asked for, in seconds.
    pub fn ttl_seconds_max(&self) -> i64 {
        self.ttl_seconds_max
    }

    /// How long nobody gets a resource after a forced unlock.
    pub fn lock_delay(&self) -> Duration {
        self.lock_delay
    }

    pub fn metrics(&self) -> &LeaseMetrics {
        &self.core.metrics
    }

    /// What it did, for whoever writes history.
    pub fn tally(&self) -> &Tally {
        &self.core.tally
    }

    /// Which traces did what, for whoever writes history.
    pub fn traced(&self) -> &Traced {
        &self.core.traced
    }

    /// Waiters of this process.
    pub fn waiters(&self) -> usize {
        self.core.waiting.count()
    }

    /// Why its lanes have died, once they have. Whoever runs the service ends the process then: what it holds is in the
    /// store, and a new process begins from there. Until then every change is refused.
    pub async fn died(&self) -> String {
        self.core.dead.wait().await.clone()
    }

    /// Cancelled when the server shuts down: open streams end.
    pub fn stopping(&self) -> &CancellationToken {
        &self.core.stop
    }

    /// Names that look different from now on; none: something may have been missed.
    pub fn changes(&self) -> broadcast::Receiver<Option<Arc<[domain::names::Resource]>>> {
        self.core.changes.subscribe()
    }

    /// Prolongs a living lease by its TTL, or by a new one that replaces it.
    ///
    /// # Errors
    /// `Lost` with how, `NotFound` also for the lease of another principal, `LifetimeReached` once its life cannot be longer.
    pub async fn renew(
        &self,
        caller: &Caller,
        lease: LeaseId,
        ttl: Option<Ttl>,
    ) -> Result<Renewed, LeaseError> {
        let answer = self.try_renew(caller, lease, ttl).await;
        self.core.metrics.renews.note(&answer);
        if let Err(LeaseError::Lost(how)) = &answer {
            events::lost(lease, how);
        }
        answer
    }

    async fn try_renew(
        &self,
        caller: &Caller,
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
        let answer = self.ask(Lane::Urgent, renew).await?;
        let age_ms = self.core.clock.tick().since(answer.read_at);
        match answer.done {
            Done::Renewed(lease) => {
                let remaining_ms = lease.remaining_ms(answer.now) - age_ms;
                if remaining_ms > 0 {
                    return Ok(Renewed { lease, remaining_ms });
                }
                // By our clock it has run out; the store decides.
                let read = self.lease(caller, lease.id).await?;
                match read.ending() {
                    Some(how) => Err(LeaseError::Lost(how)),
                    None => Ok(Renewed {
                        remaining_ms: read.remaining_ms,
                        lease: read.lease,
                    }),
                }
            }
            Done::LifetimeReached(lease) => Err(LeaseError::LifetimeReached {
                remaining_ms: (lease.remaining_ms(answer.now) - age_ms).max(0),
            }),
            Done::Lost(_, ending) => Err(LeaseError::Lost(ending.how)),
            Done::NotFound => Err(LeaseError::NotFound),
            _ => Err(LeaseError::Broken),
        }
    }

    /// Gives a lease back. Idempotent.
    ///
    /// # Errors
    /// `NotFound` when it was never known, or belongs to another principal.
    pub async fn release(&self, caller: &Caller, lease: LeaseId) -> Result<Ended, LeaseError> {
        let release = Operation::Release {
            lease,
            principal: caller.principal.clone(),
            scope: caller.scope.clone(),
            unbind: None,
        };
        let answer = self.ask(Lane::Main, release).await.and_then(ended);
        let attempts = &self.core.metrics.give_backs;
        match &answer {
            Ok(Ended::Before(_)) => attempts.lost.one(),
            other => attempts.note(other),
        }
        if let Ok(Ended::Now(ended)) = &answer {
            events::released(ended);
        }
        answer
    }

    /// Ends exactly this lease, or nothing. Who and why is kept with it and told to its owner. `delay` keeps everybody
    /// out for that long afterwards.
    ///
    /// # Errors
    /// `NotFound` when it was never known; `Invalid` when who or why is empty or too long.
    pub async fn revoke(
        &self,
        lease: LeaseId,
        revocation: Revocation,
        delay: Duration,
    ) -> Result<Ended, LeaseError> {
        names::words("by", &revocation.by)?;
        names::words("reason", &revocation.reason)?;
        names::words("auditId", &revocation.audit_id)?;
        let audit_id = revocation.audit_id.clone();
        let revoke = Operation::Revoke {
            lease,
            revocation,
            delay_ms: i64::try_from(delay.as_millis()).unwrap_or(i64::MAX),
        };
        let answer = self.ask(Lane::Main, revoke).await.and_then(ended);
        if let Ok(Ended::Now(ended)) = &answer {
            events::revoked(ended, &audit_id);
        }
        answer
    }

    async fn ask(&self, lane: Lane, operation: Operation) -> Result<Answer, LeaseError> {
        let asked = self.core.ask(lane, operation);
        tokio::time::timeout(PATIENCE, asked)
            .await
            .unwrap_or(Err(LeaseError::Unavailable))
    }
}

impl Drop for LeaseService {
    fn drop(&mut self) {
        self.core.closed.cancel();
    }
}

fn ended(answer: Answer) -> Result<Ended, LeaseError> {
    match answer.done {
        Done::Released(lease) | Done::Revoked(lease) => Ok(Ended::Now(lease)),
        Done::Lost(_, ending) => Ok(Ended::Before(ending.how)),
        Done::NotFound => Err(LeaseError::NotFound),
        _ => Err(LeaseError::Broken),
    }
}

async fn open_store(url: &str, clock: Clock) -> Result<Box<dyn Store>, LeaseOpenError> {
    match store_address(url)? {
        Address::Sqlite(path) => Ok(Box::new(SqliteStore::open(path, clock).await?)),
        Address::Postgres => Ok(Box::new(PostgresStore::open(url, clock).await?)),
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

/// Brings the tables of a store up to date without serving it. No server may run on a file.
///
/// # Errors
/// See [`LeaseOpenError`].
pub async fn migrate(store_url: &str) -> Result<(), LeaseOpenError> {
    match store_address(store_url)? {
        Address::Sqlite(path) => store::sqlite::migrate_file(path).await,
        Address::Postgres => store::postgres::migrate(store_url).await,
    }
}

/// Lifts every fencing token of a store above any that a lost part of it may have issued: after a backup was put back.
/// No server may run on it. Answers the new epoch.
///
/// # Errors
/// See [`LeaseOpenError`].
pub async fn raise_epoch(store_url: &str) -> Result<i64, LeaseOpenError> {
    match store_address(store_url)? {
        Address::Sqlite(path) => store::sqlite::raise_epoch(path).await,
        Address::Postgres => store::postgres::raise_epoch(store_url).await,
    }
}
