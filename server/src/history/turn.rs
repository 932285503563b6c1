//! Whose turn it is to do what one does for all, of several servers on one Postgres: a lease of our own service.

use std::sync::Arc;

use domain::lease::{LeaseId, Metadata, Ttl};
use domain::names::{OwnerId, Resource};
use domain::observation::Tick;

use super::limits::TURN_S;
use crate::clock::Clock;
use crate::lease::{AcquireRequest, Acquired, Caller, LeaseService};

pub(crate) enum Turn {
    /// The store is one server's own.
    Alone,
    Shared(Box<Shared>),
}

pub(crate) struct Shared {
    name: &'static str,
    leases: Arc<LeaseService>,
    clock: Clock,
    owner: OwnerId,
    mine: Option<Mine>,
}

struct Mine {
    lease: LeaseId,
    token: i64,
    /// By our own clock, counted from before the request that gave it.
    until: Tick,
}

impl Turn {
    pub(crate) const fn alone() -> Self {
        Self::Alone
    }

    /// `name` is shown among the locks like any other.
    pub(crate) fn shared(name: &'static str, leases: Arc<LeaseService>, clock: Clock) -> Self {
        let owner = format!("leasehold-{:08x}", rand::random::<u32>());
        Self::Shared(Box::new(Shared {
            name,
            leases,
            clock,
            owner: OwnerId::new(owner),
            mine: None,
        }))
    }

    /// The fencing token of this server's turn, while it has one.
    pub(crate) async fn token(&mut self) -> Option<i64> {
        match self {
            Self::Alone => Some(0),
            Self::Shared(shared) => shared.token().await,
        }
    }

    /// Somebody else may go on at once.
    pub(crate) async fn give_up(&mut self) {
        if let Self::Shared(shared) = self
            && let Some(mine) = shared.mine.take()
        {
            // If it does not come through, the turn runs out by itself.
            let _released = shared.leases.release(&Caller::server(), mine.lease).await;
        }
    }
}

impl Shared {
    async fn token(&mut self) -> Option<i64> {
        let asked = self.clock.tick();
        let ttl_ms = TURN_S * 1_000;
        if let Some(mine) = &mut self.mine {
            // Renewed when a third of it is over.
            if mine.until.since(asked) > ttl_ms * 2 / 3 {
                return Some(mine.token);
            }
            if self
                .leases
                .renew(&Caller::server(), mine.lease, None)
                .await
                .is_ok()
            {
                mine.until = asked.plus(ttl_ms);
            }
            if mine.until.since(asked) > 0 {
                return Some(mine.token);
            }
            self.mine = None;
        }
        self.mine = self.take(asked).await;
        self.mine.as_ref().map(|mine| mine.token)
    }

    async fn take(&self, asked: Tick) -> Option<Mine> {
        let request = AcquireRequest {
            resource: Resource::from(self.name),
            owner: self.owner.clone(),
            ttl: Ttl::parse(TURN_S, self.leases.ttl_seconds_max()).ok()?,
            wait: std::time::Duration::ZERO,
            metadata: Metadata::default(),
            idempotency_key: None,
        };
        match self.leases.acquire(&Caller::server(), request).await {
            Ok(Acquired::Granted { lease, .. }) => Some(Mine {
                lease: lease.id,
                token: lease.token.number().cast_signed(),
                until: asked.plus(TURN_S * 1_000),
            }),
            Ok(Acquired::Refused { .. }) => None,
            Err(error) => {
                tracing::debug!("whose turn {} is cannot be told: {error}", self.name);
                None
            }
        }
    }
}
