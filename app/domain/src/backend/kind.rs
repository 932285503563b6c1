//! The kinds of backends, and all that other code says of a kind. What an adapter can tell by itself is a capability or a trait.

use serde::{Deserialize, Serialize};

use crate::waits::IdentityField;

crate::wire_enum! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum BackendKind {
        Builtin = "builtin",
        Postgres = "postgres",
        Redis = "redis",
        Etcd = "etcd",
        Zookeeper = "zookeeper",
        Consul = "consul",
    }
}

impl BackendKind {
    /// Grants in queue order. On other kinds a waiter may overtake another.
    pub const fn keeps_order(self) -> bool {
        matches!(self, Self::Builtin | Self::Etcd | Self::Zookeeper)
    }

    /// How a client of this kind lets a lock that never expires expire.
    pub const fn ttl_remedy(self) -> &'static str {
        match self {
            Self::Redis => "Let its client set a TTL in the same command: SET key value NX PX 30000.",
            Self::Etcd => "Let its client put the key on a lease.",
            Self::Zookeeper => "Let its client create an ephemeral node.",
            Self::Consul => "Let its client acquire the key with a session that has a TTL or a health check.",
            Self::Postgres => "Let its client write an expiry into the row.",
            Self::Builtin => "Let its client ask for a TTL.",
        }
    }

    /// The fields that it reports of waiters and holders. Empty: it reports no waiters, so no identity rule can apply to it.
    pub const fn identity_fields(self) -> &'static [IdentityField] {
        match self {
            Self::Builtin => &[IdentityField::Owner],
            Self::Postgres => &[
                IdentityField::ApplicationName,
                IdentityField::ClientAddress,
                IdentityField::User,
            ],
            Self::Etcd | Self::Zookeeper => &[IdentityField::Owner, IdentityField::Session],
            Self::Redis | Self::Consul => &[],
        }
    }

    pub const fn reports_waiters(self) -> bool {
        !self.identity_fields().is_empty()
    }

    /// How it knows who waits for whom; completes "believed because of".
    pub const fn wait_evidence(self) -> &'static str {
        match self {
            Self::Builtin => "queue of the lease service",
            Self::Postgres => "pg_blocking_pids",
            Self::Etcd => "order of the create revisions",
            Self::Zookeeper => "order of the sequence numbers",
            Self::Redis => "Redis reports no waiters",
            Self::Consul => "Consul reports no waiters",
        }
    }

    /// Its forced release ends the whole session: all that it holds.
    pub const fn release_ends_session(self) -> bool {
        matches!(self, Self::Postgres)
    }

    /// What its forced release does to the holder.
    pub const fn release_effect(self) -> &'static str {
        match self {
            Self::Builtin => {
                "the owner is notified; only a resource that compares tokens rejects its late writes"
            }
            Self::Postgres => "rolls back the open transaction of the session and ends all of its locks",
            Self::Etcd | Self::Zookeeper => {
                "the holder is not stopped: only a resource that compares tokens rejects its late writes"
            }
            Self::Redis | Self::Consul => "the holder is not stopped and may still write",
        }
    }
}
