//! The `Store` port: persistence of leases. One transaction per batch, on etcd per resource;
//! expiry is decided by the store's clock.
//!
//! A store loads, locks and writes. Decisions are made by [`super::batch::run`].

mod batch_request;
pub mod etcd;
pub mod memory;
pub(crate) mod move_source;
mod moved;
pub mod postgres;
mod rejections;
mod retention;
mod rows;
pub mod sqlite;
mod state_cache;
mod witness_file;

use std::sync::Arc;

use domain::backend::ClusterView;
use domain::lease::invariants::InvariantError;
use domain::lease::scope::NameRange;
use domain::lease::{Lease, LeaseId, ResourceState, StoreTime};
use domain::names::{OwnerId, Resource};
use domain::tick::Tick;
use domain::token::FencingToken;
use futures::future::BoxFuture;
use thiserror::Error;

use super::operation::{Applied, Operation, QueueHead};

pub use self::retention::LeaseRetention;

/// Operations of one transaction of an SQL store.
const BATCH_MAX: usize = 512;

/// Future of a store call, with the store's error.
pub type StoreFuture<'a, T> = BoxFuture<'a, Result<T, StoreError>>;

pub trait Store: Send + Sync + 'static {
    /// Applies a batch in one transaction (on etcd: one per resource), and returns once it is durable.
    /// Never cancelled by a client. Lanes never wait for each other, unless they share one writer.
    fn apply<'a>(&'a self, lane: Lane, operations: &'a [Operation]) -> StoreFuture<'a, Applied>;

    /// Whether both lanes share one writer, so that one loop should serve both.
    fn has_one_writer(&self) -> bool;

    /// `db.system` of traces and metrics.
    fn system(&self) -> &'static str {
        if self.has_one_writer() {
            "sqlite"
        } else {
            "postgresql"
        }
    }

    /// Operations of one batch.
    fn batch_max(&self) -> usize {
        BATCH_MAX
    }

    /// How many batches of the main lane may be in flight, so that one is prepared while another
    /// is being synced.
    fn main_lanes(&self) -> usize {
        1
    }

    fn resource<'a>(&'a self, resource: &'a Resource) -> StoreFuture<'a, Read<ResourceView>>;

    fn leases<'a>(&'a self, ids: &'a [LeaseId]) -> StoreFuture<'a, Read<Vec<(Resource, Lease)>>>;

    /// Live leases with names in the range and after `after`, ordered by name, with their
    /// waiters.
    fn held_leases<'a>(
        &'a self,
        range: &'a NameRange,
        after: Option<&'a Resource>,
        limit: u32,
    ) -> StoreFuture<'a, Read<Vec<HeldRow>>>;

    /// Live leases of these names, with their waiters.
    fn held_by_names<'a>(&'a self, names: &'a [Resource]) -> StoreFuture<'a, Read<Vec<HeldRow>>>;

    /// Resources whose lease has expired without a recorded ending, by the store's clock. Reads all held leases.
    fn expired_leases(&self, limit: u32) -> StoreFuture<'_, Read<Vec<Resource>>>;

    /// The head of each of these queues and when it should try.
    fn heads<'a>(&'a self, resources: &'a [Resource]) -> StoreFuture<'a, Read<Vec<QueueHead>>>;

    /// Fencing rejections, newest first.
    fn rejections<'a>(&'a self, filter: &'a RejectionQuery) -> StoreFuture<'a, Vec<RejectionRow>>;

    /// Rejections counted by resource, owner and second, oldest first.
    fn rejection_counts<'a>(&'a self, range: &'a RejectionRange) -> StoreFuture<'a, Vec<RejectionCount>>;

    /// Id of the last rejection recorded before a time of the store's clock; 0 without one.
    fn last_rejection_before(&self, recorded: StoreTime) -> StoreFuture<'_, i64>;

    /// The newest write with an older token of each resource that was rejected at or after
    /// `since`.
    fn stale_writes(&self, since: StoreTime) -> StoreFuture<'_, Vec<StaleWrite>>;

    /// Deletes some of what is past its retention and checks the clock. Called a few times a second, and sooner while
    /// there is more to delete.
    fn run_maintenance<'a>(&'a self, retention: &'a LeaseRetention) -> StoreFuture<'a, PruneProgress>;

    /// Marks this replica as alive. Called several times within the time after which the waiters
    /// of a silent replica are dropped; a no-op for a store with a single process.
    fn send_heartbeat(&self) -> StoreFuture<'_, ()>;

    /// Resolves when another replica reports changes; never for a store with a single process.
    fn next_notification(&self) -> BoxFuture<'_, StoreNotification>;

    /// Notifies the other replicas of committed changes until it is dropped.
    fn send_notifications(&self) -> BoxFuture<'_, ()>;

    /// Id of this replica.
    fn replica(&self) -> &Arc<str>;

    fn version(&self) -> StoreFuture<'_, String>;

    /// Members of a replicated store, also of one that does not answer; `None` for the others.
    fn cluster(&self) -> BoxFuture<'_, Option<ClusterView>> {
        Box::pin(std::future::ready(None))
    }

    /// Tokens of the store are above this number; raised when a part of it was lost. `None`: the store records it where a
    /// restore cannot set it back unnoticed.
    fn token_floor(&self) -> Option<u64> {
        None
    }

    /// Closes all connections.
    fn close(&self) -> BoxFuture<'_, ()>;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Lane {
    /// Renewals.
    Urgent,
    Main,
}

