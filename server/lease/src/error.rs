//! Errors of lease operations and of opening the store.

use std::path::PathBuf;

use domain::lease::{EndCause, ValidationError};
use thiserror::Error;

use super::shards::ShardError;
use super::store::StoreError;
use runtime::db::schema::SchemaError;

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LeaseError {
    #[error("{0}")]
    Invalid(#[from] ValidationError),
    #[error("the name is outside the scope of this token; use a token whose prefixes cover it")]
    OutOfScope,
    #[error(
        "resource is reserved: names that begin with {} belong to the server; choose a name that begins otherwise",
        domain::lease::names::RESERVED_PREFIX
    )]
    Reserved,
    #[error("this lease does not exist")]
    NotFound,
    #[error("this idempotency key was used for another request; send a new key")]
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
    /// Found before the store is marked.
    #[error(
        "the role of `store` does not own the tables, and a move adds a trigger to one of them: run the command as the owner, \
         with the owner's address in LEASEHOLD_STORE"
    )]
    NotOwner,
    #[error("lease.store names no etcd: set it in [lease] to the address that the leases are moved to")]
    NoTarget,
    #[error(
        "leases can be moved to one etcd only, and lease.store names {0} shards: name one address, or create empty shards \
         and let the leases of this store end"
    )]
    SeveralTargets(usize),
    #[error("etcd cannot hold the leases: {reason}. {remedy}")]
    Etcd {
        reason: String,
        remedy: String,
        /// etcd does not answer; nothing is known to be wrong with its data.
        is_outage: bool,
    },
    /// The stores that the configuration names are not the shards that were created.
    #[error(transparent)]
    Shard(#[from] ShardError),
    /// An error of one store of `lease.store`.
    #[error("the lease store {address} cannot be used")]
    OfShard {
        address: String,
        source: Box<LeaseOpenError>,
    },
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

impl LeaseOpenError {
    /// Whether the store may answer later, without a change of the configuration or of its data.
    pub(crate) fn is_outage(&self) -> bool {
        match self {
            Self::NoAnswer => true,
            Self::Etcd { is_outage, .. } => *is_outage,
            Self::Store(error) => match error {
                sqlx::Error::Io(_) | sqlx::Error::PoolTimedOut => true,
                // Connection exceptions; starting up, shutting down, crashed (class 57P).
                sqlx::Error::Database(error) => error
                    .code()
                    .is_some_and(|code| code.starts_with("08") || code.starts_with("57P")),
                _ => false,
            },
            Self::OfShard { source, .. } => source.is_outage(),
            _ => false,
        }
    }

    /// Names the store; `address` is empty for `store` itself.
    pub(crate) fn of_shard(self, address: &str) -> Self {
        // These name it already.
        if address.is_empty() || matches!(self, Self::Shard(_) | Self::OfShard { .. }) {
            return self;
        }
        Self::OfShard {
            address: address.to_owned(),
            source: Box::new(self),
        }
    }

    /// The error with its causes.
    pub(crate) fn with_causes(&self) -> String {
        let mut text = self.to_string();
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            text.push_str(": ");
            text.push_str(&error.to_string());
            cause = error.source();
        }
        text
    }
}
