//! Which data the gallery shows, and the rows of each scene at a moment.

use domain::backend::BackendStatus;
use domain::known::Known;
use domain::lock::Lock;
use domain::state::LockState::{self, *};

use crate::backends::{self, Shape};
use crate::canned::Moment;
use crate::hostile;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scene {
    Full,
    /// 50,000 locks.
    Many,
    /// Every backend answers, and nobody holds anything.
    Empty,
    /// No backend answers.
    Down,
    /// Just started: nothing observed yet.
    Starting,
    /// Locks are held, and none needs attention.
    Calm,
    /// No backend is configured.
    Unconfigured,
}

impl Scene {
    pub(crate) const NAMES: [&'static str; 7] = [
        "full",
        "many",
        "empty",
        "down",
        "starting",
        "calm",
        "unconfigured",
    ];

    pub(crate) fn parse(name: &str) -> Option<Self> {
        let scenes = [
            Self::Full,
            Self::Many,
            Self::Empty,
            Self::Down,
            Self::Starting,
            Self::Calm,
            Self::Unconfigured,
        ];
        Self::NAMES
            .iter()
            .position(|known| *known == name)
            .map(|at| scenes[at])
    }

    pub(crate) fn status(self, own: BackendStatus) -> BackendStatus {
        match self {
            Self::Full => own,
            Self::Many | Self::Empty | Self::Calm | Self::Unconfigured => BackendStatus::Live,
            Self::Down => BackendStatus::Down,
            Self::Starting => BackendStatus::Starting,
        }
    }

    pub(crate) fn rows(self, now: Moment) -> Vec<Lock> {
        match self {
            Self::Full => full(now),
            Self::Many => many(now),
            Self::Down => full(now)
                .into_iter()
                .filter(|lock| lock.id.backend.as_str() == "etcd-coord")
                .collect(),
            Self::Calm => full(now)
                .into_iter()
                .filter(|lock| lock.state == Healthy)
                .collect(),
            Self::Empty | Self::Starting | Self::Unconfigured => Vec::new(),
        }
    }
}

/// One row in the words of the list: where, what, who, how long, of what TTL, renewed how often.
struct Row(
    &'static str,
    &'static str,
    &'static str,
    i64,
    i64,
    Option<i64>,
    LockState,
    &'static str,
);

const S: i64 = 1000;
const M: i64 = 60 * S;

#[rustfmt::skip]
const ROWS: [Row; 18] = [
    Row("builtin", "warehouse/eu-west/reindex", "worker-9", 159 * S, 30 * S, Some(10 * S), TwoBelievers, "worker-3 wrote with token 1840 at 02:58:41 UTC after worker-9 was granted 1841"),
    Row("pg-orders", "tenant_408:payout-run:2026-04", "worker-12", 18 * M + 6 * S, 30 * S, None, NotRenewing, "renewed every 10.0 s, silent for 26 s; 1 waits for it"),
    Row("pg-orders", "tenant_408:invoice-render:88213", "worker-4", 9 * M + 42 * S, 30 * S, None, ExpiredPresent, "expired 6 m 12 s ago and still in the table"),
    Row("builtin", "search:reindex:products", "worker-31", 4 * M + 50 * S, 20 * S, Some(5 * S), NearExpiry, "one renewal missed: it renews every 5.0 s, the last was 8 s ago"),
    Row("pg-orders", "tenant_123:billing-close:2026-04", "worker-7", 41 * M + 8 * S, 30 * S, Some(10 * S), LongHeld, "held 3.4 times its own p95 of 12 m, still renewing"),
    Row("builtin", "tenant_123:ledger-post", "worker-2", 11_400, 30 * S, Some(9 * S), Contended, "14 wait, the oldest for 48 s"),
    Row("builtin", "tenant_123:stock-sync:eu", "worker-18", 3_200, 10 * S, None, Contended, "4 wait, the oldest for 9 s"),
    Row("pg-orders", "tenant_123:billing-export:2026-04", "worker-5", 74 * S, 30 * S, Some(10 * S), Healthy, "renews every 10.0 s, none missed"),
    Row("builtin", "tenant_123:dunning:run-3", "worker-22", 48 * S, 30 * S, Some(10 * S), Healthy, "renews every 10.0 s, none missed"),
    Row("builtin", "tenant_123:import:customers", "worker-16", 123 * S, 60 * S, Some(20 * S), Healthy, "renews every 20.0 s, none missed"),
    Row("pg-orders", "tenant_123:tax-report:2026-q1", "worker-8", 331 * S, 30 * S, Some(10 * S), Healthy, "renews every 10.0 s, none missed"),
    Row("builtin", "tenant_204:ledger-post", "worker-19", 800, 10 * S, None, Healthy, "taken less than one TTL ago"),
    Row("builtin", "tenant_204:import:0430", "worker-40", 192 * S, 60 * S, Some(20 * S), Healthy, "renews every 20.0 s, none missed"),
    Row("pg-orders", "tenant_311:billing-close:2026-04", "worker-6", 464 * S, 30 * S, Some(10 * S), Healthy, "renews every 10.0 s, none missed"),
    Row("builtin", "tenant_311:ledger-post", "worker-2", 2_100, 10 * S, None, Healthy, "taken less than one TTL ago"),
    Row("builtin", "warehouse/eu-west/pick-plan", "worker-9", 12 * S, 30 * S, Some(12 * S), Healthy, "renews every 12.0 s, none missed"),
    Row("builtin", "warehouse/us-east/reindex", "worker-28", 100 * S, 30 * S, Some(10 * S), Healthy, "renews every 10.0 s, none missed"),
    Row("builtin", "warehouse/us-east/pick-plan", "worker-28", 40 * S, 30 * S, Some(10 * S), Healthy, "renews every 10.0 s, none missed"),
];

