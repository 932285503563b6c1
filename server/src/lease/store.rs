//! The Store port: where leases live. One transaction per batch; expiry is judged by the store's clock.
//!
//! A store loads, locks and writes. It decides nothing: [`super::batch::run`] does.

mod asked;
mod known;
pub mod memory;
pub mod postgres;
mod rejections;
mod rows;
pub mod sqlite;
mod witness;

use std::sync::Arc;

use domain::lease::invariants::Broken;
use domain::lease::scope::NameRange;
use domain::lease::{Lease, LeaseId, ResourceState, StoreTime};
use domain::names::{OwnerId, Resource};
use domain::observation::Tick;
use domain::token::FencingToken;
use futures::future::BoxFuture;
use thiserror::Error;

use super::operation::{Applied, Head, Operation};

/// What a store answers, in its own time.
pub type Answer<'a, T> = BoxFuture<'a, Result<T, StoreError>>;

pub trait Store: Send + Sync + 'static {
    /// Applies a batch, sorted by resource, in one transaction, and returns once it is durable. Never cancelled by a
    /// client. `lane` has a connection of its own, so that one never waits for the other.
    fn apply<'a>(&'a self, lane: Lane, operations: &'a [Operation]) -> Answer<'a, Applied>;

    /// Whether both lanes end in one writer anyway, so that one loop should serve both.
    fn has_one_writer(&self) -> bool;

    /// How many batches of the main lane it takes at a time, so that one is written while another is on its way to disk.
    fn main_lanes(&self) -> usize {
        1
    }

    fn resource<'a>(&'a self, resource: &'a Resource) -> Answer<'a, Read<ResourceView>>;

    fn leases<'a>(&'a self, ids: &'a [LeaseId]) -> Answer<'a, Read<Vec<(Resource, Lease)>>>;

    /// Leases that live now with names in the range and after `after`, in order of name, with their waiters.
    fn held<'a>(
        &'a self,
        range: &'a NameRange,
        after: Option<&'a Resource>,
        limit: u32,
    ) -> Answer<'a, Read<Vec<HeldRow>>>;

    /// The same of some names: those of them that are held.
    fn held_of<'a>(&'a self, names: &'a [Resource]) -> Answer<'a, Read<Vec<HeldRow>>>;

    /// Resources whose lease has run out without a note of it. The predicate is the store's clock's.
    fn run_out(&self, limit: u32) -> Answer<'_, Vec<Resource>>;

    /// Who stands first at each of these, with when to try.
    fn heads<'a>(&'a self, resources: &'a [Resource]) -> Answer<'a, Read<Vec<Head>>>;

    /// The newest rejections first.
    fn rejections<'a>(&'a self, asked: &'a RejectionsAsked) -> Answer<'a, Vec<RejectionRow>>;

    /// Rejections added up, oldest first.
    fn rejection_counts<'a>(&'a self, range: &'a RejectionRange) -> Answer<'a, Vec<RejectionCount>>;

    /// The id of the last rejection that was recorded before a moment of the store's clock; 0: none.
    fn last_rejection_before(&self, recorded: StoreTime) -> Answer<'_, i64>;

    /// Of each resource the newest write with an older token that was rejected at or after `since`.
    fn stale_writes(&self, since: StoreTime) -> Answer<'_, Vec<StaleWrite>>;

    /// Deletes what is past its retention and checks the clock. Called a few times a second.
    fn tend(&self) -> Answer<'_, ()>;

    /// Marks this replica as alive for the others. Called several times within the time after which a silent replica has no
    /// waiters; never for a store that only we write to.
    fn beat(&self) -> Answer<'_, ()>;

    /// Ends when the store says that something changed elsewhere; never for a store that only we write to.
    fn news(&self) -> BoxFuture<'_, News>;

    /// Our name among the replicas.
    fn replica(&self) -> &Arc<str>;

    fn version(&self) -> Answer<'_, String>;

    /// Closes what is open, in good order.
    fn close(&self) -> BoxFuture<'_, ()>;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Lane {
    /// Renewals.
    Urgent,
    Main,
}

/// An answer with the clocks of its reading.
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
}

/// Which part of the ledger is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RejectionsAsked {
    pub resource: Option<Resource>,
    /// Resources in this range alone: a reader's scope is applied before `most`.
    pub names: Option<NameRange>,
    /// When they were refused, as reported; the end is left out itself.
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

/// What other replicas did.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct News {
    pub changed: Vec<Resource>,
    pub heads: Vec<Head>,
    /// Something may have been missed.
    pub missed: bool,
}

#[derive(Debug, Error)]
pub enum StoreError {
    #[error("the store cannot be reached: {0}")]
    Down(#[source] sqlx::Error),
    #[error("the store's file cannot be used: {0}")]
    File(#[from] rusqlite::Error),
    #[error("the store did not answer within {0} ms")]
    NoAnswer(u64),
    /// Rolled back because another replica was first; the same batch may be tried again.
    #[error("another replica was first")]
    Conflict,
    #[error("the store holds what it cannot hold: {0}")]
    Corrupt(String),
    #[error("a promise would have been broken: {0}")]
    Broken(#[from] Broken),
    #[error("a session of the store would not keep what it confirms: {0}")]
    NotDurable(String),
    /// Whether it was committed nobody can say.
    #[error("the batch panicked: {0}")]
    Panicked(String),
    #[error("the store was rewound while it ran: {0}")]
    Rewound(String),
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        let code = error.as_database_error().and_then(|it| it.code());
        // Deadlock, serialization failure, lock time-out.
        if code.is_some_and(|code| matches!(code.as_ref(), "40P01" | "40001" | "55P03")) {
            return Self::Conflict;
        }
        Self::Down(error)
    }
}

/// Which rejections to add up: those behind `after` and up to `to`, by id, that happened at `since` or later.
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
    /// Of the last of them.
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

/// Ended leases are remembered this long after the longest life that a lease can have: whoever asks later gets 404.
const ENDED_KEPT_MS: i64 = 24 * 3_600 * 1_000;

/// Ids tell when they were made: what is older than this can be forgotten, if it has ended.
fn oldest_kept(now: StoreTime) -> LeaseId {
    let cutoff = now.ms() - ENDED_KEPT_MS - domain::lease::limits::LIFETIME_MS_MAX;
    LeaseId::from_parts(cutoff.max(0), [0; 10])
}

fn keys_kept_from(now: StoreTime) -> StoreTime {
    now.plus(-domain::lease::limits::KEY_WINDOW_MS)
}
