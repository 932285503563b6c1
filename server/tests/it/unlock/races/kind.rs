//! The kinds of locks that are unlocked in a race, and their names.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RaceKind {
    Lease,
    RedisKey,
    EtcdKey,
    EtcdMutex,
    Row,
    Advisory,
}

impl RaceKind {
    pub(super) const ALL: [Self; 6] = [
        Self::Lease,
        Self::RedisKey,
        Self::EtcdKey,
        Self::EtcdMutex,
        Self::Row,
        Self::Advisory,
    ];

    pub(super) const fn backend(self) -> &'static str {
        match self {
            Self::Lease => "builtin",
            Self::RedisKey => "cache",
            Self::EtcdKey | Self::EtcdMutex => "coord",
            Self::Row | Self::Advisory => "orders-db",
        }
    }

    /// As the console names it.
    pub(super) fn resource(self, number: usize) -> String {
        match self {
            Self::Lease | Self::Row => format!("jobs/{number}"),
            Self::RedisKey => format!("lock:{number}"),
            Self::EtcdKey => format!("/keys/{number}"),
            Self::EtcdMutex => format!("/locks/{number}"),
            Self::Advisory => format!("advisory:postgres:{number}"),
        }
    }
}