fn full(now: Moment) -> Vec<Lock> {
    let mut rows: Vec<Lock> = ROWS.iter().map(|row| leased(row, now)).collect();
    rows.extend(without_lease(now));
    rows.extend(blind(now));
    rows.extend(hostile::rows(now));
    rows
}

fn leased(row: &Row, now: Moment) -> Lock {
    let Row(backend, resource, owner, held, ttl, renews, state, why) = *row;
    let mut lock = backends::lock(backend, resource, now);
    lock.own(owner, held + now.elapsed_ms);
    lock.lease(ttl, renews, now);
    lock.judge(state, why);
    match state {
        NotRenewing => lock.remaining_ms = Known::Known(4_100 - now.elapsed_ms % 4_000),
        NearExpiry => lock.remaining_ms = Known::Known(6_800 - now.elapsed_ms % 6_000),
        ExpiredPresent => lock.remaining_ms = Known::Known(-372_000 - now.elapsed_ms),
        _ => {}
    }
    lock.waiter_count = Known::Known(match resource {
        "tenant_123:ledger-post" => 14 + u32::try_from(now.beat % 3).unwrap_or(0),
        "tenant_123:stock-sync:eu" => 4,
        "tenant_123:billing-close:2026-04" => 3,
        "tenant_408:payout-run:2026-04" => 1,
        _ => 0,
    });
    // Something to see: this one changes hands every few beats.
    if resource == "tenant_204:ledger-post" {
        lock.own(
            ["worker-19", "worker-21", "worker-23"][usize::try_from(now.beat / 4 % 3).unwrap_or(0)],
            800,
        );
    }
    lock
}

fn without_lease(now: Moment) -> Vec<Lock> {
    let mut gone = backends::lock("pg-orders", "advisory:orders:72707369", now);
    gone.id.source = domain::names::Source::fixed("advisory");
    gone.own("deploy-api#41877", 14 * M + 20 * S + now.elapsed_ms);
    gone.session();
    gone.waiter_count = Known::Known(2);
    gone.judge(
        HolderGone,
        "its client closed at 02:58; the session lives on in the pooler",
    );
    let mut migration = backends::lock("pg-orders", "advisory:orders:4021", now);
    migration.id.source = domain::names::Source::fixed("advisory");
    migration.own("migrate#52001", 22 * S + now.elapsed_ms);
    migration.session();
    migration.judge(Healthy, "its session is at work");
    let mut immortal = backends::lock("redis-cache", "lock:nightly-export", now);
    immortal.own("exporter-1", 362 * M + now.elapsed_ms);
    immortal.no_ttl();
    immortal.judge(NoTtl, "PTTL is \u{2212}1: it never expires by itself");
    vec![gone, migration, immortal]
}

fn blind(now: Moment) -> Vec<Lock> {
    let stale = |resource, held, left| {
        let mut lock = backends::lock("etcd-coord", resource, now);
        lock.own("worker-7", held);
        lock.lease(30 * S, None, now);
        lock.remaining_ms = Known::Known(left);
        lock.age_ms = 14 * S + now.elapsed_ms;
        lock.judge(
            Stale,
            "etcd-coord was last seen 14 s ago, more than two of its poll periods",
        );
        lock
    };
    let unknown = |resource| {
        let mut lock = backends::lock("redis-cache", resource, now);
        lock.unrecognised();
        lock.judge(Unknown, "a key of type list is no lock we know");
        lock
    };
    let mut rows = vec![
        stale("/jobs/billing-close/tenant_123", 750 * S, 7 * S),
        stale("/jobs/ledger-post/tenant_123", 750 * S, 7 * S),
        stale("/members/worker-7", 251 * M, 44 * S),
        unknown("lock:cart:9f31"),
        unknown("lock:cart:legacy:import"),
    ];
    rows[0].waiter_count = Known::Known(2);
    rows[2].ttl_ms = Known::Known(60 * S);
    rows[2].track_ms = Some(60 * S);
    rows
}

fn many(now: Moment) -> Vec<Lock> {
    let mut rows = full(now);
    let backends = ["builtin", "pg-orders", "redis-cache"];
    for number in rows.len()..50_000 {
        let resource = format!("tenant_{}:job-{}:{number:06}", number % 397, number % 23);
        let mut lock = backends::lock(backends[number % 3], &resource, now);
        let step = i64::try_from(number).unwrap_or(0);
        lock.own(&format!("worker-{}", number % 61), 1_000 + step * 37 % 3_600_000);
        lock.lease(30 * S, Some(10 * S), now);
        if number.is_multiple_of(997) {
            lock.judge(LongHeld, "held longer than its own p95");
        }
        rows.push(lock);
    }
    rows
}
