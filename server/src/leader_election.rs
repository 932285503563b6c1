//! Which of several servers on one Postgres runs a singleton task: a lease of the built-in service.
//!
//! **Invariant:** leadership by the clock alone is not trusted with a write: the task stores the fencing token and
//! rejects its own write once another server has stored a later one.

use std::sync::Arc;
use std::time::Duration;

use domain::lease::{LeaseId, Metadata, Ttl};
use domain::names::{OwnerId, Resource};
use domain::tick::Tick;

use lease::{AcquireRequest, Acquired, LeaseCaller, LeaseService};
use runtime::clock::Clock;
use runtime::db::Db;
use runtime::random;

/// TTL of the leader's lease, in seconds.
pub(crate) const LEADER_TTL_S: i64 = 8;
/// After the leader was killed or paused, another server leads within this time, in seconds.
pub(crate) const TAKEOVER_S_MAX: i64 = 10;

// The others try to acquire it once a second, and once more where a response is late.
const _: () = assert!(LEADER_TTL_S + 2 <= TAKEOVER_S_MAX);

pub(crate) enum LeaderElection {
    /// The store belongs to this server alone: it always leads.
    Alone,
    Shared(Box<Candidate>),
}

/// This server among others.
pub(crate) struct Candidate {
    resource: &'static str,
    leases: Arc<LeaseService>,
    clock: Clock,
    owner: OwnerId,
    held: Option<LeaderLease>,
}

struct LeaderLease {
    id: LeaseId,
    token: i64,
    /// By our own clock, counted from before the request that granted it.
    expires_at: Tick,
}

impl LeaderElection {
    /// `resource` appears among the locks like any other. A SQLite file belongs to one server alone and needs no lease.
    pub(crate) fn new(db: &Db, resource: &'static str, leases: &Arc<LeaseService>, clock: &Clock) -> Self {
        match db {
            Db::Sqlite(_) => Self::Alone,
            Db::Postgres(_) => Self::Shared(Box::new(Candidate {
                resource,
                leases: leases.clone(),
                clock: clock.clone(),
                owner: OwnerId::new(format!("leasehold-{}", random::short_id())),
                held: None,
            })),
        }
    }

    /// The fencing token of this server's leadership, while it leads. Acquires or renews the lease where needed.
    pub(crate) async fn token(&mut self) -> Option<i64> {
        match self {
            Self::Alone => Some(0),
            Self::Shared(candidate) => candidate.token().await,
        }
    }

    /// Releases the lease: another server may lead at once.
    pub(crate) async fn resign(&mut self) {
        if let Self::Shared(candidate) = self
            && let Some(held) = candidate.held.take()
        {
            // A lost release is harmless: the lease expires.
            let _released = candidate.leases.release(&LeaseCaller::server(), held.id).await;
        }
    }
}

impl Candidate {
    async fn token(&mut self) -> Option<i64> {
        let now = self.clock.tick();
        if let Some(held) = &mut self.held {
            // Renewed after a third of its TTL.
            if held.expires_at.since(now) > LEADER_TTL_S * 1_000 * 2 / 3 {
                return Some(held.token);
            }
            let renewed = self.leases.renew(&LeaseCaller::server(), held.id, None).await;
            if let Ok(renewed) = renewed {
                held.expires_at = now.plus(renewed.remaining_ms);
            }
            if held.expires_at.since(now) > 0 {
                return Some(held.token);
            }
            self.held = None;
        }
        self.held = self.acquire(now).await;
        self.held.as_ref().map(|held| held.token)
    }

    async fn acquire(&self, now: Tick) -> Option<LeaderLease> {
        let request = AcquireRequest {
            resource: Resource::from(self.resource),
            owner: self.owner.clone(),
            // `lease.max_ttl` is for clients, and may be shorter.
            ttl: Ttl::parse(LEADER_TTL_S, LEADER_TTL_S).ok()?,
            wait: Duration::ZERO,
            metadata: Metadata::default(),
            idempotency_key: None,
        };
        match self.leases.acquire(&LeaseCaller::server(), request).await {
            Ok(Acquired::Granted { lease, remaining_ms }) => Some(LeaderLease {
                id: lease.id,
                token: lease.token.number().cast_signed(),
                expires_at: now.plus(remaining_ms),
            }),
            Ok(Acquired::Refused { .. }) => None,
            Err(error) => {
                tracing::debug!("the leader of {} is unknown: {error}", self.resource);
                None
            }
        }
    }
}
