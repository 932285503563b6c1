//! The made-up locks: what each backend would report of them at any moment. Their states are not written here: the inventory
//! diagnoses them, from renewals that stopped, waiters, or a lease without an end.

use chrono::TimeDelta;
use domain::generation::Generation;
use domain::names::{OwnerId, Resource, Source};
use domain::observation::{InLine, Lifetime, ObservedCondition, ObservedLock};
use domain::reported::Reported;
use domain::token::FencingToken;

use crate::backends::Kind;
use crate::canned::{BEAT_MS, Moment};
use crate::deadlock::CannedWait;
use crate::{hostile, redlock};

/// How a lock ends. Milliseconds; moments are since the gallery opened, negative before it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Life {
    /// Renewed so often, until this moment or for good.
    Renewed {
        ttl: i64,
        every: i64,
        until: Option<i64>,
    },
    /// Never renewed; runs out at this moment.
    Running {
        ttl: i64,
        end: i64,
    },
    Session,
    NoTtl,
    Unknown,
}

#[derive(Debug, Clone)]
pub(crate) struct CannedLock {
    pub(crate) backend: &'static str,
    pub(crate) source: Option<&'static str>,
    pub(crate) resource: Resource,
    pub(crate) owner: Option<String>,
    /// When the gallery opened, in milliseconds.
    pub(crate) held: i64,
    pub(crate) life: Life,
    pub(crate) waiters: u32,
    pub(crate) condition: Option<ObservedCondition>,
    /// Waiters whom the backend identifies.
    pub(crate) queue: Vec<CannedWait>,
}

pub(crate) const S: i64 = 1_000;
pub(crate) const M: i64 = 60 * S;
const H: i64 = 60 * M;

/// The one that is held longer than the rule of the gallery allows.
pub(crate) const LONG_HELD: &str = "tenant_123:billing-close:2026-04";
/// Its waiters change with every beat.
const BUSY: &str = "tenant_123:ledger-post";
/// Gets another owner every few beats.
const ROTATING: &str = "tenant_204:ledger-post";
const BEATS_PER_HOLDING: i64 = 4;

pub(crate) const fn renewed(ttl: i64, every: i64) -> Life {
    Life::Renewed {
        ttl,
        every,
        until: None,
    }
}