/// Whether more rows are past their retention.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PruneProgress {
    Done,
    More,
}

/// A value with the clock readings of its query.
#[derive(Debug, Clone)]
pub struct Read<T> {
    pub now: StoreTime,
    pub read_at: Tick,
    pub value: T,
}

#[derive(Debug, Clone, Default)]
pub struct ResourceView {
    pub state: ResourceState,
    pub waiters: Vec<WaiterView>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaiterView {
    pub owner: OwnerId,
    pub since: StoreTime,
}

#[derive(Debug, Clone)]
pub struct HeldRow {
    pub resource: Resource,
    pub lease: Lease,
    pub waiters: u32,
    pub first_since: Option<StoreTime>,
    /// The first of the queue, in order.
    pub queue: Vec<WaiterView>,
}

/// Filter of fencing rejections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RejectionQuery {
    pub resource: Option<Resource>,
    /// Only resources in this range: the reader's scope is applied before the limit `most`.
    pub names: Option<NameRange>,
    /// Time of the rejection as reported, from inclusive, until exclusive.
    pub from: StoreTime,
    pub until: StoreTime,
    pub most: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RejectionRow {
    pub id: i64,
    pub resource: String,
    pub token: i64,
    pub highest: Option<i64>,
    pub owner: Option<String>,
    pub source: String,
    pub reason: String,
    pub at: StoreTime,
}

/// A write that was rejected because a newer token had been granted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StaleWrite {
    pub resource: Resource,
    pub token: FencingToken,
    pub owner: Option<String>,
    /// When it was rejected, as reported.
    pub at: StoreTime,
}

/// Changes made by other replicas.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StoreNotification {
    pub changed: Vec<Resource>,
    pub heads: Vec<QueueHead>,
    /// Notifications may have been missed.
    pub missed: bool,
}

#[derive(Debug, Error)]
pub enum StoreError {
    #[error("the store cannot be reached: {0}")]
    Down(#[source] sqlx::Error),
    #[error("etcd: {0}")]
    Etcd(String),
    #[error("the store's file cannot be used: {0}")]
    File(#[from] rusqlite::Error),
    #[error("the store did not answer within {0} ms")]
    NoAnswer(u64),
    /// Rolled back because another replica changed the same rows; the batch may be retried.
    #[error("another replica changed the same rows")]
    Conflict,
    #[error("the store contains invalid data: {0}")]
    Corrupt(String),
    #[error("an invariant would have been violated: {0}")]
    Broken(#[from] InvariantError),
    #[error("commits in a session of the store are not durable: {0}")]
    NotDurable(String),
    /// It is unknown whether the batch was committed.
    #[error("the batch panicked: {0}")]
    Panicked(String),
    #[error("the store was rewound while it ran: {0}")]
    Rewound(String),
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        let code = error
            .as_database_error()
            .and_then(|database_error| database_error.code());
        // Deadlock, serialization failure, lock time-out.
        if code.is_some_and(|code| matches!(code.as_ref(), "40P01" | "40001" | "55P03")) {
            return Self::Conflict;
        }
        Self::Down(error)
    }
}

/// Range of rejections to count: ids after `after` up to and including `to`, that happened at
/// `since` or later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RejectionRange {
    pub after: i64,
    pub to: i64,
    pub since: StoreTime,
}

/// The rejections of one resource and owner within one second.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RejectionCount {
    pub resource: String,
    pub owner: Option<String>,
    /// Token of the last of them.
    pub token: i64,
    pub highest: Option<i64>,
    pub at: StoreTime,
    /// A newer token had been granted.
    pub is_older: bool,
    pub times: u64,
}

type StaleWriteTuple = (String, i64, Option<String>, i64);

impl From<StaleWriteTuple> for StaleWrite {
    fn from((resource, token, owner, at): StaleWriteTuple) -> Self {
        Self {
            resource: Resource::from(resource.as_str()),
            token: FencingToken::new(token.cast_unsigned()),
            owner,
            at: StoreTime::from_ms(at),
        }
    }
}

type RejectionTuple = (i64, String, i64, Option<i64>, Option<String>, String, String, i64);

impl From<RejectionTuple> for RejectionRow {
    fn from((id, resource, token, highest, owner, source, reason, at): RejectionTuple) -> Self {
        Self {
            id,
            resource,
            token,
            highest,
            owner,
            source,
            reason,
            at: StoreTime::from_ms(at),
        }
    }
}
