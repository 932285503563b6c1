//! Errors of lease operations and of opening the store.

use std::path::PathBuf;

use domain::lease::{EndCause, ValidationError};
use thiserror::Error;

use super::store::StoreError;
use runtime::db::schema::SchemaError;

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LeaseError {
    #[error("{0}")]
    Invalid(#[from] ValidationError),
    #[error("the name is outside the scope of this token")]
    OutOfScope,
    #[error(
        "resource is reserved: names that begin with {} belong to the server; choose a name that begins otherwise",
        domain::lease::names::RESERVED_PREFIX
    )]
    Reserved,
    #[error("this lease does not exist")]
    NotFound,
    #[error("this idempotency key was used for another request")]
    KeyReused,
    /// The lease has ended.
    #[error("the lease was {}", .0.as_str())]
    Lost(EndCause),
    #[error("the lease has reached its maximum lifetime; release it and acquire the lock again")]
    LifetimeReached { remaining_ms: i64 },
    /// Not granted, or the outcome is unknown: retry with the same idempotency key.
    #[error("the lease store does not answer")]
    Unavailable,
    #[error("this server is overloaded")]
    Overloaded,
    #[error("this server is shutting down")]
    ShuttingDown,
    /// A bug, or a store that was changed by hand. Nothing was written; the log has the details.
    #[error("the lease service found an inconsistency and wrote nothing")]
    Broken,
}

impl From<&StoreError> for LeaseError {
    fn from(error: &StoreError) -> Self {
        match error {
            StoreError::Down(_)
            | StoreError::Etcd(_)
            | StoreError::File(_)
            | StoreError::NoAnswer(_)
            | StoreError::Conflict
            | StoreError::NotDurable(_)
            | StoreError::Panicked(_)
            | StoreError::Rewound(_) => Self::Unavailable,
            StoreError::Corrupt(_) | StoreError::Broken(_) => Self::Broken,
        }
    }
}

#[derive(Debug, Error)]
pub enum LeaseOpenError {
    #[error("store must be `sqlite:path` or `postgres://…`, but its scheme is neither")]
    BadUrl,
    #[error(
        "another process{} already serves leases from {}: one SQLite file has one server; stop the other one, or use \
         Postgres for several", .pid.map(|pid| format!(" (pid {pid})")).unwrap_or_default(), .path.display()
    )]
    InUse { path: PathBuf, pid: Option<u32> },
    #[error("cannot use {}: {source}", .path.display())]
    File { path: PathBuf, source: std::io::Error },
    #[error("commits of the store are not durable: {0}")]
    NotDurable(String),
    #[error(
        "the store was rewound, perhaps restored from a backup: {0}. Starting would issue fencing tokens a second \
         time. `leasehold migrate --raise-epoch` raises every token above any that was lost"
    )]
    Rewound(String),
    #[error(
        "its leases were moved to {to}, or a move there has begun. Set lease.store to that address and start again; if the \
         move was interrupted, repeat `leasehold migrate --to etcd`. To serve from this store again, stop every server and \
         run `leasehold migrate --raise-epoch` without lease.store: leases that were granted there since are not known here"
    )]
    Moved { to: String },
    #[error(
        "a server still runs on the store that leases are moved from: stop every server, then repeat the command"
    )]
    Running,
    #[error("lease.store names no etcd: set it in [lease] to the address that the leases are moved to")]
    NoTarget,
    #[error("etcd cannot hold the leases: {reason}. {remedy}")]
    Etcd { reason: String, remedy: String },
    #[error("the store does not answer")]
    NoAnswer,
    #[error("the store cannot be opened")]
    Store(#[source] sqlx::Error),
    #[error("the store's file cannot be opened for writing")]
    Writer(#[source] Box<StoreError>),
    #[error("the store's schema cannot be brought up to date")]
    Migration(#[source] SchemaError),
    #[error(
        "max_ttl and max_lifetime must be whole seconds, from 1 s up, and max_ttl no longer than max_lifetime"
    )]
    Limits,
}