/// Backend, resource, owner, time held in milliseconds, life, number of waiters.
type Row = (&'static str, &'static str, &'static str, i64, Life, u32);

#[rustfmt::skip]
const ROWS: [Row; 20] = [
    ("builtin", "warehouse/eu-west/reindex", "worker-9", 159 * S, renewed(30 * S, 10 * S), 0),
    ("pg-orders", "tenant_408:payout-run:2026-04", "worker-12", 18 * M + 6 * S, Life::Renewed { ttl: H, every: 10 * S, until: Some(-26 * S) }, 1),
    ("pg-orders", "tenant_408:invoice-render:88213", "worker-4", 9 * M + 42 * S, Life::Running { ttl: 30 * S, end: -372 * S }, 0),
    ("builtin", "search:reindex:products", "worker-31", 22 * H, Life::Running { ttl: 24 * H, end: 2 * H }, 0),
    ("pg-orders", LONG_HELD, "worker-7", 41 * M + 8 * S, renewed(30 * S, 10 * S), 3),
    ("builtin", BUSY, "worker-2", 11_400, renewed(30 * S, 9 * S), 14),
    ("builtin", "tenant_123:stock-sync:eu", "worker-18", 3_200, renewed(10 * S, 4 * S), 4),
    ("pg-orders", "tenant_123:billing-export:2026-04", "worker-5", 74 * S, renewed(30 * S, 10 * S), 0),
    ("builtin", "tenant_123:dunning:run-3", "worker-22", 48 * S, renewed(30 * S, 10 * S), 0),
    ("builtin", "tenant_123:import:customers", "worker-16", 123 * S, renewed(60 * S, 20 * S), 0),
    ("pg-orders", "tenant_123:tax-report:2026-q1", "worker-8", 331 * S, renewed(30 * S, 10 * S), 0),
    ("builtin", ROTATING, "worker-19", 800, renewed(10 * S, 4 * S), 0),
    ("builtin", "tenant_204:import:0430", "worker-40", 192 * S, renewed(60 * S, 20 * S), 0),
    ("pg-orders", "tenant_311:billing-close:2026-04", "worker-6", 464 * S, renewed(30 * S, 10 * S), 0),
    ("builtin", "tenant_311:ledger-post", "worker-2", 2_100, renewed(10 * S, 4 * S), 0),
    ("builtin", "warehouse/eu-west/pick-plan", "worker-9", 12 * S, renewed(30 * S, 12 * S), 0),
    ("builtin", "warehouse/us-east/reindex", "worker-28", 100 * S, renewed(30 * S, 10 * S), 0),
    ("builtin", "warehouse/us-east/pick-plan", "worker-28", 40 * S, renewed(30 * S, 10 * S), 0),
    ("etcd-coord", "/jobs/billing-close/tenant_123", "worker-7", 750 * S, renewed(30 * S, 10 * S), 2),
    ("etcd-coord", "/jobs/ledger-post/tenant_123", "worker-7", 750 * S, renewed(30 * S, 10 * S), 0),
];

pub(crate) fn all() -> Vec<CannedLock> {
    let mut locks: Vec<CannedLock> = ROWS.into_iter().map(CannedLock::from).collect();
    let reason = "worker-3 wrote with token 1840 at 02:58:41 UTC after worker-9 was granted 1841";
    locks[0].condition = Some(ObservedCondition::DualOwner { why: reason.into() });
    let members = (
        "etcd-coord",
        "/members/worker-7",
        "worker-7",
        251 * M,
        renewed(60 * S, 20 * S),
        0,
    );
    locks.push(members.into());
    locks.extend(session_locks());
    locks.extend(same_name_in_two_tables());
    locks.extend(redis_locks());
    locks.extend(redlock::locks());
    locks.extend(hostile::locks());
    locks
}

fn session_locks() -> [CannedLock; 2] {
    let pooled = "its client closed at 02:58; the session lives on in the pooler";
    let orphaned = (
        "pg-orders",
        "advisory:orders:72707369",
        "deploy-api#41877",
        14 * M + 20 * S,
        Life::Session,
        2,
    );
    let working = (
        "pg-orders",
        "advisory:orders:4021",
        "migrate#52001",
        22 * S,
        Life::Session,
        0,
    );
    let advisory = |row: Row, condition| CannedLock {
        source: Some("advisory"),
        condition,
        ..row.into()
    };
    [
        advisory(orphaned, Some(ObservedCondition::Orphaned { why: pooled.into() })),
        advisory(working, None),
    ]
}

/// One name in two tables: its page asks which one is meant.
fn same_name_in_two_tables() -> [CannedLock; 2] {
    let row = || {
        (
            "pg-orders",
            "nightly:vacuum",
            "cron-1",
            90 * S,
            renewed(60 * S, 20 * S),
            0,
        )
            .into()
    };
    let archive = CannedLock {
        source: Some("table:archive.distributed_locks"),
        ..row()
    };
    [row(), archive]
}

fn redis_locks() -> [CannedLock; 3] {
    let unknown = |name| CannedLock {
        owner: None,
        condition: Some(ObservedCondition::Unrecognised {
            why: "a key of type list is no lock we know".into(),
        }),
        ..("redis-cache", name, "", 90 * S, Life::Unknown, 0).into()
    };
    let export = (
        "redis-cache",
        "lock:nightly-export",
        "exporter-1",
        362 * M,
        Life::NoTtl,
        0,
    );
    [
        export.into(),
        unknown("lock:cart:9f31"),
        unknown("lock:cart:legacy:import"),
    ]
}

/// `count` more locks, for the scene with 50,000.
pub(crate) fn bulk(count: usize) -> impl Iterator<Item = CannedLock> {
    (0..count).map(|number| {
        let name = format!("tenant_{}:job-{}:{number:06}", number % 397, number % 23);
        let step = i64::try_from(number).unwrap_or(0);
        CannedLock {
            backend: ["builtin", "pg-orders", "redis-cache"][number % 3],
            source: None,
            resource: Resource::from(name.as_str()),
            owner: Some(format!("worker-{}", number % 61)),
            held: S + step * 37 % H,
            life: renewed(H, 20 * M),
            waiters: 0,
            condition: None,
            queue: Vec::new(),
        }
    })
}

impl From<Row> for CannedLock {
    fn from((backend, resource, owner, held, life, waiters): Row) -> Self {
        Self {
            backend,
            source: None,
            resource: Resource::from(resource),
            owner: Some(owner.to_owned()),
            held,
            life,
            waiters,
            condition: None,
            queue: Vec::new(),
        }
    }
}

impl CannedLock {
    /// It needs no attention.
    pub(crate) fn is_calm(&self) -> bool {
        let is_renewed = matches!(self.life, Life::Renewed { until: None, .. } | Life::Session);
        is_renewed && self.waiters == 0 && self.condition.is_none() && self.backend != "etcd-coord"
    }

    /// Whether it was held at this moment.
    pub(crate) fn is_held(&self, elapsed_ms: i64) -> bool {
        -self.held <= elapsed_ms
    }

    /// As its backend reports it.
    pub(crate) fn observe(&self, kind: &Kind, now: Moment) -> ObservedLock {
        let (owner, held_ms) = self.holding(now);
        let is_redis = !kind.has_queue();
        let acquired_at = now.wall - TimeDelta::milliseconds(held_ms);
        let number = self.number();
        let session = "it lives as long as its session";
        let is_session = matches!(self.life, Life::Session);
        let token = match (is_session, kind.fenced) {
            (true, _) => Reported::absent("advisory locks have no tokens"),
            (false, false) => Reported::absent("Redis issues no fencing tokens"),
            (false, true) => Reported::Value(FencingToken::new(number)),
        };
        let lease_id = match self.life {
            Life::Session => Reported::absent(session),
            Life::Unknown => Reported::unknown("a list has no lease"),
            _ => Reported::Value(format!("01JT4M2V8K6W3N5C0X{number:05}QZ7").into()),
        };
        ObservedLock {
            source: Source::fixed(self.source.unwrap_or(kind.source)),
            resource: self.resource.clone(),
            generation: match &owner {
                Some(owner) => Reported::Value(Generation::new(format!("lease:{number}:{owner}"))),
                None => Reported::unknown("a list has no generation"),
            },
            owner: match owner {
                Some(owner) => Reported::Value(OwnerId::new(owner)),
                None => Reported::unknown("the key's value names no owner"),
            },
            owner_count: 1,
            sharers: Vec::new(),
            lease_id,
            fencing_token: token,
            acquired_at: if is_redis {
                Reported::unknown("Redis does not keep when a key was set")
            } else {
                Reported::Value(acquired_at)
            },
            renewed_at: Reported::unknown("not kept"),
            lifetime: self.lifetime(now.elapsed_ms),
            waiter_count: if is_redis {
                Reported::unknown("Redis keeps no queue")
            } else {
                Reported::Value(self.waiters_at(now))
            },
            oldest_waiter_ms: (self.waiters > 0).then_some(48 * S),
            line: self.queue_entries(kind, now.elapsed_ms),
            condition: self.condition.clone(),
        }
    }

    /// The owner and how long it has held the lock.
    fn holding(&self, now: Moment) -> (Option<String>, i64) {
        if self.has_name(ROTATING) && now.elapsed_ms >= 0 {
            let index = now.elapsed_ms / (BEATS_PER_HOLDING * BEAT_MS);
            let owner = ["worker-19", "worker-21", "worker-23"][usize::try_from(index % 3).unwrap_or(0)];
            return (
                Some(owner.to_owned()),
                now.elapsed_ms % (BEATS_PER_HOLDING * BEAT_MS),
            );
        }
        (self.owner.clone(), self.held + now.elapsed_ms)
    }

    /// Waiters that have joined the queue by this moment.
    fn queue_entries(&self, kind: &Kind, elapsed_ms: i64) -> Vec<InLine> {
        let holder = self.owner.as_deref().unwrap_or_default();
        let waits = self.queue.iter().filter(|wait| -wait.waited <= elapsed_ms);
        waits.map(|wait| wait.observe(kind, holder, elapsed_ms)).collect()
    }

    fn waiters_at(&self, now: Moment) -> u32 {
        let identified = self.queue.iter().filter(|wait| -wait.waited <= now.elapsed_ms);
        let identified = u32::try_from(identified.count()).unwrap_or(0);
        let more = if self.has_name(BUSY) { now.beat % 3 } else { 0 };
        identified + self.waiters + u32::try_from(more).unwrap_or(0)
    }

    fn lifetime(&self, elapsed_ms: i64) -> Lifetime {
        match self.life {
            Life::Renewed { ttl, every, until } => {
                let seen = until.map_or(elapsed_ms, |until| elapsed_ms.min(until));
                let since_ms = (seen + self.held).rem_euclid(every) + elapsed_ms - seen;
                Lifetime::Leased {
                    remaining_ms: ttl - since_ms,
                    ttl_ms: Reported::Value(ttl),
                }
            }
            Life::Running { ttl, end } => Lifetime::Leased {
                remaining_ms: end - elapsed_ms,
                ttl_ms: Reported::Value(ttl),
            },
            Life::Session => Lifetime::Session {
                why: "it lives as long as its session".into(),
            },
            Life::NoTtl => Lifetime::NoTtl {
                why: "PTTL is \u{2212}1".into(),
            },
            Life::Unknown => Lifetime::Unknown {
                why: "this key's shape does not tell".into(),
            },
        }
    }

    fn has_name(&self, name: &str) -> bool {
        self.resource.as_bytes() == name.as_bytes()
    }

    /// A number of its own, for ids and tokens.
    fn number(&self) -> u64 {
        let bytes = self.resource.as_bytes().iter();
        bytes.fold(7, |sum, byte| (sum * 31 + u64::from(*byte)) % 99_991)
    }
}
